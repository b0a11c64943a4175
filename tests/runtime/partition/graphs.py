"""Graphs that a partitioner meets, and what must hold of parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from gnnc.runtime.partition.edges import Edges, in_memory
from gnnc.runtime.partition.parts import Part


def ring(nodes: int) -> Edges:
    """Each node reads the one before it."""
    every = np.arange(nodes)
    return in_memory(every, (every + 1) % max(nodes, 1), nodes)


def star(leaves: int) -> Edges:
    """Node 0 reads all others."""
    return in_memory(np.arange(1, leaves + 1), np.zeros(leaves, np.int64), leaves + 1)


def blobs(count: int, size: int, between: int, seed: int = 0) -> Edges:
    """Groups of nodes with many edges inside, both ways, and `between` edges from any to any. The
    nodes of a group are not next to each other."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(count), 6 * size)
    a = group * size + random.integers(0, size, len(group))
    b = group * size + random.integers(0, size, len(group))
    far = random.integers(0, count * size, (2, between))
    a, b = np.concatenate([a, far[0]]), np.concatenate([b, far[1]])
    name = random.permutation(count * size)
    return in_memory(name[np.r_[a, b]], name[np.r_[b, a]], count * size)


@st.composite
def multigraphs(draw: st.DrawFn) -> Edges:
    """Few nodes or none, with loops, equal edges, nodes without edges."""
    nodes = draw(st.integers(0, 12))
    count = draw(st.integers(0, 40)) if nodes else 0
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = random.integers(0, max(nodes, 1), (2, count))
    return in_memory(ends[0], ends[1], nodes)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Edges, np.ndarray, int]:
    """A multigraph, its owners, and how many parts there are, of which some may be empty."""
    edges = draw(multigraphs())
    ranks = draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return edges, random.integers(0, ranks, edges.nodes).astype(np.int32), ranks


def joined(edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    """All edges at once."""
    blocks = list(edges) or [(np.zeros(0, np.int64),) * 2]
    src, dst = (np.concatenate([block[i] for block in blocks]) for i in range(2))
    return src, dst


def check_parts(parts: Sequence[Part], owner: np.ndarray, edges: Edges) -> None:
    """What `Part` promises, of all parts of a graph, said again by sets and loops."""
    src, dst = joined(edges)
    ranks = len(parts)
    seen = np.zeros(len(src), np.int64)
    for rank, part in enumerate(parts):
        assert (part.rank, part.ranks, part.nodes) == (rank, ranks, edges.nodes)
        assert part.owned.tolist() == [v for v in range(edges.nodes) if owner[v] == rank]
        read = {int(u) for u, v in zip(src, dst, strict=True) if owner[v] == rank != owner[u]}
        assert part.ghosts.tolist() == sorted(read, key=lambda u: (owner[u], u))
        own, cut = len(part.owned), part.local
        read_from = np.concatenate([part.owned, part.ghosts])
        np.testing.assert_array_equal(read_from[part.ends[0]], src[part.numbers])
        np.testing.assert_array_equal(part.owned[part.ends[1]], dst[part.numbers])
        assert (part.ends[0, :cut] < own).all() and (part.ends[0, cut:] >= own).all()
        for numbers in (part.numbers[:cut], part.numbers[cut:]):
            assert (np.diff(numbers) > 0).all()
        seen[part.numbers] += 1
        assert len(part.send_counts) == len(part.receive_counts) == ranks
        assert part.send_counts.sum() == len(part.sent)
        assert part.receive_counts.sum() == len(part.ghosts)
    assert (seen == 1).all()
    for reader in parts:
        received = np.split(reader.ghosts, np.cumsum(reader.receive_counts)[:-1])
        for other in parts:
            sent = np.split(other.owned[other.sent], np.cumsum(other.send_counts)[:-1])
            np.testing.assert_array_equal(sent[reader.rank], received[other.rank])
