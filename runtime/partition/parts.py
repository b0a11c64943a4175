"""What each rank stores of a partitioned graph: its nodes, its edges, the rows it exchanges.

An edge lies with its destination. Its source is a node of the rank, then it is *local*, or one of
another rank, then it is *remote* and the source a *ghost*, whose row the rank receives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .edges import Edges, Int32, Int64
from .measure import check_owner


@dataclass(frozen=True)
class Part:
    """The part of one rank.

    Attributes:
        rank, ranks: which of how many.
        nodes: of the whole graph.
        local: how many local edges there are; these come first.
        owned: int64, the nodes of the rank, ascending.
        ghosts: int64, the nodes of other ranks that it reads, by owner, those of one ascending:
            rows received of one rank after the other lie as these.
        ends: int64 [2, edges], sources and destinations as places in `owned`; sources of remote
            edges are places in `ghosts`, and count on from the owned nodes.
        numbers: int64 [edges], those that the edges have in the whole graph, ascending among local
            ones and among remote ones.
        sent: int32, places in `owned` of the rows that other ranks read, by reader, those for one
            in the order of its ghosts; a row that two read is there twice.
        send_counts, receive_counts: int64, a number a rank: how many of `sent` and of `ghosts` are
            for it and of it.
    """

    rank: int
    ranks: int
    nodes: int
    local: int
    owned: Int64
    ghosts: Int64
    ends: Int64
    numbers: Int64
    sent: Int32
    send_counts: Int64
    receive_counts: Int64


class Numbers(Protocol):
    """What a pass writes its edges to: an array of int64, or a file of them."""

    def __setitem__(self, at: slice, block: Int64, /) -> None: ...


def make_part(rank: int, ranks: int, owner: Int32, edges: Edges) -> Part:
    """The part of one rank, in two passes over the edges.

    What is held at once is the part, some bytes a node and a block of edges. `owner` has the rank
    of each node, int32.

    Raises:
        ValueError: as `PartOfEdges` does.
    """
    found = PartOfEdges(rank, ranks, owner, edges)
    ends, numbers = np.empty(2 * found.edges, np.int64), np.empty(found.edges, np.int64)
    found.fill(ends, numbers)
    return Part(ends=ends.reshape(2, -1), numbers=numbers, **found.rest)


def make_parts(ranks: int, owner: Int32, edges: Edges) -> Iterator[Part]:
    """The parts of all ranks, one after the other, in two passes over the edges each."""
    for rank in range(ranks):
        yield make_part(rank, ranks, owner, edges)


class PartOfEdges:
    """The part of one rank of edges that need not fit in memory.

    Attributes:
        edges: how many the rank has.
        rest: what `Part` has besides `ends` and `numbers`, by name.

    Raises:
        ValueError: `rank` is none of the `ranks`, or as `check_owner` does.
    """

    def __init__(self, rank: int, ranks: int, owner: Int32, edges: Edges) -> None:
        if not 0 <= rank < ranks:
            raise ValueError(f"rank: {rank}, and they are 0 to {ranks - 1}")
        check_owner(owner, edges.nodes, ranks)
        self._rank, self._owner, self._graph = rank, owner, edges
        owned = np.flatnonzero(owner == rank)
        self._place = np.full(edges.nodes, -1, np.int32)
        self._place[owned] = np.arange(len(owned), dtype=np.int32)
        count = _Count(rank, owner, edges)
        self.edges = count.local + count.remote
        ghosts = np.flatnonzero(count.is_ghost)
        ghosts = ghosts[np.argsort(owner[ghosts], kind="stable")]
        reader, sent = np.divmod(count.pairs(), max(1, edges.nodes))
        self.rest: dict[str, Any] = {
            "rank": rank,
            "ranks": ranks,
            "nodes": edges.nodes,
            "local": count.local,
            "owned": owned,
            "ghosts": ghosts,
            "sent": self._place[sent],
            "send_counts": np.bincount(reader, minlength=ranks),
            "receive_counts": np.bincount(owner[ghosts], minlength=ranks),
        }

    def fill(self, ends: Numbers, numbers: Numbers) -> None:
        """Writes the edges, in one pass: `ends` as one row after the other.

        Raises:
            ValueError: the edges are not those of the pass before.
        """
        source = self._place.copy()
        ghosts = self.rest["ghosts"]
        source[ghosts] = len(self.rest["owned"]) + np.arange(len(ghosts), dtype=np.int32)
        at, stop = [0, self.rest["local"]], (self.rest["local"], self.edges)
        first = 0
        for src, dst in self._graph:
            mine, reads_mine = self._owner[dst] == self._rank, self._owner[src] == self._rank
            for far, chosen in enumerate((mine & reads_mine, mine & ~reads_mine)):
                (kept,) = np.nonzero(chosen)
                low, high = at[far], at[far] + len(kept)
                if high > stop[far]:
                    raise ValueError("edges: there are more than in the pass before")
                ends[low:high] = source[src[kept]].astype(np.int64)
                ends[self.edges + low : self.edges + high] = self._place[dst[kept]].astype(np.int64)
                numbers[low:high] = first + kept
                at[far] = high
            first += len(src)
        if tuple(at) != stop:
            raise ValueError("edges: there are fewer than in the pass before")


class _Count:
    """How many edges a rank has, and which rows cross."""

    def __init__(self, rank: int, owner: Int32, edges: Edges) -> None:
        self.local = self.remote = 0
        self.is_ghost = np.zeros(edges.nodes, np.bool_)
        self._pairs: Int64 = np.zeros(0, np.int64)
        self._new_pairs: list[Int64] = []
        for src, dst in edges:
            mine, reads_mine = owner[dst] == rank, owner[src] == rank
            far = mine & ~reads_mine
            self.local += int(np.count_nonzero(mine & reads_mine))
            self.remote += int(np.count_nonzero(far))
            self.is_ghost[src[far]] = True
            sends = ~mine & reads_mine
            pairs = owner[dst[sends]].astype(np.int64) * edges.nodes + src[sends]
            self._new_pairs.append(np.unique(pairs))
            if sum(map(len, self._new_pairs)) > len(self._pairs):
                self.pairs()

    def pairs(self) -> Int64:
        """Rows that others read, ascending: the reader times the number of nodes, and the node."""
        self._pairs = np.unique(np.concatenate([self._pairs, *self._new_pairs]))
        self._new_pairs.clear()
        return self._pairs
