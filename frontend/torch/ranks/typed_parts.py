"""The part that a rank has of a graph with types: of each type of nodes and of edges.

A graph with types is cut as one graph, the nodes of all types numbered one after the other, and so
its edges: what is equal is the work of ranks, not the number of nodes of a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....runtime.partition.edges import Edges, in_memory
from ....runtime.partition.parts import EdgesOfPart, TypedPart
from ....runtime.partition.types import Types
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


def together(nodes: Sequence[int], edges: Sequence[EdgesOfType]) -> tuple[Edges, Types]:
    """The edges of all types as those of one graph, and the types, of which nobody needs names;
    `nodes` has the number of each type.

    Raises:
        ValueError: an edge leads to a node that there is not.
    """
    for t in edges:
        for end, n in zip(t.ends, (nodes[t.source], nodes[t.target]), strict=True):
            if end.size and not 0 <= end.min() <= end.max() < n:
                raise ValueError(
                    f"{t.name}: nodes are numbered 0 to {n - 1}, and it has "
                    f"{end.min()} to {end.max()}"
                )
    types = Types(
        tuple((str(k), n) for k, n in enumerate(nodes)),
        tuple(((str(t.source), t.name, str(t.target)), t.ends.shape[1]) for t in edges),
    )
    if len(edges) == 1 and len(nodes) == 1:
        return in_memory(edges[0].ends[0], edges[0].ends[1], nodes[0]), types
    none, first = np.zeros(0, np.int64), types.first
    src = np.concatenate([none, *(t.ends[0] + first[t.source] for t in edges)])
    dst = np.concatenate([none, *(t.ends[1] + first[t.target] for t in edges)])
    return in_memory(src, dst, int(first[-1])), types


class TypedParts:
    """A part of all types together as parts of each, whose rows cross in `chunks`: `nodes`
    by type, and `edges` with their ends, int64 [2, edges], as places among the owned nodes of a
    type and behind these its ghosts."""

    def __init__(self, part: TypedPart, types: Types, chunks: int) -> None:
        self.nodes = [_nodes(part, types, k, chunks) for k in range(len(types.nodes))]
        ends = [(self.nodes[source], self.nodes[target]) for source, target in types.ends]
        self.edges = [
            _edges(found, *e, total)
            for found, e, (_, total) in zip(part.edges, ends, types.edges, strict=True)
        ]


def _nodes(part: TypedPart, types: Types, k: int, chunks: int) -> NodePart:
    ranks = np.arange(part.ranks)
    of, by = np.repeat(ranks, part.receive_counts), np.repeat(ranks, part.send_counts)
    if len(types.nodes) == 1:
        return NodePart(part.owned, part.ghosts, of, part.sent, by, part.nodes, chunks)
    first, end = types.first[k : k + 2]
    low, high = np.searchsorted(part.owned, (first, end))
    is_ghost = (first <= part.ghosts) & (part.ghosts < end)
    is_sent = (low <= part.sent) & (part.sent < high)
    return NodePart(
        part.owned[low:high] - first,
        part.ghosts[is_ghost] - first,
        of[is_ghost],
        (part.sent[is_sent] - low).astype(np.int32),
        by[is_sent],
        int(end - first),
        chunks,
    )


def _edges(
    found: EdgesOfPart, source: NodePart, target: NodePart, total: int
) -> tuple[EdgePart, Int64]:
    ends, numbers, stops = sort_edges(
        found.ends,
        found.numbers,
        found.local,
        len(source.owned),
        source.ghost_chunk,
        source.chunks,
    )
    return EdgePart(source, target, stops, numbers, total), ends
