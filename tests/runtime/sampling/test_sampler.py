"""Batches of neighbours: what is in them, whatever is drawn."""

import itertools

import numpy as np
import pytest

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.sampling import kernels
from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Graph, Key, NeighborSampler, Seeds, graph_of

from .checks import check_batch, equal_batches, random_edges

NODES = 200


def homogeneous(weighted: bool = False) -> tuple[Graph, list]:
    src, dst = random_edges(0, NODES, 3000)
    weights = np.random.default_rng(1).random(3000) + 0.1 if weighted else None
    return graph_of(in_edges(src, dst, NODES, NODES, weights=weights)), [(src, dst)]


def typed() -> tuple[Graph, list]:
    """Papers cite papers, authors write papers, papers have authors."""
    ends, counts = ((0, 0), (1, 0), (0, 1)), (NODES, 90)
    edges = [random_edges(i, counts[b], 1500, counts[a]) for i, (a, b) in enumerate(ends)]
    relations = tuple(
        in_edges(src, dst, counts[a], counts[b])
        for (src, dst), (a, b) in zip(edges, ends, strict=True)
    )
    return Graph(counts, relations, ends), edges


SEEDS = np.array([7, 3, 199, 0, 3, 150, 42])


@pytest.mark.parametrize("pick", ["uniform", "weighted"])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_batches(fine: None, pick: str, replace: bool, blocks: bool, disjoint: bool, wide: bool):
    graph, ends = homogeneous(pick == "weighted")
    for fanouts in ([4, 3, 2], [0, 5], [-1, 2], [1], [60, 2], []):
        sampler = NeighborSampler(
            graph, fanouts, replace=replace, pick=pick, blocks=blocks, disjoint=disjoint, wide=wide
        )
        batches = [sampler.sample(SEEDS, Key(9, 2, 5), threads=t) for t in (1, 2, 4, 1)]
        assert all(equal_batches(a, b) for a, b in itertools.pairwise(batches))
        batch = batches[0]
        assert batch.hops == len(fanouts)
        assert np.array_equal(batch.nodes[0].ids[: SEEDS.size], SEEDS)
        assert batch.nodes[0].ids.dtype == (np.int64 if wide else np.int32)
        lists = [[k] for k in fanouts]
        check_batch(batch, graph, ends, lists, replace=replace, blocks=blocks)


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("disjoint", [False, True])
def test_typed_batches(fine: None, blocks: bool, disjoint: bool):
    graph, ends = typed()
    fanouts = [[3, 2, 5], [2, 0, -1], [1, 4, 2]]
    sampler = NeighborSampler(graph, fanouts, blocks=blocks, disjoint=disjoint)
    for seeds in ((SEEDS, SEEDS[:0]), (SEEDS[:0], SEEDS % 90), (SEEDS, np.array([5, 6]))):
        batches = [sampler.sample(Seeds(seeds), Key(1), threads=t) for t in (1, 2, 4)]
        assert all(equal_batches(a, b) for a, b in itertools.pairwise(batches))
        check_batch(batches[0], graph, ends, fanouts, blocks=blocks)
        assert [n.met[0] for n in batches[0].nodes] == [s.size for s in seeds]


def test_all_neighbours_are_those_that_the_matrix_reaches():
    graph, ((src, dst),) = homogeneous()
    seeds = np.array([5, 17, 3])
    batch = NeighborSampler(graph, [-1, -1, -1]).sample(seeds)
    reached, edges = set(seeds.tolist()), np.zeros(len(src), bool)
    for hop in range(3):
        edges |= np.isin(dst, list(reached))
        assert set(batch.edges[0].ids[: batch.edges[0].found[hop + 1]]) == set(
            np.flatnonzero(edges)
        )
        reached |= set(src[edges].tolist())
        assert set(batch.nodes[0].ids[: batch.nodes[0].met[hop + 1]]) == reached
    assert batch.edges[0].ids.size == edges.sum()


def test_blocks_with_all_neighbours_are_the_rows_of_the_matrix():
    """Two layers of sums over blocks are two products with the matrix, at the seeds."""
    graph, ((src, dst),) = homogeneous()
    batch = NeighborSampler(graph, [-1, -1], blocks=True).sample(SEEDS)
    x = np.random.default_rng(0).random(NODES)
    wanted = x
    for _ in range(2):
        wanted = np.bincount(dst, wanted[src], minlength=NODES)
    h = x[batch.nodes[0].ids]
    for hop in (1, 0):
        block = batch.block(hop)
        assert h.size == block.sources
        h = np.bincount(block.index[1], h[block.index[0]], minlength=block.targets)
    assert np.allclose(h, wanted[SEEDS])


def test_a_repeated_seed_has_the_same_neighbours():
    graph, _ = homogeneous()
    batch = NeighborSampler(graph, [3]).sample(np.array([4, 9, 4]))
    per_row = [batch.edges[0].ids[batch.edges[0].index[1] == i].tolist() for i in range(3)]
    assert per_row[0] == per_row[2] != per_row[1]


@pytest.mark.parametrize("blocks", [False, True])
def test_edges_lead_from_the_first_of_equal_seeds(blocks: bool):
    graph = in_edges(np.array([0]), np.array([1]), 2, 2)
    batch = NeighborSampler(graph, [1], blocks=blocks).sample(np.array([0, 1, 0, 1]))
    assert batch.nodes[0].ids.tolist() == [0, 1, 0, 1]
    assert batch.edges[0].index.tolist() == [[0, 0], [1, 3]]


def test_graphs_that_are_kept_apart_draw_independently():
    """A hub has neighbours of its own in the graph of each seed, which do not depend on others."""
    leaves, hub = np.arange(1, 101), 0
    src = np.concatenate([leaves, np.full(100, hub)])
    graph = in_edges(src, np.concatenate([np.full(100, hub), leaves]), 101, 101)
    sampler = NeighborSampler(graph, [1, 3], disjoint=True)

    def of_hub(seeds: np.ndarray) -> list[list[int]]:
        batch = sampler.sample(seeds, Key(1))
        nodes, edges = batch.nodes[0], batch.edges[0]
        at = np.flatnonzero(nodes.ids == hub)
        assert np.array_equal(nodes.graphs[at], np.arange(seeds.size))
        return [edges.ids[edges.ptr[i] : edges.ptr[i + 1]].tolist() for i in at]

    together = of_hub(leaves[:20])
    assert len({tuple(one) for one in together}) == 20
    assert [of_hub(leaves[i : i + 1])[0] for i in range(20)] == together


@pytest.mark.parametrize("k", [1, 4, 5, 17, 48, 49])
def test_rows_that_are_drawn_together_are_as_each_by_itself(
    monkeypatch: pytest.MonkeyPatch, k: int
):
    """Also with more rows than are taken together, and with some that nothing is drawn for."""
    src, dst = random_edges(8, 300, 12_000)
    graph = in_edges(src, dst, 300, 300)
    together = NeighborSampler(graph, [k], disjoint=True).sample(np.arange(300), Key(2, 3, 4))
    path = toolchain.compile_source("#define BY_ROW 1\n" + kernels.source())
    library = kernels.bind(path)
    monkeypatch.setattr(kernels, "library", lambda: library)
    by_row = NeighborSampler(graph, [k], disjoint=True).sample(np.arange(300), Key(2, 3, 4))
    assert equal_batches(together, by_row)


def test_draws_depend_on_key_and_node_alone():
    """Of one hop: another batch, another key, another hop."""
    graph, _ = homogeneous()
    sampler = NeighborSampler(graph, [3, 3])

    def taken(seeds: np.ndarray, key: Key, seed: int) -> list[int]:
        batch = sampler.sample(seeds, key)
        at = int(np.flatnonzero(batch.nodes[0].ids == seed)[0])
        return batch.edges[0].ids[batch.edges[0].index[1] == at].tolist()

    hubs = np.argsort(-graph.relations[0].degrees(np.arange(NODES)))[:10]
    keys = [Key(1, 2, 3), Key(2, 2, 3), Key(1, 3, 3), Key(1, 2, 4), Key(1 + 2**32, 2, 3)]
    drawn = [[taken(hubs, key, v) for v in hubs] for key in keys]
    assert all(a != b for a, b in itertools.combinations(drawn, 2))
    assert [taken(hubs[v : v + 1], keys[0], hubs[v]) for v in range(10)] == drawn[0]
    batch = NeighborSampler(graph, [3, 3], blocks=True).sample(hubs, keys[0])
    assert not np.array_equal(batch.block(0).ids, batch.block(1).ids[: batch.block(0).ids.size])


def test_isolated_seeds_and_graphs_without_edges():
    empty = in_edges(np.zeros(0, int), np.zeros(0, int), 5, 5)
    for blocks, replace in itertools.product([False, True], repeat=2):
        sampler = NeighborSampler(empty, [2, -1], blocks=blocks, replace=replace)
        batch = sampler.sample(np.array([4, 0]))
        assert batch.nodes[0].ids.tolist() == [4, 0] and batch.edges[0].index.shape == (2, 0)
        assert sampler.sample(np.zeros(0, int)).nodes[0].ids.size == 0
    lonely = in_edges(np.array([0]), np.array([1]), 3, 3)
    batch = NeighborSampler(lonely, [2, 2]).sample(np.array([2, 1]))
    assert batch.nodes[0].ids.tolist() == [2, 1, 0] and batch.edges[0].ptr.tolist() == [0, 0, 1, 1]


def test_batches_outlive_the_sampler_and_each_other():
    graph, _ = homogeneous()
    sampler = NeighborSampler(graph, [5, 5])
    first = sampler.sample(SEEDS)
    copy = first.nodes[0].ids.copy()
    ids = first.nodes[0].ids
    del first
    for step in range(20):
        sampler.sample(SEEDS, Key(0, 0, step))
    del sampler
    assert np.array_equal(ids, copy)


def test_memory_of_long_batches_is_used_again_but_not_while_they_live():
    src, dst = random_edges(3, 20_000, 100_000)
    graph = in_edges(src, dst, 20_000, 20_000)
    used, lengths = NeighborSampler(graph, [10, 10]), [3000, 5, 6000, 2900, 3000, 1, 3100]
    assert NeighborSampler(graph, [10, 10]).sample(np.arange(3000)).edges[0].index.nbytes > 2**18
    held = [used.sample(np.arange(n), Key(n)) for n in lengths]
    for n, batch in zip(lengths, held, strict=True):
        fresh = NeighborSampler(graph, [10, 10])
        assert equal_batches(batch, fresh.sample(np.arange(n), Key(n)))
    places = {batch.nodes[0].ids.ctypes.data for batch in held}
    assert len(places) == len(lengths)


@pytest.mark.parametrize(
    "seeds, error, message",
    [
        (np.array([0, NODES]), IndexError, r"seeds\[1\] is 200"),
        (np.array([-1]), IndexError, r"seeds\[0\] is -1"),
        (np.array([0.5]), TypeError, "seeds must hold integers"),
        (np.array([[1]]), ValueError, "seeds must have one dimension"),
        (Seeds((SEEDS, SEEDS)), ValueError, "seeds of 2 types, not 1"),
        (Seeds((SEEDS,), times=SEEDS), ValueError, "only where each has a graph of its own"),
    ],
)
def test_bad_seeds(seeds: object, error: type, message: str):
    sampler = NeighborSampler(homogeneous()[0], [2])
    with pytest.raises(error, match=message):
        sampler.sample(seeds)
    assert sampler.sample(SEEDS).nodes[0].ids.size > SEEDS.size


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(fanouts=[2, -2]), r"fanouts\[1\] is -2"),
        (dict(fanouts=[2**31]), r"fanouts\[0\] is 2147483648"),
        (dict(fanouts=[[1, 2]]), r"fanouts\[0\] has 2 numbers for 1 relations"),
        (dict(fanouts=[1], pick="best"), "pick is 'best', none of uniform, weighted"),
        (dict(fanouts=[1], pick="weighted"), "needs weights"),
        (dict(fanouts=[1], pick="last"), "needs times"),
        (dict(fanouts=[1], pick="labor", replace=True), "no edge twice"),
    ],
)
def test_bad_samplers(arguments: dict, message: str):
    with pytest.raises(ValueError, match=message):
        NeighborSampler(homogeneous()[0], **arguments)


@pytest.mark.parametrize("fanouts", [[2, 1.5], [2, [1.5]]])
def test_fanouts_that_are_no_integers(fanouts: list):
    with pytest.raises(TypeError, match=r"fanouts\[1\] is 1.5; it must be an integer"):
        NeighborSampler(homogeneous()[0], fanouts)


def test_bad_graphs():
    relation = in_edges(np.zeros(0, int), np.zeros(0, int), 3, 4)
    with pytest.raises(ValueError, match="relation 0 leads from 3 nodes to 4"):
        Graph((3, 3), (relation,), ((0, 1),))
    with pytest.raises(ValueError, match=r"ends\[0\] are -2 and 1, but there are types 0 to 1"):
        Graph((3, 4), (relation,), ((-2, 1),))
    with pytest.raises(ValueError, match="two ends a relation"):
        Graph((3,), (relation,), ())


def test_keys_are_integers_of_any_kind():
    graph, _ = homogeneous()
    sampler = NeighborSampler(graph, [np.int64(3)])
    numbers = Key(np.uint64(2**63), np.int32(2), np.int64(3))
    assert equal_batches(*(sampler.sample(SEEDS, k) for k in (numbers, Key(2**63, 2, 3))))
    with pytest.raises(TypeError):
        Key(0.5)


@pytest.mark.parametrize("field, value", [("seed", -1), ("epoch", 2**32), ("step", 2**64)])
def test_bad_keys(field: str, value: int):
    with pytest.raises(ValueError, match=field):
        Key(**{field: value})


def test_threads_of_python_share_a_sampler():
    from concurrent.futures import ThreadPoolExecutor

    sampler = NeighborSampler(homogeneous()[0], [5, 5, 5])
    alone = [sampler.sample(SEEDS, Key(0, 0, i)) for i in range(40)]
    with ThreadPoolExecutor(4) as threads:
        together = threads.map(lambda i: sampler.sample(SEEDS, Key(0, 0, i), threads=1), range(40))
    assert all(equal_batches(a, b) for a, b in zip(alone, together, strict=True))
