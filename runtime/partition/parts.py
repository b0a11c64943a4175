"""What each rank stores of a partitioned graph: its nodes, its edges, the rows it exchanges.

An edge lies with its destination. Its source is a node of the rank, then it is *local*, or one of
another rank, then it is *remote* and the source a *ghost*, whose row the rank receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from .edges import Edges, Int32, Int64
from .measure import check_owner
from .types import Types, runs


@dataclass(frozen=True)
class NodesOfPart:
    """The nodes of one rank.

    Attributes:
        rank, ranks: which of how many.
        nodes: of the whole graph.
        owned: int64, the nodes of the rank, ascending.
        ghosts: int64, the nodes of other ranks that it reads, by owner, those of one ascending:
            rows received of one rank after the other lie as these.
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
    sent: Int32
    send_counts: Int64
    receive_counts: Int64


@dataclass(frozen=True)
class EdgesOfPart:
    """The edges of one rank, of one type where there are types.

    Attributes:
        local: how many local edges there are; these come first.
        ends: int64 [2, edges], sources and destinations as places in `owned`; sources of remote
            edges are places in `ghosts`, and count on from the owned nodes. Where nodes have types,
            places are among those of a type, and count on from the owned ones of that type.
        numbers: int64 [edges], those that the edges have in the whole graph, among those of their
            type, ascending among local ones and among remote ones.
    """

    local: int
    ends: Int64
    numbers: Int64


@dataclass(frozen=True)
class Part(EdgesOfPart, NodesOfPart):
    """The part of one rank of a graph without types."""


@dataclass(frozen=True)
class TypedPart(NodesOfPart):
    """The part of one rank of a graph with types of nodes and edges, or of one type of each;
    `edges` are those of each type."""

    edges: tuple[EdgesOfPart, ...]


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
    (of_all,) = _filled(found)
    return Part(**vars(of_all), **found.nodes)


def make_typed_part(rank: int, ranks: int, owner: Int32, edges: Edges, types: Types) -> TypedPart:
    """The same of a graph with types.

    Raises:
        ValueError: as `PartOfEdges` does.
    """
    found = PartOfEdges(rank, ranks, owner, edges, types)
    return TypedPart(edges=_filled(found), **found.nodes)


def _filled(part: PartOfEdges) -> tuple[EdgesOfPart, ...]:
    ends = [np.empty(2 * n, np.int64) for n in part.edges]
    numbers = [np.empty(n, np.int64) for n in part.edges]
    part.fill(ends, numbers)
    ends = [e.reshape(2, -1) for e in ends]
    return tuple(map(EdgesOfPart, part.local, ends, numbers))


def make_parts(ranks: int, owner: Int32, edges: Edges) -> Iterator[Part]:
    """The parts of all ranks, one after the other, in two passes over the edges each."""
    for rank in range(ranks):
        yield make_part(rank, ranks, owner, edges)


class PartOfEdges:
    """The part of one rank of edges that need not fit in memory.

    Attributes:
        edges: how many the rank has of each type.
        local: how many of them are local.
        nodes: what `NodesOfPart` has, by name.

    Raises:
        ValueError: `rank` is none of the `ranks`, the types have other nodes or edges, or as
            `check_owner` does.
    """

    def __init__(
        self, rank: int, ranks: int, owner: Int32, edges: Edges, types: Types | None = None
    ) -> None:
        if not 0 <= rank < ranks:
            raise ValueError(f"rank: {rank}, and they are 0 to {ranks - 1}")
        check_owner(owner, edges.nodes, ranks)
        first = np.array([0, edges.nodes]) if types is None else types.first
        if first[-1] != edges.nodes:
            raise ValueError(f"types: of {first[-1]} nodes, and there are {edges.nodes}")
        self._rank, self._owner, self._graph, self._types = rank, owner, edges, types
        count = _Count(rank, owner, edges, types)
        self.local = tuple(count.local)
        self.edges = tuple(map(sum, zip(count.local, count.remote, strict=True)))
        owned, ghosts = np.flatnonzero(owner == rank), np.flatnonzero(count.is_ghost)
        ghosts = ghosts[np.argsort(owner[ghosts], kind="stable")]
        reader, sent = np.divmod(count.pairs(), max(1, edges.nodes))
        self.nodes: dict[str, Any] = {
            "rank": rank,
            "ranks": ranks,
            "nodes": edges.nodes,
            "owned": owned,
            "ghosts": ghosts,
            "sent": np.searchsorted(owned, sent).astype(np.int32),
            "send_counts": np.bincount(reader, minlength=ranks),
            "receive_counts": np.bincount(owner[ghosts], minlength=ranks),
        }
        self._place = np.full(edges.nodes, -1, np.int32)
        for low, high in pairwise(first):
            here, far = (x[(low <= x) & (x < high)] for x in (owned, ghosts))
            self._place[here] = np.arange(len(here), dtype=np.int32)
            self._place[far] = len(here) + np.arange(len(far), dtype=np.int32)

    def fill(self, ends: Sequence[Numbers], numbers: Sequence[Numbers]) -> None:
        """Writes the edges of each type, in one pass: `ends` as one row after the other.

        Raises:
            ValueError: the edges are not those of the pass before.
        """
        at = [[0, local] for local in self.local]
        stops = list(map(list, zip(self.local, self.edges, strict=True)))
        for k, first, src, dst in runs(self._graph, self._types):
            mine, reads_mine = self._owner[dst] == self._rank, self._owner[src] == self._rank
            for far, chosen in enumerate((mine & reads_mine, mine & ~reads_mine)):
                (kept,) = np.nonzero(chosen)
                low, high = at[k][far], at[k][far] + len(kept)
                if high > stops[k][far]:
                    raise ValueError("edges: there are more than in the pass before")
                of_all, last = ends[k], self.edges[k]
                of_all[low:high] = self._place[src[kept]].astype(np.int64)
                of_all[last + low : last + high] = self._place[dst[kept]].astype(np.int64)
                numbers[k][low:high] = first + kept
                at[k][far] = high
        if at != stops:
            raise ValueError("edges: there are fewer than in the pass before")


class _Count:
    """How many edges of each type a rank has, and which rows cross."""

    def __init__(self, rank: int, owner: Int32, edges: Edges, types: Types | None) -> None:
        kinds = 1 if types is None else len(types.edges)
        self.local, self.remote = [0] * kinds, [0] * kinds
        self.is_ghost = np.zeros(edges.nodes, np.bool_)
        self._pairs: Int64 = np.zeros(0, np.int64)
        self._new_pairs: list[Int64] = []
        for k, _, src, dst in runs(edges, types):
            mine, reads_mine = owner[dst] == rank, owner[src] == rank
            far = mine & ~reads_mine
            self.local[k] += int(np.count_nonzero(mine & reads_mine))
            self.remote[k] += int(np.count_nonzero(far))
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
