"""What a model computes on a batch is, in the mean and in its spread, what it computes on batches
of DGL's samplers, and on those of PyG's rule."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Key, NeighborSampler, Picks

NODES, EDGES, COPIES, SEED = 8, 40, 4000, 2
SRC, DST = np.random.default_rng(5).integers(0, NODES, (2, EDGES))
X = np.random.default_rng(6).normal(size=NODES)
OFFSETS = np.arange(COPIES) * NODES
ALL_SRC = (SRC + OFFSETS[:, None]).ravel()
ALL_DST = (DST + OFFSETS[:, None]).ravel()
SEEDS = OFFSETS + SEED
"""Copies of one small graph with cycles: a seed in each is drawn for independently."""

Values = NDArray[np.float64]


def mean_of(h: Values, src: NDArray, dst: NDArray, count: int) -> Values:
    """Each node's own number, and half the mean of its neighbours'."""
    sums = np.bincount(dst, h[src], minlength=count)
    return h[:count] + 0.5 * sums / np.maximum(np.bincount(dst, minlength=count), 1)


def check_equal_spread(a: Values, b: Values) -> None:
    """What DGL draws depends on how its threads are scheduled, so right numbers may fail: once in
    50,000 runs."""
    assert stats.ttest_ind(a, b, equal_var=False).pvalue > 1e-5
    assert stats.levene(a, b).pvalue > 1e-5
    assert a.std() > 0.01


def ours(pick: Picks, blocks: bool) -> Values:
    n = NODES * COPIES
    graph = in_edges(ALL_SRC, ALL_DST, n, n)
    batch = NeighborSampler(graph, [2, 3], pick=pick, blocks=blocks).sample(SEEDS, Key(11))
    h = np.tile(X, COPIES)[batch.nodes[0].ids]
    for hop in (1, 0):
        if blocks:
            block = batch.block(hop)
            h = mean_of(h, *block.index, block.targets)
        else:
            h = mean_of(h, *batch.edges[0].index, h.size)
    return h[:COPIES]


@pytest.mark.parametrize("pick", ["uniform", "labor"])
def test_against_dgl(pick: Picks):
    from gnnc.bench import dgl_shim

    dgl_shim.install()
    torch, dgl = pytest.importorskip("torch"), pytest.importorskip("dgl")
    graph = dgl.graph((torch.from_numpy(ALL_SRC), torch.from_numpy(ALL_DST)))
    kind = dgl.dataloading.NeighborSampler if pick == "uniform" else dgl.dataloading.LaborSampler
    dgl.seed(3)
    torch.manual_seed(3)
    _, _, blocks = kind([3, 2]).sample(graph, torch.from_numpy(SEEDS))
    h = np.tile(X, COPIES)[blocks[0].srcdata[dgl.NID].numpy()]
    for block in blocks:
        src, dst = (ends.numpy() for ends in block.edges())
        h = mean_of(h, src, dst, block.num_dst_nodes())
    check_equal_spread(ours(pick, blocks=True), h)


def expanded_once(rng: random.Random) -> float:
    """PyG's rule, spelled out for one graph: edges are drawn for the nodes that the last hop met
    first, and all layers see all edges."""
    nodes, edges, first = [SEED], [], 0
    for k in (2, 3):
        here, first = nodes[first:], len(nodes)
        for v in here:
            into = np.flatnonzero(DST == v).tolist()
            for e in rng.sample(into, min(k, len(into))):
                edges.append(e)
                if SRC[e] not in nodes:
                    nodes.append(int(SRC[e]))
    place = {v: i for i, v in enumerate(nodes)}
    src, dst = (np.array([place[int(ends[e])] for e in edges], int) for ends in (SRC, DST))
    h = X[nodes]
    for _ in range(2):
        h = mean_of(h, src, dst, h.size)
    return float(h[0])


def test_against_the_rule_of_pyg():
    rng = random.Random(0)
    theirs = np.array([expanded_once(rng) for _ in range(COPIES)])
    mine = ours("uniform", blocks=False)
    check_equal_spread(mine, theirs)
    assert stats.ks_2samp(mine, theirs).pvalue > 0.001
    assert not np.isclose(mine.var(), ours("uniform", blocks=True).var(), rtol=0.05)
