"""The structure that parts of a cut graph make of arguments, each for itself.

Layers that normalise a graph, or leave edges out, make rows whose number only running the program
tells. Such rows are no more than numbers to another part, which would not know what they are rows
of, and the number itself is nothing that a program gives. What follows from arguments is therefore
made in every part that reads it, and other rows cross without their number, which their tensor
tells.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ..errors import node_name
from ..memory.aliases import Aliases
from ..memory.effects import draws, has_effect
from ..values.sizes import example, expression, is_unbacked, tensors_in
from .live import acts
from .regions import Refused

WORTHWHILE = {
    *("linear", "matmul", "bmm", "einsum"),
    *("index_select", "index_add", "index_add_", "scatter_add_"),
}
"""What a part is compiled for, with leaves of ours."""

PART = "gnnc_part"
"""Where a node's meta says which part it belongs to."""

_HIDDEN = "gnnc_hidden_rows"

_STRUCTURE = {"gnnc.gcn_norm", "gnnc.remove_self_loops", "gnnc.edge_subgraph"}


def is_worthwhile(node: fx.Node) -> bool:
    """Whether a node is more work than it takes to call a part."""
    name = node_name(node)
    return name in WORTHWHILE or name.startswith("gnnc.")


def structure_of_arguments(graph: fx.Graph, refused: Refused, aliases: Aliases) -> set[fx.Node]:
    """The nodes that a program may make anew wherever they are read: of arguments alone, with
    little work, of memory that nothing edits."""
    found = set[fx.Node]()
    for node in graph.nodes:
        work = is_worthwhile(node) and node_name(node) not in _STRUCTURE
        if not node.op.startswith("call") or work or node in refused:
            continue
        if has_effect(node) or draws(node) or acts(node):
            continue
        inputs = node.all_input_nodes
        edited = any(key in aliases.edits for x in (node, *inputs) for key in aliases.memory(x))
        if not edited and all(x.op in ("placeholder", "get_attr") or x in found for x in inputs):
            found.add(node)
    return found


def counted_by_running(node: fx.Node) -> bool:
    """Whether a node has rows, or is a number, that only running the program tells."""
    value = example(node)
    sizes: list[Any] = [s for x in tensors_in(value) for s in x.shape]
    if not isinstance(value, Tensor):
        sizes.append(value)
    numbers = (s for s in sizes if isinstance(s, torch.SymInt | torch.SymFloat | torch.SymBool))
    return any(is_unbacked(symbol) for s in numbers for symbol in expression(s).free_symbols)


def _is_size(node: fx.Node) -> bool:
    """Whether a node asks a tensor for a size that only running the program tells."""
    return node_name(node) in ("sym_size.int", "size") and isinstance(example(node), torch.SymInt)


def hide_rows(graph: fx.Graph) -> None:
    """Let tensors seem not to have rows whose number they tell themselves: torch's split would have
    that number cross beside them."""
    first: dict[sympy.Basic, fx.Node] = {}
    for node in graph.nodes:
        if isinstance(value := example(node), torch.SymInt):
            first.setdefault(expression(value), node)
    named = {s: node for s, node in first.items() if s.is_Symbol and is_unbacked(s)}
    told = {s for s, node in named.items() if _is_size(node)}
    for node in graph.nodes:
        value = example(node)
        if isinstance(value, Tensor) and any(expression(d) in told for d in value.shape):
            others = [d for d in value.shape if expression(d) not in told]
            node.meta |= {_HIDDEN: value, "example_value": others}


def show_rows(graph: fx.Graph) -> None:
    """What `hide_rows` hid is there again, in a part as well."""
    for node in graph.nodes:
        if _HIDDEN in node.meta:
            node.meta["example_value"] = node.meta.pop(_HIDDEN)


class InParts:
    """Copies nodes to a new graph, what is `structure` of numbers that only running tells to each
    part that reads it."""

    def __init__(self, structure: set[fx.Node], numbers: dict[fx.Node, int]) -> None:
        self.graph = fx.Graph()
        self.structure, self.numbers = structure, numbers
        self.made: dict[fx.Node, Any] = {}
        self.copies: dict[tuple[fx.Node, int], Any] = {}

    def add(self, node: fx.Node, meta: dict[str, Any]) -> None:
        """Copy a node into its own part."""
        part = self.numbers.get(node)
        self.made[node] = new = self.graph.node_copy(node, lambda x: self.read(x, part))
        new.meta |= meta

    def name(self, node: fx.Node, arguments: Any) -> None:
        """Let a node be what stands in a container of others."""
        self.made[node] = fx.map_arg(arguments, self.made.__getitem__)

    def read(self, node: fx.Node, part: int | None) -> Any:
        """The copy of a node that a part reads."""
        elsewhere = part is not None and self.numbers.get(node, part) != part
        if not elsewhere or not counted_by_running(node):
            return self.made[node]
        return self._again(node, part)

    def _again(self, node: fx.Node, part: int) -> Any:
        """A copy in another part, with what it is made of where that is structure as well."""
        if node not in self.structure and not _is_size(node):
            return self.made[node]
        if (node, part) not in self.copies:
            new = self.graph.node_copy(node, lambda x: self._again(x, part))
            new.meta |= {**self.made[node].meta, PART: part}
            self.copies[node, part] = new
        return self.copies[node, part]
