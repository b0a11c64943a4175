"""Dynamo traces calls on a graph whole, and one trace serves graphs of all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

import gnnc.dgl as dgl
import gnnc.dgl.function as fn

SIZES = [(5, 17), (8, 30), (21, 40)]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def homogeneous(nodes: int, edges: int) -> dgl.DGLGraph:
    """A graph whose last node no edge leads to."""
    drawn = torch.Generator().manual_seed(nodes)
    src = torch.randint(nodes, (edges,), generator=drawn)
    dst = torch.randint(nodes - 1, (edges,), generator=drawn)
    return dgl.graph((src, dst), num_nodes=nodes)


def heterograph(nodes: int, edges: int) -> dgl.DGLGraph:
    def ends(sources: int, targets: int) -> tuple[Tensor, Tensor]:
        return torch.arange(edges) % (sources - 1), torch.arange(edges) % (targets - 1)

    more = nodes + 2
    return dgl.heterograph(
        {
            ("a", "x", "b"): ends(nodes, more),
            ("b", "y", "a"): ends(more, nodes),
            ("a", "z", "a"): ends(nodes, nodes),
        },
        {"a": nodes, "b": more},
    )


def block(nodes: int, edges: int) -> dgl.DGLGraph:
    return dgl.to_block(homogeneous(nodes, edges), torch.arange(nodes))


def batched(nodes: int, edges: int) -> dgl.DGLGraph:
    return dgl.batch([homogeneous(nodes, edges), homogeneous(nodes + 3, edges + 2)])


def check(
    function: Callable[..., Any], make: Callable[[int, int], dgl.DGLGraph], traces: int = 1
) -> None:
    """One trace without a break for all sizes, and eager's results and gradients."""
    counter = CompileCounter()
    compiled = torch.compile(function, backend=counter, dynamic=True, fullgraph=True)
    for nodes, edges in SIZES:
        g = make(nodes, edges)
        x = torch.randn(g.num_src_nodes(g.srctypes[0]), 3, requires_grad=True)
        wanted, got = function(g, x), compiled(g, x)
        assert torch.allclose(got, wanted, atol=1e-6)
        gradients = [torch.autograd.grad(out.square().sum(), x)[0] for out in (wanted, got)]
        assert torch.allclose(*gradients, atol=1e-5)
        frames = [*g._source_frames.values(), *g._edge_frames.values()]
        assert all(set(frame) <= {"_ID"} for frame in frames)
    assert counter.frame_count == traces


def built_in(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    with g.local_scope():
        g.srcdata["h"] = x
        g.dstdata["v"] = x[: g.num_dst_nodes()]
        g.apply_edges(fn.u_dot_v("h", "v", "score"))
        g.edata["a"] = dgl.ops.edge_softmax(g, g.edata["score"])
        g.update_all(fn.u_mul_e("h", "a", "m"), fn.sum("m", "sum"))
        g.update_all(fn.copy_u("h", "m"), fn.max("m", "max"))
        g.update_all(
            fn.v_sub_u("v", "h", "m"), fn.mean("m", "mean"), lambda n: {"mean": n.data["mean"] * 2}
        )
        return g.dstdata["sum"] + g.dstdata["max"] + g.dstdata["mean"]


def users(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    g = g.local_var()
    g.ndata["h"] = x
    g.apply_edges(lambda edges: {"e": edges.src["h"] * edges.dst["h"]})
    g.update_all(lambda edges: {"m": edges.data["e"].tanh()}, fn.sum("m", "o"))
    g.apply_nodes(lambda nodes: {"o": nodes.data["o"] * nodes.data["h"]})
    return g.ndata.pop("o")


def degrees(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    """As `GraphConv` asks and normalises."""
    if (g.in_degrees() == 0).any():
        x = x * 2
    if not torch.all(g.in_degrees() > 0):
        x = x + 1
    norm = torch.pow(g.out_degrees().to(x).clamp(min=1), -0.5)
    other = g.in_degrees().float().clamp(min=1) ** -0.5
    return x * norm.reshape(-1, 1) / other.unsqueeze(-1)


def structure(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    """Graphs that are made inside."""
    looped = dgl.add_self_loop(g)
    if (looped.in_degrees() == 0).any():
        raise AssertionError("each node has a loop")
    out = x
    for graph in (looped, dgl.reverse(g), g["_E"]):
        with graph.local_scope():
            graph.ndata["h"] = out
            graph.update_all(fn.copy_u("h", "m"), fn.mean("m", "h"))
            out = graph.ndata["h"]
    src, dst = g.edges()
    return out.index_add(0, dst, x[src]) * g.num_nodes() / g.num_edges()


def relations(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    with g.local_scope():
        g.nodes["a"].data["h"] = x
        g.nodes["b"].data["h"] = x.new_ones(g.num_nodes("b"), 3)
        pair = fn.copy_u("h", "m"), fn.mean("m", "h")
        g.multi_update_all({e: pair for e in g.canonical_etypes}, "sum")
        for etype in g.canonical_etypes:
            part = g[etype]
            part.update_all(fn.u_add_v("h", "h", "m"), fn.sum("m", "h"))
        return g.nodes["a"].data["h"] + g.ndata["h"]["b"].sum(0)


def parts(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    """Subgraphs by masks, whose sizes are not known."""
    with g.local_scope():
        g.ndata["h"] = x
        few = dgl.edge_subgraph(g, x.sum(1)[g.edges()[0]] > 0, relabel_nodes=False)
        few.update_all(fn.copy_u("h", "m"), fn.sum("m", "h"))
        same = dgl.remove_self_loop(g)
        same.update_all(fn.copy_u("h", "m"), fn.sum("m", "h"))
        nodes = g.subgraph(x.sum(1) > 0)
        nodes.update_all(fn.u_add_v("h", "h", "m"), fn.max("m", "h"))
        return few.ndata["h"] + same.ndata["h"] + nodes.ndata["h"].sum(0)


def readouts(g: dgl.DGLGraph, x: Tensor) -> Tensor:
    with g.local_scope():
        g.ndata["h"] = x
        g.ndata["w"] = dgl.softmax_nodes(g, "h")
        mean, most = dgl.mean_nodes(g, "h", "w"), dgl.max_nodes(g, "h")
        return dgl.broadcast_nodes(g, mean * most) + dgl.sum_nodes(g, "h").sum(0)


@pytest.mark.parametrize("function", [users, degrees, structure, built_in, readouts])
def test_homogeneous(function: Callable[..., Any]):
    check(function, homogeneous)


def test_parts():
    with torch._dynamo.config.patch(
        capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True
    ):
        check(parts, homogeneous)


def test_blocks():
    check(built_in, block)


def test_several_types():
    check(relations, heterograph)


def test_batches():
    check(readouts, batched)


def test_an_answer_is_part_of_a_trace():
    """Whether each node has an edge decides what a layer does, so it has a trace for each."""

    def function(g: dgl.DGLGraph, x: Tensor) -> Tensor:
        if (g.in_degrees() == 0).any():
            raise dgl.DGLError("there are nodes without an edge")
        return x * g.in_degrees().unsqueeze(-1)

    whole = [dgl.add_self_loop(homogeneous(*size)) for size in SIZES]
    counter = CompileCounter()
    compiled = torch.compile(function, backend=counter, dynamic=True)
    for g in whole:
        x = torch.randn(g.num_nodes(), 3)
        assert compiled(g, x).equal(function(g, x))
    assert counter.frame_count == 1
    with pytest.raises(dgl.DGLError, match="without an edge"):
        compiled(homogeneous(5, 17), torch.randn(5, 3))


def test_features_that_stay():
    """What a compiled function sets on a graph is there after it."""

    def function(g: dgl.DGLGraph, x: Tensor) -> None:
        g.ndata["h"] = x
        g.update_all(fn.copy_u("h", "m"), fn.sum("m", "out"))
        g.edata["e"] = x[g.edges()[0]]

    compiled = torch.compile(function, backend="eager", dynamic=True, fullgraph=True)
    g, other = homogeneous(5, 17), homogeneous(5, 17)
    x = torch.randn(5, 3)
    compiled(g, x)
    function(other, x)
    assert sorted(g.ndata) == ["h", "out"] and g.ndata["out"].equal(other.ndata["out"])
    assert g.edata["e"].equal(other.edata["e"])


def test_degrees_are_as_tensors():
    """All but what is asked of them is the tensor's."""

    def function(g: dgl.DGLGraph, x: Tensor) -> list[Tensor]:
        d = g.in_degrees()
        return [
            *(d + 1, 1 + d, d - 1, 1 - d, d * 2, 2 * d, d / 2, 1.0 / (d + 1), d**2),
            *(-d, d // 2, d % 2, x[:, 0] * d, x / d.unsqueeze(1).clamp(min=1)),
            *(torch.clamp(d, min=1), torch.stack([d, d]), torch.cat([d, d]), d.view(-1, 1)),
            *(torch.where(d > 0, 1.0 / d, 0.0), x.masked_fill((d == 0).unsqueeze(1), 0)),
            *((d == 0).sum(), torch.sum(d != 0), d.max(), (d > 0).float(), x[:, 0] * (d >= 1)),
            *((d == 0) & (x[:, 0] > 0), x[d % 5], d[2:], x.new_zeros(d.shape), x.new_zeros(len(d))),
            *(torch.nn.functional.embedding(d % 5, x), d.to(x), (d <= 3)[1:], d < 1 + d),
        ]

    compiled = torch.compile(function, backend="eager", dynamic=True, fullgraph=True)
    for size in SIZES:
        g = homogeneous(*size)
        x = torch.randn(g.num_nodes(), 3)
        for got, wanted in zip(compiled(g, x), function(g, x), strict=True):
            assert torch.equal(got, wanted)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "asked",
    [
        lambda d: (d == 0).any(),
        lambda d: torch.any(d == 0),
        lambda d: (d < 1).any().item(),
        lambda d: torch.eq(d, 0).any(),
        lambda d: bool((d <= 0).any()),
        lambda d: not (d > 0).all(),
        lambda d: not torch.all(d >= 1),
        lambda d: not (d != 0).all(),
    ],
)
def test_questions(asked: Callable[[Any], Any]):
    """Each way to ask whether a node has no edge has an answer without leaving the trace."""

    def function(g: dgl.DGLGraph, x: Tensor) -> Tensor:
        return x * 2 if asked(g.in_degrees()) else x * 3

    compiled = torch.compile(function, backend="eager", dynamic=True, fullgraph=True)
    for g in (homogeneous(5, 17), dgl.add_self_loop(homogeneous(5, 17))):
        x = torch.ones(5, 3)
        assert compiled(g, x).equal(function(g, x))
