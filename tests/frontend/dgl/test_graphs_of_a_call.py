"""A graph of DGL that a compiled call is given is in all that of the same code without compilation:
what the call and others set, delete, edit and return, and what is left of it.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gnnc
from gnnc.bench.dgl_shim import install

install()
dgl = pytest.importorskip("dgl", reason="dgl has no wheel for this Python or machine")
fn = dgl.function


def graph() -> Any:
    g = dgl.graph(([0, 1, 1, 3, 2], [1, 0, 2, 2, 2]))
    g.ndata["x"], g.edata["w"] = torch.arange(8.0).view(4, 2), torch.arange(5.0).view(5, 1)
    return g


def relations() -> Any:
    g = dgl.heterograph({("a", "r", "b"): ([0, 1, 2], [1, 0, 1]), ("b", "s", "a"): ([0], [2])})
    g.nodes["a"].data["x"], g.nodes["b"].data["h"] = torch.ones(3, 2), torch.zeros(2, 2)
    return g


def contents(g: Any) -> dict[Any, Any]:
    """Ends, features and batch of a graph."""
    found: dict[Any, Any] = {etype: torch.stack(g.edges(etype=etype)) for etype in g.etypes}
    found |= {(ntype, k): v for ntype in g.ntypes for k, v in g.nodes[ntype].data.items()}
    found |= {(etype, k): v for etype in g.etypes for k, v in g.edges[etype].data.items()}
    return found | {("nodes", ntype): g.batch_num_nodes(ntype) for ntype in g.ntypes}


def plain(x: Any) -> Any:
    """A result with graphs as their contents; those must be DGL's."""
    if isinstance(x, (tuple, list)):
        return [plain(value) for value in x]
    if hasattr(x, "ndata"):
        assert isinstance(x, dgl.DGLGraph)
        return contents(x)
    return x


def same(f: Callable[..., Any], make: Callable[[], Any] = graph, calls: int = 2) -> Any:
    """Compares a function of a graph with itself compiled; gives the compiled one."""
    compiled = gnnc.compile(f)
    theirs, ours = make(), make()
    for _ in range(calls):
        expected, found = plain(f(theirs)), plain(compiled(ours))
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(contents(ours), contents(theirs))
    return compiled


def test_one_graph_under_two_names() -> None:
    def f(g: Any, h: Any) -> Tensor:
        g.ndata["q"] = g.ndata["x"] * 3
        return h.ndata["q"] + 1

    compiled = gnnc.compile(f)
    for first in (graph(), graph()):
        for second in (first, graph()):
            second.ndata["q"] = torch.zeros(4, 2)
            expected = f(first.local_var(), second) if second is not first else f(first, first)
            torch.testing.assert_close(compiled(first, second), expected)
    assert gnnc.explain(compiled).fallbacks == []


def test_a_slice_shares_features_with_its_graph() -> None:
    def sends(g: Any, part: Any) -> Tensor:
        part.update_all(fn.copy_u("x", "m"), fn.sum("m", "h"))
        return g.nodes["b"].data["h"] + 1

    compiled = gnnc.compile(sends)
    results = []
    for call in (sends, compiled):
        g = relations()
        results.append((call(g, g["r"]), g.nodes["b"].data["h"]))
    torch.testing.assert_close(results[1], results[0])
    assert gnnc.explain(compiled).fallbacks == []


def test_graphs_that_are_returned() -> None:
    def f(g: Any) -> Any:
        back = dgl.reverse(g, copy_edata=True)
        back.ndata["y"] = back.ndata["x"] * 2
        g.ndata["z"] = g.ndata["x"] + 1
        return g, [g.local_var(), back]

    same(f)
    g = graph()
    assert gnnc.compile(f)(g)[0] is g


def test_types_made_one() -> None:
    """Of a graph that was made in the call, which no function of DGL's own can take."""

    def f(g: Any) -> Tensor:
        g = g.local_var()
        g.ndata["h"] = {t: torch.ones(g.num_nodes(t), 2) for t in g.ntypes}
        one = dgl.to_homogeneous(g, ndata=["h"])
        one.update_all(fn.copy_u("h", "m"), fn.sum("m", "z"))
        return one.ndata["z"] * 2 + one.ndata[dgl.NTYPE].unsqueeze(1)

    assert gnnc.explain(same(f, relations)).fallbacks == []


def test_degrees_that_are_returned() -> None:
    same(lambda g: (g.in_degrees(), g.out_degrees() > 0, g.ndata["x"] * 2))


def test_a_graph_is_an_instance_of_its_class() -> None:
    compiled = same(lambda g: g.ndata["x"] * (2 if isinstance(g, dgl.DGLGraph) else 3))
    assert gnnc.explain(compiled).fallbacks == []


def test_errors_are_those_of_dgl() -> None:
    def caught(g: Any) -> Tensor:
        torch._dynamo.graph_break()
        try:
            g.ndata["y"] = g.ndata["x"][:3]
        except dgl.DGLError:
            g.ndata["y"] = g.ndata["x"] * 2
        return g.ndata["y"]

    same(caught)

    def raised(g: Any) -> None:
        torch._dynamo.graph_break()
        g.ndata["y"] = g.ndata["x"][:3]

    with pytest.raises(dgl.DGLError, match="number of features"):
        gnnc.compile(raised)(graph())


def test_what_is_set_before_an_error_stays() -> None:
    def f(g: Any) -> None:
        g.ndata["y"] = g.ndata["x"] * 2
        torch._dynamo.graph_break()
        del g.edata["w"]
        raise ValueError("after all")

    theirs, ours = graph(), graph()
    for call, g in ((f, theirs), (gnnc.compile(f), ours)):
        with pytest.raises(ValueError, match="after all"):
            call(g)
    torch.testing.assert_close(contents(ours), contents(theirs))


def test_edges_and_nodes_that_a_call_edits() -> None:
    def f(g: Any) -> Tensor:
        g.add_edges(torch.tensor([0, 3]), torch.tensor([3, 1]))
        g.remove_edges(torch.tensor([1]))
        g.ndata["y"] = g.ndata["x"] * 2
        g.update_all(fn.copy_u("y", "m"), fn.sum("m", "z"))
        return g.ndata["z"]

    same(f)


def test_a_batch_that_is_divided_between_calls() -> None:
    compiled = gnnc.compile(lambda g: dgl.sum_nodes(g, "x"))
    g = graph()
    for sizes in ([4], [1, 3], [3, 1]):
        g.set_batch_num_nodes(torch.tensor(sizes))
        g.set_batch_num_edges(torch.tensor([5, *[0] * (len(sizes) - 1)]))
        torch.testing.assert_close(compiled(g), dgl.sum_nodes(g, "x"))


def test_nodes_can_be_removed_after_a_call() -> None:
    compiled, g = gnnc.compile(lambda g: g.ndata["x"] * 2), graph()
    compiled(g)
    g.remove_nodes(torch.tensor([0]))
    torch.testing.assert_close(compiled(g), g.ndata["x"] * 2)


KEPT: list[Any] = []


@torch._dynamo.disable
def _untraced() -> None:
    (g,) = KEPT
    g.ndata["y"] = g.ndata["y"] + 1
    g.ndata["count"] = g.ndata["x"] * len(g.ndata)


def test_traced_and_other_code_see_what_either_sets() -> None:
    def f(g: Any) -> Tensor:
        g.ndata["y"] = g.ndata["x"] * 2
        _untraced()
        return g.ndata["y"] + g.ndata["count"]

    theirs, ours = graph(), graph()
    results = []
    for call, g in ((f, theirs), (gnnc.compile(f), ours)):
        KEPT[:] = [g]
        results.append(call(g))
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(contents(ours), contents(theirs))


@torch._dynamo.disable
def _of_dgl(graphs: list[Any]) -> Tensor:
    return torch.stack([g.ndata["x"] for g in graphs if isinstance(g, dgl.DGLGraph)])


def test_other_code_is_given_graphs_of_dgl() -> None:
    same(lambda g: _of_dgl([g, g]) * 2 + g.ndata["x"])


def test_a_compiled_function_in_another() -> None:
    def inner(g: Any) -> Tensor:
        g.ndata["i"] = g.ndata["y"] + 1
        return g.ndata["i"]

    of_inner = gnnc.compile(inner)

    def outer(g: Any) -> Tensor:
        g.ndata["y"] = g.ndata["x"] * 3
        return of_inner(g) + g.ndata["i"]

    compiled = same(outer)
    assert gnnc.explain(compiled).fallbacks == []


def test_nothing_of_a_graph_is_kept_alive() -> None:
    def f(g: Any) -> Tensor:
        g.ndata["y"] = g.ndata["x"] * 2
        return g.ndata["y"].sum()

    compiled, g = gnnc.compile(f), graph()
    compiled(g)
    y, x, dead = weakref.ref(g.ndata["y"]), weakref.ref(g.ndata["x"]), weakref.ref(g)
    del g.ndata["y"]
    gc.collect()
    assert y() is None
    del g
    gc.collect()
    assert dead() is None and x() is None
