"""Loads of real partitions and of numbers."""

from pathlib import Path

import numpy as np
import pytest

from gnnc.frontend.plan.loads import Loads, Numbers, alone, of_folder, of_partition
from gnnc.frontend.tools.datasets import power_law_edges
from gnnc.runtime.partition import edges, files, parts

NODES, EDGES, RANKS = 200, 900, 3


@pytest.fixture
def cut() -> tuple[edges.Edges, np.ndarray]:
    index = power_law_edges(NODES, EDGES)
    owner = np.random.default_rng(0).integers(0, RANKS, NODES).astype(np.int32)
    return edges.in_memory(index[0], index[1], NODES), owner


def test_a_partition_is_that_of_its_parts(cut: tuple[edges.Edges, np.ndarray]):
    graph, owner = cut
    found = of_partition(graph, owner, RANKS)
    for rank, part in enumerate(parts.make_parts(RANKS, owner, graph)):
        assert found.owned[rank] == len(part.owned)
        assert found.local_edges[rank] == part.local
        assert found.remote_edges[rank] == len(part.numbers) - part.local
        assert found.ghosts[rank] == len(part.ghosts)
        assert found.sent[rank] == len(part.sent)
        assert found.owners[rank] == np.count_nonzero(part.receive_counts)
        assert found.readers[rank] == np.count_nonzero(part.send_counts)
        assert found.matrix()[:, rank].tolist() == part.send_counts.tolist()
    assert (found.nodes, found.edges) == (NODES, EDGES)


def test_a_folder_has_the_same(cut: tuple[edges.Edges, np.ndarray], tmp_path: Path):
    graph, owner = cut
    files.save(tmp_path, RANKS, owner, graph)
    read, made = of_folder(tmp_path), of_partition(graph, owner, RANKS)
    for name, value in vars(made).items():
        assert np.array_equal(getattr(read, name), value), name


def test_a_damaged_folder_is_refused(cut: tuple[edges.Edges, np.ndarray], tmp_path: Path):
    graph, owner = cut
    files.save(tmp_path, RANKS, owner, graph)
    next(tmp_path.glob("part-1-*.npz")).write_bytes(b"")
    with pytest.raises(files.BadPartition, match="part-1-"):
        of_folder(tmp_path)


def totals(found: Loads) -> list[float]:
    times = found.ranks / len(found.owned)
    each = (found.owned, found.local_edges + found.remote_edges, found.ghosts, found.remote_edges)
    return [times * float(x.sum()) for x in each]


def test_numbers_are_the_mean_of_drawn_owners():
    """Owners drawn evenly, edges without hubs."""
    random = np.random.default_rng(0)
    src, dst = np.repeat(np.arange(NODES), 5), random.integers(0, NODES, 5 * NODES)
    graph = edges.in_memory(src, dst, NODES)
    owners = (random.integers(0, RANKS, NODES).astype(np.int32) for _ in range(60))
    drawn = np.mean([totals(of_partition(graph, o, RANKS)) for o in owners], axis=0)
    planned = totals(Numbers(NODES, 5 * NODES).loads(RANKS))
    assert planned == pytest.approx(drawn, rel=0.03)


def test_the_share_that_crosses():
    found = Numbers(1000, 8000, across=0.25).loads(4)
    assert found.local_edges.tolist() == [1500] and found.remote_edges.tolist() == [500]
    assert np.allclose(found.matrix().sum(axis=1), found.ghosts)
    none = Numbers(1000, 8000, across=0.0).loads(4)
    assert not none.ghosts.any() and not none.readers.any()


def test_one_rank_has_all():
    for found in (Numbers(10, 40).loads(1), Numbers(10, 40, across=0.5).loads(1), alone(10, 40)):
        assert totals(found) == [10, 40, 0, 0]
        assert found.volume == 0 and not found.matrix().any()


def test_few_rows_are_few_messages():
    """Of 1023 other ranks, no more send something than rows are expected."""
    found = Numbers(2000, 2000, exponent=0.5).loads(1024)
    assert 0 < found.owners[0] <= found.ghosts[0] < 3


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"nodes": 0}, "nodes: 0"),
        ({"edges": -1}, "edges: -1"),
        ({"exponent": -0.1}, "exponent: -0.1"),
        ({"across": 1.1}, "across: 1.1"),
        ({"border": -0.5}, "border: -0.5"),
        ({"imbalance": 0.9}, "imbalance: 0.9"),
    ],
)
def test_refused(wrong: dict[str, float], text: str):
    with pytest.raises(ValueError, match=text):
        Numbers(**{"nodes": 10, "edges": 10, **wrong})  # type: ignore[arg-type]


def test_refused_ranks():
    with pytest.raises(ValueError, match="ranks: 0"):
        Numbers(10, 10).loads(0)
