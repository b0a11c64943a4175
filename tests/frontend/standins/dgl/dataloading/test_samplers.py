"""Batches are as those of DGL's samplers: equal where all edges are taken, else with as many edges
of each kind; ids and features are those of the graph."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from ..both import ours, same, theirs
from .graphs import (
    COUNTS,
    NODES,
    SEEDS,
    check_ids,
    check_prefix,
    degrees,
    drawn,
    edges,
    graph,
    typed,
    types,
)

TYPED_SEEDS = {"item": torch.tensor([4, 1]), "user": torch.tensor([9, 30, 2])}
FANOUT = {"follows": 2, "buys": 1, "sells": -1, "near": 3}
ALL = [(graph, SEEDS), (typed, TYPED_SEEDS)]


def batches(name: str, make: Any, seeds: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The same sampler of both libraries, on the same graph."""
    made = [getattr(library.dataloading, name)(*args, **kwargs) for library in (ours, theirs)]
    return drawn(made[0], make(ours), seeds), made[1].sample(make(theirs), seeds)


def check_blocks(got: Any, wanted: Any, make: Any) -> None:
    """As many targets and edges, ids that are right, and each layer's inputs the next one's."""
    for inputs, outputs, blocks in (got, wanted):
        g = make(ours)
        assert len(blocks) == 2
        for block in blocks:
            assert block.is_block and types(block) == types(g)
            check_prefix(block)
            check_ids(g, block)
        same(inputs, blocks[0].srcdata["_ID"])
        given = outputs if isinstance(outputs, dict) else {g.ntypes[0]: outputs}
        for ntype in g.ntypes:
            between = [blocks[0].dstnodes[ntype].data["_ID"], blocks[1].srcnodes[ntype].data["_ID"]]
            assert torch.equal(*between)
            last = blocks[-1].dstnodes[ntype].data["_ID"]
            same(last, given.get(ntype, last[:0]))
    for etype in types(got[2][0]):
        assert degrees(got[2][-1], etype) == degrees(wanted[2][-1], etype)


@pytest.mark.parametrize(("make", "seeds"), ALL)
def test_all_neighbours(make: Any, seeds: Any):
    got, wanted = batches("MultiLayerFullNeighborSampler", make, seeds, 2)
    check_blocks(got, wanted, make)
    for mine, real in zip(got[2], wanted[2], strict=True):
        for etype in types(mine):
            assert edges(mine, etype) == edges(real, etype)
        for ntype in mine.ntypes:
            ids = [b.srcnodes[ntype].data["_ID"].sort().values for b in (mine, real)]
            assert torch.equal(*ids)


@pytest.mark.parametrize(
    ("make", "seeds", "fanouts"),
    [(graph, SEEDS, [3, 2]), (typed, TYPED_SEEDS, [2, 3]), (typed, TYPED_SEEDS, [1, FANOUT])],
)
@pytest.mark.parametrize("replace", [False, True])
def test_some_neighbours(make: Any, seeds: Any, fanouts: Any, replace: bool):
    got, wanted = batches("NeighborSampler", make, seeds, fanouts, replace=replace)
    check_blocks(got, wanted, make)
    first = got[2][0]
    for etype in types(first):
        most = fanouts[0]
        whole = make(ours).in_degrees(etype=etype)
        for node, count in degrees(first, etype).items():
            degree = int(whole[node])
            assert count == (most if replace and degree else min(degree, most))


def test_what_may_be_drawn():
    for name in ("mask", "prob"):
        got, wanted = batches("NeighborSampler", graph, SEEDS, [-1, 4], **{name: "kept"})
        check_blocks(got, wanted, graph)
        kept = graph(ours).edata["kept"]
        assert all(kept[block.edata["_ID"]].all() for block in got[2])
        assert degrees(got[2][0]).items() >= degrees(got[2][1]).items() - {
            (n, 4) for n in range(NODES)
        }
    got, _ = batches("NeighborSampler", typed, TYPED_SEEDS, [2, 2], prob="w")
    assert got[2][0].num_edges() > 0


def test_weights_that_change():
    g, sampler = graph(ours), ours.dataloading.NeighborSampler([-1], prob="p")
    for rest in (2, 5):
        g.edata["p"] = (torch.arange(g.num_edges()) % 7 == rest).float()
        (block,) = sampler.sample(g, SEEDS)[2]
        assert set((block.edata["_ID"] % 7).tolist()) == {rest}
        g.edata["p"].zero_()
        assert sampler.sample(g, SEEDS)[2][0].num_edges() == 0


@pytest.mark.parametrize(("make", "seeds"), ALL)
def test_excluded_edges(make: Any, seeds: Any):
    g = make(ours)
    out = {e: torch.arange(0, g.num_edges(e), 2) for e in types(g)}
    exclude = out if len(out) > 1 else next(iter(out.values()))
    made = [x.dataloading.MultiLayerFullNeighborSampler(2) for x in (ours, theirs)]
    got, wanted = (s.sample(make(x), seeds, exclude) for s, x in zip(made, (ours, theirs)))
    check_blocks(got, wanted, make)
    for mine, real in zip(got[2], wanted[2], strict=True):
        for etype in types(mine):
            assert edges(mine, etype) == edges(real, etype)
            assert all(e % 2 for _, _, e in edges(mine, etype))


def test_labor():
    got, wanted = batches("LaborSampler", graph, SEEDS, [50, 50])
    check_blocks(got, wanted, graph)  # a fan-out above every degree takes all
    assert edges(got[2][0]) == edges(wanted[2][0])
    got, _ = batches("LaborSampler", graph, SEEDS, [2, 2], layer_dependency=True)
    check_ids(graph(ours), got[2][0])
    assert edges(got[2][1]).keys() <= edges(got[2][0]).keys()  # the layers share their numbers


@pytest.mark.parametrize(("make", "seeds"), ALL)
def test_shadow(make: Any, seeds: Any):
    g = make(ours)
    out = {e: torch.arange(0, g.num_edges(e), 3) for e in types(g)}
    exclude = out if len(out) > 1 else next(iter(out.values()))
    for kept in (None, exclude):
        made = [x.dataloading.ShaDowKHopSampler([-1]) for x in (ours, theirs)]
        got, wanted = (s.sample(make(x), seeds, kept) for s, x in zip(made, (ours, theirs)))
        assert not got[2].is_block
        same(got[0], got[2].ndata["_ID"])
        same(got[1], seeds)
        for etype in types(g):
            assert edges(got[2], etype) == edges(wanted[2], etype)
        for ntype in g.ntypes:
            ids = got[2].nodes[ntype].data["_ID"]
            given = seeds if isinstance(seeds, torch.Tensor) else seeds.get(ntype, ids[:0])
            assert torch.equal(ids[: given.shape[0]], given)


def test_shadow_expands_every_node_at_every_hop():
    """As DGL, which the rule of PyG differs from: with a fan-out of 1, a seed with two neighbours
    may meet both, one at each hop."""
    g = ours.graph(([1, 2], [0, 0]))
    sampler = ours.dataloading.ShaDowKHopSampler([1, 1])
    sizes = {sampler.sample(g, torch.tensor([0]))[2].num_nodes() for _ in range(40)}
    assert sizes == {2, 3}


@pytest.mark.parametrize(("mode", "budget"), [("node", 12), ("edge", 9), ("walk", (4, 3))])
def test_saint(mode: str, budget: Any):
    g = graph(ours)
    made = ours.dataloading.SAINTSampler(mode, budget).sample(g, torch.tensor([0]))
    ids = made.ndata["_ID"]
    most = {"node": 12, "edge": 18, "walk": 16}[mode]
    assert 1 < made.num_nodes() <= most and torch.equal(ids, ids.unique())
    assert edges(made) == edges(ours.node_subgraph(g, ids))
    assert torch.equal(made.ndata["x"], g.ndata["x"][ids])


def test_clusters(tmp_path: Path):
    parts = torch.arange(NODES) % 7
    with open(tmp_path / "clusters", "wb") as file:
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), parts.bincount().cumsum(0)])
        pickle.dump((offsets, parts.argsort(stable=True)), file)
    real = theirs.dataloading.ClusterGCNSampler(graph(theirs), 7, str(tmp_path / "clusters"))
    mine = ours.dataloading.ClusterGCNSampler(graph(ours), 7, parts=parts, prefetch_ndata=["x"])
    chosen = torch.tensor([5, 0, 2])
    got, wanted = mine.sample(graph(ours), chosen), real.sample(graph(theirs), chosen)
    assert torch.equal(got.ndata["_ID"], wanted.ndata["_ID"])
    assert torch.equal(got.ndata["x"], wanted.ndata["x"])
    assert edges(got) == edges(wanted)


def test_clusters_that_are_found():
    g = graph(ours)
    sampler = ours.dataloading.ClusterGCNSampler(g, 4)
    sizes = sampler.partition_offset.diff()
    assert torch.equal(sampler.partition_node_ids.sort().values, g.nodes())
    assert sizes.shape == (4,) and sizes.min() > 0
    whole = sampler.sample(g, torch.arange(4))
    assert whole.num_edges() == g.num_edges()


def test_features():
    g = graph(ours)
    _, _, blocks = ours.dataloading.NeighborSampler([3, 2]).sample(g, SEEDS)
    for block in blocks:
        assert set(block.srcdata) == set(block.dstdata) == {"x", "y", "_ID"}
        for data in (block.srcdata, block.dstdata):
            assert torch.equal(data["x"], g.ndata["x"][data["_ID"]])
        assert torch.equal(block.edata["w"], g.edata["w"][block.edata["_ID"]])
    with blocks[0].local_scope():
        del blocks[0].srcdata["y"]
        blocks[0].srcdata["x"] = blocks[0].srcdata["x"] + 1
        assert set(blocks[0].srcdata) == {"x", "_ID"}
    assert torch.equal(blocks[0].srcdata["y"], blocks[0].srcdata["_ID"])
    assert torch.equal(blocks[0].srcdata["x"], g.ndata["x"][blocks[0].srcdata["_ID"]])


def test_ids_of_int32():
    g = typed(ours).int()
    seeds = {ntype: ids.int() for ntype, ids in TYPED_SEEDS.items()}
    inputs, _, blocks = ours.dataloading.NeighborSampler([2]).sample(g, seeds)
    assert blocks[0].idtype == torch.int32
    assert {ids.dtype for ids in inputs.values()} == {torch.int32}
    assert blocks[0].edges["buys"].data["_ID"].dtype == torch.int32
    assert inputs["user"].max() < COUNTS.user


def refused(call: Any) -> tuple[type[BaseException], str]:
    with pytest.raises(Exception) as raised:
        call()
    return raised.type, str(raised.value)


def test_errors():
    from gnnc.dgl import DGLError

    g, loading = graph(ours), ours.dataloading
    sampler, mixed = loading.NeighborSampler([2]), typed(ours)
    wanted = {
        lambda: loading.NeighborSampler([2], prob="a", mask="b"): (ValueError, "exclusive"),
        lambda: loading.NeighborSampler([2], edge_dir="up"): (ValueError, "edge_dir"),
        lambda: loading.NeighborSampler([2], edge_dir="out"): (NotImplementedError, "reverse"),
        lambda: loading.NeighborSampler([]): (ValueError, "fanouts"),
        lambda: loading.NeighborSampler([-2]).sample(g, SEEDS): (ValueError, "fanouts"),
        lambda: loading.NeighborSampler([2], prob="no").sample(g, SEEDS): (DGLError, "'no'"),
        lambda: loading.NeighborSampler([2], prob="x").sample(g, SEEDS): (DGLError, "'x'"),
        lambda: loading.NeighborSampler([{"buys": 1}]).sample(mixed, TYPED_SEEDS): (
            DGLError,
            "Fan-out",
        ),
        lambda: loading.NeighborSampler([2], prefetch_labels=["z"]).sample(g, SEEDS): (
            DGLError,
            "'z'",
        ),
        lambda: loading.NeighborSampler([2], prefetch_node_feats=["x"]).sample(
            mixed, TYPED_SEEDS
        ): (DGLError, "by type"),
        lambda: loading.LaborSampler([2], importance_sampling=1): (NotImplementedError, "LABOR-0"),
        lambda: loading.ClusterGCNSampler(mixed, 2): (DGLError, "one node type"),
        lambda: loading.ClusterGCNSampler(g, 2, mode="recursive"): (NotImplementedError, "parts="),
        lambda: loading.ClusterGCNSampler(g, 0): (ValueError, "k must"),
        lambda: loading.ClusterGCNSampler(g, 2, parts=SEEDS): (ValueError, "shape"),
        lambda: loading.ClusterGCNSampler(g, 2, parts=g.nodes()): (ValueError, "below k"),
        lambda: loading.ClusterGCNSampler(g, 2).sample(g, SEEDS): (DGLError, "cluster"),
        lambda: loading.SAINTSampler("hop", 3): (DGLError, "mode"),
        lambda: loading.SAINTSampler("walk", 3): (ValueError, "budget"),
        lambda: loading.SAINTSampler("node", 3).sample(mixed, 0): (DGLError, "one node type"),
        lambda: sampler.sample(g, torch.tensor([NODES])): (DGLError, str(NODES)),
        lambda: sampler.sample(g, SEEDS.int()): (DGLError, "int64"),
        lambda: sampler.sample(mixed, SEEDS): (DGLError, "dict"),
        lambda: sampler.sample(mixed, {"shop": SEEDS, "car": SEEDS}): (DGLError, "car"),
        lambda: sampler.sample(g, SEEDS, torch.tensor([-1])): (DGLError, "-1"),
        lambda: sampler.sample(ours.to_block(g), SEEDS): (DGLError, "block"),
        lambda: sampler.sample(graph(theirs), SEEDS): (TypeError, "from_dgl"),
    }
    for call, (kind, words) in wanted.items():
        found, message = refused(call)
        assert found is kind and words in message, (found, message)
