"""Graphs that are supported in part: cut into parts that import and parts that torch runs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import fx
from torch.fx.passes.split_module import split_module

from .effects import edited
from .errors import Unsupported, node_name
from .graph import ROWS, import_graph
from .sizes import row_symbols
from .walk import Walk

WORTHWHILE = {
    "linear",
    "matmul",
    "bmm",
    "einsum",
    "index_select",
    "index_add",
    "index_add_",
    "scatter_add_",
}


@dataclass(frozen=True)
class Part:
    """One part: the submodule of that name, and why it runs in torch (none: it imports)."""

    name: str
    reasons: tuple[Unsupported, ...]

    @property
    def supported(self) -> bool:
        return not self.reasons


@dataclass(frozen=True)
class Split:
    """`module` calls its submodules one after the other; `parts` describes them in that order."""

    module: fx.GraphModule
    parts: tuple[Part, ...]

    @property
    def supported(self) -> tuple[str, ...]:
        """The names of the submodules that import."""
        return tuple(p.name for p in self.parts if p.supported)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the others run in torch, each with the user's file and line."""
        return tuple(dict.fromkeys(str(r) for p in self.parts for r in p.reasons))


def refusals(gm: fx.GraphModule) -> list[Unsupported]:
    """Why nodes of a graph cannot be imported, all of them. Raises `Unsupported` for an edit in
    place that cannot be followed: then no part of the graph may be compiled."""
    return list(Walk(gm.graph, tolerant=True).run().refused.values())


def split_graph(gm: fx.GraphModule) -> Split | None:
    """Cuts a graph at the nodes without a meaning. None when the whole graph must run in torch: an
    edit in place cannot be followed, or no part is worth compiling."""
    try:
        refused = Walk(gm.graph, tolerant=True, float_masks=False).run().refused
    except Unsupported:
        return None
    if not refused or _changes_grad_mode(gm.graph):
        return None
    numbers = _in_order(gm.graph, refused) if _edits(gm.graph) else _by_level(gm.graph, refused)
    module = split_module(gm, gm, lambda node: numbers[node])
    parts, rows = [], frozenset(row_symbols(gm.graph))
    for name, child in module.named_children():
        if not isinstance(child, fx.GraphModule):
            continue
        child.meta[ROWS] = rows
        number = int(name.rsplit("_", 1)[1])
        mine = tuple(e for n, e in refused.items() if numbers[n] == number)
        parts.append(Part(name, mine or _obstacles(child)))
    if not any(p.supported for p in parts):
        return None
    return Split(module, tuple(parts))


def _obstacles(child: fx.GraphModule) -> tuple[Unsupported, ...]:
    """Why a part without refused nodes still runs in torch."""
    calls = [n for n in child.graph.nodes if n.op.startswith("call")]
    if not any(node_name(n) in WORTHWHILE or _is_leaf(n) for n in calls):
        return (Unsupported(calls[0] if calls else None, "too little to be worth compiling"),)
    try:
        import_graph(child, float_masks=False)
    except Unsupported as error:
        return (error,)
    return ()


def _is_leaf(node: fx.Node) -> bool:
    return node_name(node).startswith("gnnc.")


def _changes_grad_mode(graph: fx.Graph) -> bool:
    """Such a graph cannot be cut: the mode would have to cross parts."""
    return any(n.op.startswith("call") and node_name(n) == "_set_grad_enabled" for n in graph.nodes)


def _edits(graph: fx.Graph) -> bool:
    return any(edited(n) is not None for n in graph.nodes)


def _with_producer(node: fx.Node) -> fx.Node | None:
    """An item of a tuple stays with the node that gave the tuple."""
    if node.op == "call_function" and node_name(node) == "getitem":
        source = node.args[0]
        if isinstance(source, fx.Node) and source.op != "placeholder":
            if isinstance(source.meta.get("example_value"), tuple | list):
                return source
    return None


def _is_scalar(node: fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.SymInt | torch.SymBool | torch.SymFloat | int | float | bool)


def _in_order(graph: fx.Graph, refused: dict[fx.Node, Unsupported]) -> dict[fx.Node, int]:
    """Consecutive runs of nodes: with edits in place the order of everything is kept."""
    numbers: dict[fx.Node, int] = {}
    current, kind = 0, None
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        source = _with_producer(node)
        if source is not None and source in numbers:
            numbers[node] = numbers[source]
            continue
        mine = node in refused
        if kind is not None and mine != kind and not _is_scalar(node):
            current += 1
        kind = kind if _is_scalar(node) and kind is not None else mine
        numbers[node] = current
    return numbers


def _by_level(graph: fx.Graph, refused: dict[fx.Node, Unsupported]) -> dict[fx.Node, int]:
    """As few parts as the data flow allows: supported nodes on even levels, others on odd ones."""
    numbers: dict[fx.Node, int] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        source = _with_producer(node)
        if source is not None and source in numbers:
            numbers[node] = numbers[source]
            continue
        before = max((numbers[i] for i in node.all_input_nodes if i in numbers), default=0)
        odd = node in refused
        numbers[node] = before if _is_scalar(node) or before % 2 == odd else before + 1
    return numbers
