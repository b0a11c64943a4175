"""What each rank stores of a partitioned graph: its nodes, its edges, the rows it exchanges.

An edge lies with its destination. Its source is a node of the rank, then it is *local*, or one of
another rank, then it is *remote* and the source a *ghost*, whose row the rank receives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from .edges import Edges, Int32, Int64
from .measure import check_owner


@dataclass(frozen=True)
class Part:
    """The part of one rank.

    Attributes:
        rank, ranks: which of how many.
        nodes: of the whole graph.
        owned: int64, the nodes of the rank, ascending.
        ghosts: int64, the nodes of other ranks that it reads, by owner, those of one ascending:
            rows received of one rank after the other lie as these.
        local_src, local_dst: int32, the ends of local edges as places in `owned`.
        local_edges: int64, the numbers of these edges in the whole graph, ascending.
        remote_src, remote_dst, remote_edges: the same of remote edges, the sources as places in
            `ghosts`.
        sent: int32, places in `owned` of the rows that other ranks read, by reader, those for one
            in the order of its ghosts; a row that two read is there twice.
        send_counts, receive_counts: int64, a number a rank: how many of `sent` and of `ghosts` are
            for it and of it.
    """

    rank: int
    ranks: int
    nodes: int
    owned: Int64
    ghosts: Int64
    local_src: Int32
    local_dst: Int32
    local_edges: Int64
    remote_src: Int32
    remote_dst: Int32
    remote_edges: Int64
    sent: Int32
    send_counts: Int64
    receive_counts: Int64


NUMBERS = ("rank", "ranks", "nodes")
DTYPES = {
    f.name: np.dtype(np.int32 if f.type == "Int32" else np.int64)
    for f in fields(Part)
    if f.name not in NUMBERS
}
"""The arrays of a part by name, with their dtypes."""


def make_part(rank: int, ranks: int, owner: Int32, edges: Edges) -> Part:
    """The part of one rank, in one pass over the edges.

    What is held at once is the part, 8 bytes a node and a block of edges. `owner` has the rank of
    each node, int32.

    Raises:
        ValueError: `rank` is none of the `ranks`, or as `check_owner` does.
    """
    if not 0 <= rank < ranks:
        raise ValueError(f"rank: {rank}, and they are 0 to {ranks - 1}")
    check_owner(owner, edges.nodes, ranks)
    owned = np.flatnonzero(owner == rank)
    place = np.full(edges.nodes, -1, np.int32)
    place[owned] = np.arange(len(owned), dtype=np.int32)
    pass_ = _Pass(rank, ranks, edges.nodes, owner)
    for src, dst in edges:
        pass_.read(src, dst)
    local_src, local_dst, local_edges = pass_.local.joined()
    remote_src, remote_dst, remote_edges = pass_.remote.joined()
    ghosts = np.unique(remote_src)
    ghosts = ghosts[np.argsort(owner[ghosts], kind="stable")]
    of_ghost = place.copy()
    of_ghost[ghosts] = np.arange(len(ghosts), dtype=np.int32)
    pairs = pass_.pairs()
    nodes = max(1, edges.nodes)
    return Part(
        rank,
        ranks,
        edges.nodes,
        owned,
        ghosts,
        place[local_src],
        place[local_dst],
        local_edges,
        of_ghost[remote_src],
        place[remote_dst],
        remote_edges,
        place[pairs % nodes],
        np.bincount(pairs // nodes, minlength=ranks),
        np.bincount(owner[ghosts], minlength=ranks),
    )


def make_parts(ranks: int, owner: Int32, edges: Edges) -> Iterator[Part]:
    """The parts of all ranks, one after the other, in a pass over the edges each."""
    for rank in range(ranks):
        yield make_part(rank, ranks, owner, edges)


class _Pass:
    """What one rank keeps of the edges, block by block."""

    def __init__(self, rank: int, ranks: int, nodes: int, owner: Int32) -> None:
        self.rank, self.ranks, self.nodes, self.owner = rank, ranks, nodes, owner
        self.local, self.remote = _Kept(), _Kept()
        self.first = 0
        self._pairs: Int64 = np.zeros(0, np.int64)
        self._new_pairs: list[Int64] = []

    def read(self, src: Int64, dst: Int64) -> None:
        mine, reads_mine = self.owner[dst] == self.rank, self.owner[src] == self.rank
        self.local.keep(src, dst, np.flatnonzero(mine & reads_mine), self.first)
        self.remote.keep(src, dst, np.flatnonzero(mine & ~reads_mine), self.first)
        sends = ~mine & reads_mine
        pairs = self.owner[dst[sends]].astype(np.int64) * self.nodes + src[sends]
        self._new_pairs.append(np.unique(pairs))
        if sum(map(len, self._new_pairs)) > len(self._pairs):
            self.pairs()
        self.first += len(src)

    def pairs(self) -> Int64:
        """Rows that others read, ascending: the reader times the number of nodes, and the node."""
        self._pairs = np.unique(np.concatenate([self._pairs, *self._new_pairs]))
        self._new_pairs.clear()
        return self._pairs


class _Kept:
    """Edges with their numbers, collected block by block."""

    def __init__(self) -> None:
        self.blocks: list[Int64] = [np.zeros((3, 0), np.int64)]

    def keep(self, src: Int64, dst: Int64, edges: Int64, first: int) -> None:
        self.blocks.append(np.stack([src[edges], dst[edges], first + edges]))

    def joined(self) -> Int64:
        return np.concatenate(self.blocks, axis=1)
