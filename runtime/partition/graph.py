"""The graph that methods of partitioning see: who reads whom, and the work of each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .edges import Edges, Int64
from .measure import check_row_cost, work_of_nodes
from .sparse import Matrix, matrix, with_ones


@dataclass(frozen=True)
class Graph:
    """A directed graph without loops and equal edges, for neither moves a row.

    The matrices are nodes x nodes, with 1 for an edge.

    Attributes:
        work: of each node, int64, at least 1; edges that the matrices leave out are counted.
        readers: the line of a node has those that read it.
        sources: the line of a node has those it reads.
        neighbours: both.
    """

    work: Int64
    readers: Matrix
    sources: Matrix
    neighbours: Matrix

    @property
    def nodes(self) -> int:
        return len(self.work)

    def part(self, nodes: Int64) -> Graph:
        """The graph of some nodes, and of the edges between them."""
        return _of_readers(self.work[nodes], with_ones(self.readers[nodes][:, nodes]))

    def bound(self, parts: int, limit: float) -> float:
        """The most work that a part should have: `limit` times the mean, or the heaviest node."""
        heaviest = int(self.work.max(initial=0))
        return max(limit * int(self.work.sum()) / parts, float(heaviest))


def graph_of(edges: Edges, row_cost: int) -> Graph:
    """The graph of edges that fit in memory.

    Raises:
        ValueError: `row_cost` is not positive.
    """
    check_row_cost(row_cost)
    blocks = list(edges)
    src = np.concatenate([np.zeros(0, np.int64), *(src for src, _ in blocks)])
    dst = np.concatenate([np.zeros(0, np.int64), *(dst for _, dst in blocks)])
    kept = src != dst
    readers = matrix(src[kept], dst[kept], edges.nodes)
    return _of_readers(work_of_nodes(edges, row_cost), readers)


def _of_readers(work: Int64, readers: Matrix) -> Graph:
    sources = with_ones(readers.T.tocsr())
    return Graph(work, readers, sources, with_ones((readers + sources).tocsr()))
