"""A sampled batch: its nodes by type, its edges by relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sets.kernels import Int64s

Ids = NDArray[Any]
"""int64 or int32, as the sampler was told."""


@dataclass(frozen=True, eq=False)
class BatchNodes:
    """The nodes of one type.

    Attributes:
        ids: shape (nodes,): which nodes of the graph; the seeds first, then in order of first
            occurrence among the sources of edges.
        graphs: shape (nodes,): of each the number of its graph, or None where they share one.
        met: shape (hops + 1,), int64: how many there were after each hop; at first the seeds.
    """

    ids: Ids
    graphs: Ids | None
    met: Int64s


@dataclass(frozen=True, eq=False)
class BatchEdges:
    """The edges of one relation, hop by hop, within a hop by target.

    Attributes:
        index: shape (2, edges): the places of source and target among the nodes of their types.
        ids: shape (edges,): the numbers of the edges in the user's list.
        ptr: int64, edges by target. Where every node is expanded once, shape (targets + 1,); else
            the pointers of one hop behind those of the last, see `Batch.block`.
        found: shape (hops + 1,), int64: how many there were after each hop; at first 0.
    """

    index: Ids
    ids: Ids
    ptr: Int64s
    found: Int64s


@dataclass(frozen=True, eq=False)
class Block:
    """A hop of a relation as a graph from `sources` nodes to the first `targets` nodes.

    Attributes:
        index: shape (2, edges); ids: shape (edges,); ptr: shape (targets + 1,), int64.
    """

    sources: int
    targets: int
    index: Ids
    ids: Ids
    ptr: Int64s


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes by type and edges by relation, in the graph's order of these.

    Attributes:
        ends: of each relation the types of source and target.
    """

    nodes: tuple[BatchNodes, ...]
    edges: tuple[BatchEdges, ...]
    ends: tuple[tuple[int, int], ...]

    @property
    def hops(self) -> int:
        return self.nodes[0].met.size - 1

    def block(self, hop: int, relation: int = 0) -> Block:
        """What was taken at a hop, counted from the seeds, of a batch of message-flow blocks."""
        edges = self.edges[relation]
        source, target = (self.nodes[t].met for t in self.ends[relation])
        first, last = int(edges.found[hop]), int(edges.found[hop + 1])
        before, targets = int(target[:hop].sum()) + hop, int(target[hop])
        return Block(
            int(source[hop + 1]),
            targets,
            edges.index[:, first:last],
            edges.ids[first:last],
            edges.ptr[before : before + targets + 1],
        )


def counts(ascending: Int64s) -> list[int]:
    """What each hop added: PyG's `num_sampled_nodes` of `met`."""
    return np.diff(ascending, prepend=0).tolist()
