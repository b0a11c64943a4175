"""The part that a rank has of a graph with types: of each type of nodes and of edges.

A graph with types is cut as one graph, the nodes of all types numbered one after the other, and so
its edges: what is equal is the work of ranks, not the number of nodes of a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ....runtime.partition.edges import Edges, in_memory
from ....runtime.partition.parts import Part
from .chunks import sort_edges
from .cut_tensors import EdgePart, NodePart

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class EdgesOfType:
    """Edges from nodes of one type to those of another: their ends, int64 [2, edges], as numbers
    among the nodes of the types `source` and `target`, places in the list of all. `name` is what
    errors say of them."""

    source: int
    target: int
    ends: Int64
    name: str


def together(nodes: Sequence[int], types: Sequence[EdgesOfType]) -> Edges:
    """The edges of all types as those of one graph; `nodes` has the number of each type.

    Raises:
        ValueError: an edge leads to a node that there is not.
    """
    first = _starts(nodes)
    for t in types:
        for end, n in zip(t.ends, (nodes[t.source], nodes[t.target]), strict=True):
            if end.size and not 0 <= end.min() <= end.max() < n:
                raise ValueError(
                    f"{t.name}: nodes are numbered 0 to {n - 1}, and it has "
                    f"{end.min()} to {end.max()}"
                )
    if len(types) == 1 and len(nodes) == 1:
        return in_memory(types[0].ends[0], types[0].ends[1], nodes[0])
    none = np.zeros(0, np.int64)
    src = np.concatenate([none, *(t.ends[0] + first[t.source] for t in types)])
    dst = np.concatenate([none, *(t.ends[1] + first[t.target] for t in types)])
    return in_memory(src, dst, int(first[-1]))


class TypedParts:
    """A part of all types together as parts of each, whose rows cross in `chunks`: `nodes`
    by type, and `edges` with their ends, int64 [2, edges], as places among the owned nodes of a
    type and behind these its ghosts."""

    def __init__(
        self, part: Part, nodes: Sequence[int], types: Sequence[EdgesOfType], chunks: int
    ) -> None:
        self.part, self.chunks = part, chunks
        if len(nodes) == len(types) == 1:
            nodes_of_all, edges, all_ends = of_one_type(part, types[0].ends.shape[1], chunks)
            self.nodes, self.edges = [nodes_of_all], [(edges, all_ends)]
            return
        self.first = _starts(nodes)
        self.own = np.searchsorted(part.owned, self.first)
        """Where the nodes of each type begin among those of the rank."""
        self.ghost_place = np.empty(len(part.ghosts), np.int64)
        self.nodes = [self._nodes(k, n) for k, n in enumerate(nodes)]
        ends = _starts([t.ends.shape[1] for t in types])
        self.edges = [self._edges(t, *e) for t, e in zip(types, pairwise(ends), strict=True)]

    def _nodes(self, k: int, total: int) -> NodePart:
        part, (low, high) = self.part, self.own[k : k + 2]
        ranks = np.arange(part.ranks)
        is_ghost = (self.first[k] <= part.ghosts) & (part.ghosts < self.first[k + 1])
        is_sent = (low <= part.sent) & (part.sent < high)
        self.ghost_place[is_ghost] = np.arange(np.count_nonzero(is_ghost))
        return NodePart(
            part.owned[low:high] - self.first[k],
            part.ghosts[is_ghost] - self.first[k],
            np.repeat(ranks, part.receive_counts)[is_ghost],
            (part.sent[is_sent] - low).astype(np.int32),
            np.repeat(ranks, part.send_counts)[is_sent],
            total,
            self.chunks,
        )

    def _edges(self, t: EdgesOfType, low: int, high: int) -> tuple[EdgePart, Int64]:
        part, source, target = self.part, self.nodes[t.source], self.nodes[t.target]
        cut = part.local
        local = slice(*np.searchsorted(part.numbers[:cut], (low, high)))
        remote = slice(*(cut + np.searchsorted(part.numbers[cut:], (low, high))))
        numbers = np.concatenate([part.numbers[local], part.numbers[remote]]) - low
        ghosts = self.ghost_place[part.ends[0, remote] - len(part.owned)]
        src = (part.ends[0, local] - self.own[t.source], ghosts + len(source.owned))
        dst = np.concatenate([part.ends[1, local], part.ends[1, remote]]) - self.own[t.target]
        all_ends = np.stack([np.concatenate(src), dst])
        first = int(local.stop - local.start)
        all_ends, numbers, stops = _in_chunks(source, all_ends, numbers, first)
        return EdgePart(source, target, stops, numbers, int(high - low)), all_ends


def of_one_type(part: Part, edges: int, chunks: int) -> tuple[NodePart, EdgePart, Int64]:
    """The nodes and the edges of a part, of a graph without types and so many edges, whose rows
    cross in `chunks`, and the ends of its edges, int64 [2, edges]."""
    ranks = np.arange(part.ranks)
    of, by = np.repeat(ranks, part.receive_counts), np.repeat(ranks, part.send_counts)
    nodes = NodePart(part.owned, part.ghosts, of, part.sent, by, part.nodes, chunks)
    ends, numbers, stops = _in_chunks(nodes, part.ends, part.numbers, part.local)
    return nodes, EdgePart(nodes, nodes, stops, numbers, edges), ends


def _in_chunks(
    source: NodePart, ends: Int64, numbers: Int64, local: int
) -> tuple[Int64, Int64, tuple[int, ...]]:
    return sort_edges(ends, numbers, local, len(source.owned), source.ghost_chunk, source.chunks)


def _starts(counts: Sequence[int]) -> Int64:
    """Where each of some runs begins, and the end of the last."""
    return np.cumsum([0, *counts], dtype=np.int64)
