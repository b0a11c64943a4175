"""The parts of all ranks are the graph, and what one sends is what another receives."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from gnnc.runtime.partition.edges import Edges, in_file, in_memory
from gnnc.runtime.partition.files import DTYPES
from gnnc.runtime.partition.parts import make_part, make_parts

from .graphs import check_parts, joined, partitions, ring


@given(partitions())
@settings(max_examples=150, deadline=None)
def test_parts_are_the_graph(drawn: tuple[Edges, np.ndarray, int]):
    edges, owner, ranks = drawn
    check_parts(list(make_parts(ranks, owner, edges)), owner, edges)


@given(partitions())
@settings(max_examples=60, deadline=None)
def test_blocks_do_not_matter(drawn: tuple[Edges, np.ndarray, int]):
    edges, owner, ranks = drawn
    src, dst = joined(edges)
    blocks = Edges(edges.nodes, lambda: [(src[i : i + 3], dst[i : i + 3])
                                         for i in range(0, len(src), 3)])  # fmt: skip
    for one, other in zip(
        make_parts(ranks, owner, edges), make_parts(ranks, owner, blocks), strict=True
    ):
        for name, dtype in DTYPES.items():
            assert getattr(one, name).dtype == getattr(other, name).dtype == dtype, name
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def test_sums_over_neighbours_by_exchange():
    """What the arrays are for: each rank sends, receives, and adds up."""
    random = np.random.default_rng(0)
    src, dst = random.integers(0, 30, (2, 200))
    edges = in_memory(src, dst, 30)
    owner = random.integers(0, 4, 30).astype(np.int32)
    x = random.integers(0, 9, 30)
    parts = list(make_parts(4, owner, edges))
    mail = [np.split(x[p.owned][p.sent], np.cumsum(p.send_counts)[:-1]) for p in parts]
    found = np.zeros(30, np.int64)
    for part in parts:
        received = np.concatenate([mail[sender][part.rank] for sender in range(4)])
        own = np.zeros(len(part.owned), np.int64)
        np.add.at(own, part.ends[1], np.concatenate([x[part.owned], received])[part.ends[0]])
        found[part.owned] = own
    wanted = np.zeros(30, np.int64)
    np.add.at(wanted, dst, x[src])
    np.testing.assert_array_equal(found, wanted)


def test_edges_of_a_file(tmp_path: Path):
    index = np.random.default_rng(0).integers(0, 50, (2, 300), dtype=np.int32)
    np.save(tmp_path / "edges.npy", index)
    edges = in_file(tmp_path / "edges.npy", block=7)
    assert edges.nodes == index.max() + 1
    assert len(list(edges)) == 43
    np.testing.assert_array_equal(np.stack(joined(edges)), index)
    with pytest.raises(ValueError, match="block: 0"):
        in_file(tmp_path / "edges.npy", block=0)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.zeros(4, np.int64), ValueError, "shape \\(4,\\), not 2 x edges"),
        (np.zeros((2, 4)), TypeError, "holds float64, not integers"),
    ],
)
def test_files_that_hold_no_edges(
    array: np.ndarray, error: type[Exception], text: str, tmp_path: Path
):
    np.save(tmp_path / "edges.npy", array)
    with pytest.raises(error, match=text):
        in_file(tmp_path / "edges.npy")


def test_a_file_that_is_no_array(tmp_path: Path):
    (tmp_path / "edges.npy").write_text("0 1\n1 2\n")
    with pytest.raises(ValueError, match="edges.npy is no .npy file"):
        in_file(tmp_path / "edges.npy")


def test_wrong_edges():
    two, three = np.zeros(2, np.int64), np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="src and dst: .* not two vectors of one length"):
        in_memory(two, three, 5)
    with pytest.raises(ValueError, match="dst: edge 1 has the end 5, of 5 nodes"):
        in_memory(two, np.array([0, 5]), 5)
    with pytest.raises(ValueError, match="src: edge 0 has the end -1"):
        in_memory(np.array([-1]), np.array([0]), 5)
    with pytest.raises(TypeError, match="src: an array of float64"):
        in_memory(np.zeros(2), two, 5)
    with pytest.raises(ValueError, match="nodes: -1"):
        Edges(-1, lambda: [])


def test_wrong_owners():
    edges = ring(4)
    owner = np.array([0, 1, 1, 0], np.int32)
    with pytest.raises(ValueError, match="rank: 2, and they are 0 to 1"):
        make_part(2, 2, owner, edges)
    with pytest.raises(ValueError, match="owner: an array of shape \\(3,\\) for 4 nodes"):
        make_part(0, 2, owner[:3], edges)
    with pytest.raises(ValueError, match="owner: an array of int64"):
        make_part(0, 2, owner.astype(np.int64), edges)
    with pytest.raises(ValueError, match="owner: parts from 0 to 1, and they are 0 to 0"):
        make_part(0, 1, owner, edges)


def test_edges_that_change_between_passes():
    """As those of a file that somebody writes to."""
    for later, text in ((5, "more"), (3, "fewer")):
        counts = iter([4, later])

        def blocks(counts: Iterator[int] = counts) -> list[tuple[np.ndarray, np.ndarray]]:
            ends = np.zeros(next(counts), np.int64)
            return [(ends, ends)]

        with pytest.raises(ValueError, match=f"edges: there are {text} than in the pass before"):
            make_part(0, 1, np.zeros(2, np.int32), Edges(2, blocks))
