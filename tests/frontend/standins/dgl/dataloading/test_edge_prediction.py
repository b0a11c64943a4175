"""Batches of edges: pairs, negatives, and what is sampled around the ends of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ..both import ours, theirs
from .graphs import EDGES, NODES, check_ids, edges, graph, typed, types

EIDS = torch.tensor([5, 8, 31, 100])
TYPED_EIDS = {"buys": torch.tensor([1, 3]), "follows": torch.tensor([4])}
"""Ascending: DGL sorts ids that it excludes in place, and its pairs then have those of others."""
REVERSE = torch.arange(EDGES).flip(0)


class Fixed:
    """Negatives that are the same in both libraries."""

    def __call__(self, g: Any, eids: Any) -> Any:
        if isinstance(eids, dict):
            return {("user", "buys", "item"): (torch.tensor([9, 0]), torch.tensor([2, 2]))}
        return torch.tensor([1, 1, 40]), torch.tensor([0, 2, 59])


def both(make: Any, eids: Any, **arguments: Any) -> list[Any]:
    made: list[Any] = []
    for library in (ours, theirs):
        full = library.dataloading.MultiLayerFullNeighborSampler(1)
        sampler = library.dataloading.as_edge_prediction_sampler(full, **arguments)
        made.append(sampler.sample(make(library), eids))
    return made


MODES: list[tuple[Any, Any, dict[str, Any]]] = [
    (graph, EIDS, {}),
    (graph, EIDS, {"exclude": "self", "negative_sampler": Fixed()}),
    (graph, EIDS, {"exclude": "reverse_id", "reverse_eids": REVERSE}),
    (graph, EIDS, {"exclude": lambda ids: ids + 1}),
    (typed, TYPED_EIDS, {"negative_sampler": Fixed()}),
    (typed, TYPED_EIDS, {"exclude": "self"}),
    (
        typed,
        TYPED_EIDS,
        {"exclude": "reverse_types", "reverse_etypes": {"buys": "sells", "sells": "buys"}},
    ),
]


@pytest.mark.parametrize(("make", "eids", "arguments"), MODES)
def test_pairs(make: Any, eids: Any, arguments: dict[str, Any]):
    got, wanted = both(make, eids, **arguments)
    assert len(got) == len(wanted)
    g = make(ours)
    assert got[1].ntypes == g.ntypes and types(got[1]) == types(g)
    for etype in types(g):
        assert edges(got[1], etype) == edges(wanted[1], etype)
        assert edges(got[-1][0], etype) == edges(wanted[-1][0], etype)
        if "negative_sampler" in arguments:
            assert ends(got[2], etype) == ends(wanted[2], etype)
    for ntype in g.ntypes:
        ids = got[1].nodes[ntype].data["_ID"]
        assert torch.equal(ids, got[-1][0].dstnodes[ntype].data["_ID"])
        assert torch.equal(ids, wanted[1].nodes[ntype].data["_ID"].sort().values)
        if "negative_sampler" in arguments:
            assert torch.equal(ids, got[2].nodes[ntype].data["_ID"])
    check_ids(g, got[1])


def ends(made: Any, etype: Any) -> list[tuple[int, int]]:
    src, dst = made.edges(etype=etype)
    u = made.nodes[etype[0]].data["_ID"][src].tolist()
    v = made.nodes[etype[2]].data["_ID"][dst].tolist()
    return sorted(zip(u, v, strict=True))


def test_edges_in_any_order():
    loading, g, eids = ours.dataloading, graph(ours), EIDS.flip(0)
    sampler = loading.as_edge_prediction_sampler(loading.NeighborSampler([-1]), exclude="self")
    _, pairs, blocks = sampler.sample(g, eids)
    assert pairs.edata["_ID"].tolist() == eids.tolist() == EIDS.tolist()[::-1]
    check_ids(g, pairs)
    assert not set(blocks[0].edata["_ID"].tolist()) & set(EIDS.tolist())


def test_features_of_pairs():
    loading, g = ours.dataloading, graph(ours)
    sampler = loading.as_edge_prediction_sampler(
        loading.NeighborSampler([2]), prefetch_labels=["w"]
    )
    _, pairs, _ = sampler.sample(g, EIDS)
    assert torch.equal(pairs.edata["w"], g.edata["w"][EIDS])
    assert torch.equal(pairs.ndata["x"], g.ndata["x"][pairs.ndata["_ID"]])


def drawn(sampler: Any, g: Any, eids: Any) -> tuple[Tensor, Tensor]:
    ours.seed(3)
    return sampler(g, eids)


def test_negatives_of_each_source():
    g = graph(ours)
    src, dst = drawn(ours.dataloading.negative_sampler.Uniform(500), g, EIDS)
    assert torch.equal(src, g.edges()[0][EIDS].repeat_interleave(500))
    assert dst.dtype == torch.int64 and dst.unique().shape == (NODES,)
    counts = np.bincount(dst.numpy(), minlength=NODES)
    assert abs(counts - 2000 / NODES).max() < 6 * (2000 / NODES) ** 0.5
    again = drawn(ours.dataloading.negative_sampler.Uniform(500), g, EIDS)
    assert torch.equal(dst, again[1])


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_negatives_of_all_pairs(replace: bool, loops: bool):
    g = graph(ours)
    kind = ours.dataloading.negative_sampler.GlobalUniform
    src, dst = drawn(kind(400, exclude_self_loops=not loops, replace=replace), g, EIDS)
    assert not g.has_edges_between(src, dst).any()
    assert bool((src == dst).any()) is loops
    pairs = (src * NODES + dst).unique().shape[0]
    assert src.shape == (1600,) and (pairs == 1600) is not replace


def test_fewer_pairs_than_asked_for():
    kind = ours.dataloading.negative_sampler.GlobalUniform
    whole = ours.graph(([0, 0, 1], [0, 1, 0]))
    src, dst = drawn(kind(5, exclude_self_loops=False), whole, torch.tensor([0]))
    assert (src.tolist(), dst.tolist()) == ([1], [1])
    src, dst = drawn(kind(5, replace=True), whole, torch.tensor([0]))
    assert src.shape == dst.shape == (0,)


@pytest.mark.parametrize("k", [1, 4, 8])
def test_pairs_are_equally_likely(k: int):
    """All free pairs come as often, also where most of them are taken at once."""
    g = ours.graph(([0, 1, 2, 2], [1, 2, 0, 1]), num_nodes=4)  # 8 pairs without an edge or a loop
    sampler = ours.dataloading.negative_sampler.GlobalUniform(k)
    ours.seed(1)
    found = torch.zeros(4, 4)
    for _ in range(200):
        src, dst = sampler(g, torch.tensor([0]))
        assert src.shape == (k,)
        found[src, dst] += 1
    often = found[found > 0]
    assert often.shape == (8,)
    assert (often - 25 * k).abs().max() <= 5 * (25 * k * (1 - k / 8)) ** 0.5


def test_negatives_by_type():
    g = typed(ours)
    kind = ours.dataloading.negative_sampler.GlobalUniform
    found: Any = drawn(kind(3), g, TYPED_EIDS)
    assert set(found) == {("user", "buys", "item"), ("user", "follows", "user")}
    src, dst = found["user", "buys", "item"]
    assert src.shape == (6,) and not g.has_edges_between(src, dst, etype="buys").any()


def test_errors():
    loading, g = ours.dataloading, graph(ours)
    make, inner = loading.as_edge_prediction_sampler, loading.NeighborSampler([2])

    class Plain(loading.Sampler):
        """Takes no edges to exclude."""

    for call, kind, words in (
        (lambda: make(Plain()), TypeError, "third argument"),
        (lambda: make(inner, exclude="all"), ValueError, "'all'"),
        (lambda: make(inner, exclude="reverse_id"), ValueError, "reverse_eids"),
        (lambda: make(inner, exclude="reverse_types"), ValueError, "reverse_etypes"),
        (lambda: make(inner).sample(g, torch.tensor([EDGES])), ours.DGLError, str(EDGES)),
        (lambda: make(inner).sample(typed(ours), EIDS), ours.DGLError, "dict"),
        (lambda: loading.negative_sampler.Uniform(-1), ValueError, "k must"),
        (lambda: loading.negative_sampler.Uniform(1)(typed(ours), EIDS), ours.DGLError, "dict"),
        (
            lambda: make(
                inner, negative_sampler=lambda g, e: (torch.tensor([0]), torch.tensor([NODES]))
            ).sample(g, EIDS),
            ours.DGLError,
            "negative targets",
        ),
    ):
        with pytest.raises(kind, match=words):
            call()
