"""Batches of graphs, and one row a graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from .both import check, heterograph, homogeneous, ours, rows, theirs, whole

SIZES = [(4, 9), (1, 0), (6, 12)]
"""Nodes and edges of the graphs of a batch; one has no edge."""


def batched(library: Any) -> Any:
    graphs = [homogeneous(library, n, e, seed=n) for n, e in SIZES]
    for g in graphs:
        g.ndata["i"] = g.nodes().float()
        g.edata["j"] = torch.arange(g.num_edges()).float()
    return library.batch(graphs)


def inputs() -> dict[str, Tensor]:
    return {"x": rows(11, 3), "w": rows(11, 1, seed=1), "e": rows(21, 2, seed=2)}


def test_together_and_apart():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        twice = library.batch([g, homogeneous(library)], ndata=None, edata=None)
        parts = library.unbatch(g)
        split = library.unbatch(g, torch.tensor([5, 6]), torch.tensor([9, 12]))
        return (
            [whole(p) for p in (g, twice, *parts, *split)],
            (g.batch_size, g.batch_num_nodes(), g.batch_num_edges()),
            (twice.batch_size, twice.batch_num_nodes(), twice.batch_num_edges()),
            whole(library.slice_batch(g, 2, store_ids=True)),
            whole(library.batch([g], ndata=["i"], edata=[])),
        )

    check(batched, program)


def test_of_several_types():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        both = library.batch([g, g])
        counts = [both.batch_num_nodes(t) for t in g.ntypes]
        edges = [both.batch_num_edges(e) for e in g.canonical_etypes]
        return whole(both), counts, edges, [whole(part) for part in library.unbatch(both)]

    check(heterograph, program)


def test_what_keeps_the_batch():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        def told(g: Any) -> Any:
            return g.batch_size, g.batch_num_nodes(), g.batch_num_edges()

        kept = [g.local_var(), g.clone(), g.int(), library.reverse(g), library.add_self_loop(g)]
        before = [told(k) for k in kept]
        g.remove_edges([0, 5, 14])
        g.remove_nodes([2, 7])
        return before, told(g)

    check(batched, program)


def test_counts_that_a_user_sets():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"], g.edata["e"] = given["x"], given["e"]
        g.set_batch_num_nodes(torch.tensor([5, 6]))
        g.set_batch_num_edges(torch.tensor([20, 1]))
        return library.sum_nodes(g, "x"), library.mean_edges(g, "e")

    check(lambda library: homogeneous(library, 11, 21), program, inputs())


@pytest.mark.parametrize("make", [batched, lambda library: homogeneous(library, 11, 21)])
@pytest.mark.parametrize("op", ["sum", "mean", "max"])
def test_readouts(op: str, make: Any):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"], g.ndata["w"], g.edata["e"] = given["x"], given["w"], given["e"]
        return (
            getattr(library, f"{op}_nodes")(g, "x"),
            getattr(library, f"{op}_nodes")(g, "x", "w"),
            getattr(library, f"{op}_edges")(g, "e"),
            library.readout_nodes(g, "x", op=op),
            library.readout_edges(g, "e", op=op),
        )

    check(make, program, inputs())


def test_softmax_and_broadcast():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"], g.edata["e"] = given["x"], given["e"]
        of_graphs = library.sum_nodes(g, "x")
        return (
            library.softmax_nodes(g, "x"),
            library.softmax_edges(g, "e"),
            library.broadcast_nodes(g, of_graphs),
            library.broadcast_edges(g, of_graphs),
        )

    check(batched, program, inputs())


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("sortby", [None, 1])
@pytest.mark.parametrize("k", [2, 5])
def test_highest_rows(descending: bool, sortby: int | None, k: int):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"] = given["x"]
        options: dict[str, Any] = {"descending": descending, "sortby": sortby}
        nodes, places = library.topk_nodes(g, "x", k, **options)
        # Where a graph has fewer rows the places are those of padding, in no order.
        real = places.lt(torch.tensor([4, 1, 6]).view(-1, *[1] * (places.dim() - 1)))
        # DGL's numbers are wrong where a graph has no edge.
        part = library.batch([homogeneous(library, 4, 9), homogeneous(library, 4, 12)])
        part.edata["e"] = given["e"]
        return nodes, places.masked_fill(~real, -1), library.topk_edges(part, "e", k, **options)[0]

    check(batched, program, inputs())


def test_merged():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        other = homogeneous(library, 14, 5)
        other.ndata["x"], other.edata["e"] = torch.zeros(14, 3).type_as(given["x"]), given["f"]
        g.ndata["x"], g.edata["e"] = given["x"], given["e"]
        return whole(library.merge([g, other])), whole(library.merge([other, g]))

    check(
        lambda library: homogeneous(library, 11, 21), program, {**inputs(), "f": rows(5, 2, seed=5)}
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda library, g: library.batch([]),
        lambda library, g: library.batch([g, homogeneous(library)]),
        lambda library, g: library.batch([g], ndata="x"),
        lambda library, g: library.batch([g], ndata=["missing"]),
        lambda library, g: library.batch([library.to_block(g)]),
        lambda library, g: library.unbatch(g, torch.tensor([11]), torch.tensor([1, 20])),
        lambda library, g: library.unbatch(g, {"unknown": torch.tensor([11])}),
    ],
)
def test_mistakes(wrong: Any):
    for library in (ours, theirs):
        with pytest.raises(library.DGLError):
            wrong(library, batched(library))
