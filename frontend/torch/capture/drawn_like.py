"""Random numbers for a tensor that a graph computes (`torch.randn_like(h)`), drawn by its sizes
alone: then torch can draw them before anything else, and they cut no program in two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ..importer.memory.effects import call_of, draws
from ..importer.values.sizes import example, expression

_BY_SIZES = {"randn_like": torch.randn, "rand_like": torch.rand}


def drawn_by_sizes(graph: fx.GraphModule) -> None:
    """Replaces what draws numbers for a tensor by what draws as many of the same type, which are
    the same numbers: those of a tensor whose numbers lie in memory in their order."""
    drawing = [(n, f) for n in graph.graph.nodes if (f := _function(n)) is not None]
    known = _sizes(graph.graph) if drawing else {}
    for node, function in drawing:
        sizes = _sizes_of(node, known)
        if sizes is not None:
            out = example(node)
            assert isinstance(out, Tensor)
            node.target, node.args = function, (sizes,)
            node.kwargs = {"dtype": out.dtype, "device": out.device}
    if drawing:
        graph.recompile()


def _function(node: fx.Node) -> Callable[..., Tensor] | None:
    """What gives the same by sizes, of a call that gives numbers, or memory for them, for a
    tensor."""
    if node.op != "call_function":
        return None
    op = call_of(node).op
    if op == "empty_like" and any(draws(u) and u.args[:1] == (node,) for u in node.users):
        return torch.empty
    return _BY_SIZES.get(op)


def _sizes(graph: fx.Graph) -> dict[sympy.Expr, fx.Node]:
    """The arguments of a graph that are sizes."""
    arguments = graph.find_nodes(op="placeholder")
    return {expression(x): n for n in arguments if isinstance(x := example(n), torch.SymInt)}


def _sizes_of(node: fx.Node, known: dict[sympy.Expr, fx.Node]) -> tuple[Any, ...] | None:
    """The sizes of what a call gives, as constants and arguments; None where they are neither, or
    the call says more than the type of the numbers."""
    call, out = call_of(node), example(node)
    like = example(call.arguments.get("input"))
    if call.set_apart() - {"input", "dtype"} or not (
        isinstance(out, Tensor) and isinstance(like, Tensor)
    ):
        return None
    if not (type(like) is Tensor or hasattr(like, "fake_mode")) or not like.is_contiguous():
        return None
    sizes = [known.get(e, e) for e in map(expression, out.shape)]
    if not all(isinstance(s, fx.Node) or s.is_Integer for s in sizes):
        return None
    return tuple(s if isinstance(s, fx.Node) else int(s) for s in sizes)
