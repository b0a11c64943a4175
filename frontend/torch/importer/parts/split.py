"""Graphs that are supported in part: cut into parts that import and parts that torch runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy
import torch
from torch import fx
from torch.fx.passes.split_module import split_module

from ..errors import Unsupported, node_name
from ..graph import ROWS, import_graph
from ..memory.effects import has_effect, switches_mode
from ..memory.history import GradModes
from ..outputs import SHOWN
from ..values.sizes import example, expression, is_unbacked, row_symbols
from ..walk import Walk
from .regions import Refused, Regions
from .structure import (
    PART,
    InParts,
    hide_rows,
    is_worthwhile,
    show_rows,
    structure_of_arguments,
)


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
    def reasons(self) -> tuple[str, ...]:
        """Why the others run in torch, each with the user's file and line."""
        return tuple(dict.fromkeys(str(r) for p in self.parts for r in p.reasons))


def refusals(gm: fx.GraphModule) -> list[Unsupported]:
    """Why nodes of a graph cannot be imported, all of them. Raises `Unsupported` for an edit in
    place that cannot be followed."""
    return list(Walk(gm.graph, tolerant=True).run().refused.values())


def split_graph(gm: fx.GraphModule) -> Split | None:
    """Cuts a graph at the nodes without a meaning, and where edits are torch's. None when the whole
    graph must run in torch: it switches a mode besides that of autograd, examples hide what has a
    gradient where parts would meet, or no part is worth compiling."""
    if GradModes(gm.graph).hides_history:
        return None
    try:
        regions = Regions(gm.graph)
        while True:
            refused = regions.refused()
            numbers = _by_level(gm.graph, refused, regions.earlier(refused))
            if regions.leave_crossing(numbers, refused):
                continue
            structure = structure_of_arguments(gm.graph, refused, regions.aliases)
            split, stuck = _cut(gm, refused, numbers, structure)
            if not regions.leave_numbers(n for n in numbers if numbers[n] in stuck):
                return split
    except Unsupported:
        return None


def _cut(
    gm: fx.GraphModule, refused: Refused, numbers: dict[fx.Node, int], structure: set[fx.Node]
) -> tuple[Split | None, set[int]]:
    """The graph cut into parts of these numbers, and the numbers of those that have no program
    though each of their nodes has a meaning."""
    stuck = set[int]()
    if not refused:  # no node's fault: a result is a number that only running tells
        return None, {*numbers.values()}
    if _has_nameless_numbers(gm.graph):
        return None, stuck
    ordered = _in_parts(gm, numbers, structure)
    hide_rows(ordered.graph)
    try:
        module = split_module(ordered, ordered, lambda n: n.meta[PART], keep_original_order=True)
    except RuntimeError as error:  # a size that only running tells goes to and fro
        if "cycle" not in str(error):
            raise
        return None, stuck
    parts, rows = [], frozenset(row_symbols(gm.graph))
    for name, child in module.named_children():
        if not isinstance(child, fx.GraphModule):
            continue
        show_rows(child.graph)
        _switch_modes(child)
        child.meta[ROWS] = rows
        number = int(name.rsplit("_", 1)[1])
        reasons = tuple(e for n, e in refused.items() if numbers[n] == number)
        if not reasons:
            reasons = _obstacles(child)
            if any(r.node is None for r in reasons):  # of the part as a whole
                stuck.add(number)
        parts.append(Part(name, reasons))
    if not any(p.supported for p in parts):
        return None, stuck
    return Split(module, tuple(parts)), stuck


_RECORDS = "gnnc_records"


def _in_parts(
    gm: fx.GraphModule, numbers: dict[fx.Node, int], structure: set[fx.Node]
) -> fx.GraphModule:
    """The graph with its nodes in the order of their parts, each with its part and its mode of
    autograd; what switches the mode is left out, and so are shapes: their numbers cross parts."""
    modes, made = GradModes(gm.graph), InParts(structure, numbers)
    shown = {n for n in gm.graph.nodes if any(u.op == "output" for u in n.users)}
    parts = {n: math.inf if n.op == "output" else numbers.get(n, -1) for n in gm.graph.nodes}
    for node in sorted(gm.graph.nodes, key=parts.__getitem__):
        if node_name(node) == "Size":
            made.name(node, node.args[0])
        elif not switches_mode(node):
            said = {PART: numbers.get(node), _RECORDS: modes.at[node], SHOWN: node in shown}
            made.add(node, said)
    return fx.GraphModule(gm, made.graph)


def _switch_modes(child: fx.GraphModule) -> None:
    """A part starts and ends in the mode of the call."""
    mode = outside = torch.is_grad_enabled()
    for node in list(child.graph.nodes):
        wanted = outside if node.op == "output" else node.meta.get(_RECORDS, mode)
        if node.op in ("placeholder", "get_attr") or wanted == mode:
            continue
        with child.graph.inserting_before(node):
            child.graph.call_function(torch._C._set_grad_enabled, (wanted,))
        mode = wanted
    child.recompile()


def _obstacles(child: fx.GraphModule) -> tuple[Unsupported, ...]:
    """Why a part without refused nodes still runs in torch."""
    calls = [n for n in child.graph.nodes if n.op.startswith("call")]
    if not any(map(is_worthwhile, calls)):
        return (Unsupported(calls[0] if calls else None, "too little to be worth compiling"),)
    try:
        import_graph(child, float_masks=False)
    except Unsupported as error:
        return (error,)
    return ()


def _has_nameless_numbers(graph: fx.Graph) -> bool:
    """Whether a number that only running tells is no node's own value (`bool(mask.any())` is a
    comparison of one): torch cannot say how it crosses parts."""
    found, named = set[sympy.Basic](), set[sympy.Basic]()
    for value in map(example, graph.nodes):
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            found |= expression(value).free_symbols
            named |= {expression(value)}
    return any(is_unbacked(s) for s in found - named)


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


def _left_to_torch(graph: fx.Graph, refused: Refused) -> set[fx.Node]:
    """The nodes that are refused; and before all that is compiled, what is little work and for them
    alone (a mask of random numbers), with the sizes that they need: no reason for another part."""
    first = set[fx.Node]()
    for node in graph.nodes:
        light = node in refused or not (is_worthwhile(node) or has_effect(node))
        if node.op == "placeholder" or (light and first.issuperset(node.all_input_nodes)):
            first.add(node)
    out = set[fx.Node](refused)
    for node in reversed(graph.nodes):
        if node in first and node.op != "placeholder" and node.users:
            enough = any if _is_scalar(node) else all
            if enough(n in out and n in first for n in node.users):
                out.add(node)
    return out


def _by_level(
    graph: fx.Graph, refused: Refused, earlier: Mapping[fx.Node, Sequence[fx.Node]]
) -> dict[fx.Node, int]:
    """As few parts as the data flow, and the order of edits, allow: supported nodes on even levels,
    others on odd ones. What torch makes of arguments alone comes first, so that it cuts nothing."""
    numbers: dict[fx.Node, int] = {}
    torch_runs = _left_to_torch(graph, refused)
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        source = _with_producer(node)
        if source is not None and source in numbers:
            numbers[node] = numbers[source]
            continue
        first = [*node.all_input_nodes, *earlier.get(node, ())]
        odd = node in torch_runs
        before = max((numbers[i] for i in first if i in numbers), default=1 if odd else 2)
        stays = before % 2 == odd or (_is_scalar(node) and not odd)
        numbers[node] = before if stays else before + 1
    return numbers
