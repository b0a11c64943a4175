"""What a partition costs: the work of each part, and the rows that parts read of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .edges import Edges, Int32, Int64

ROW_COST = 4
"""The work of a node in edges, as the schedules of kernels count it."""


@dataclass(frozen=True)
class Measures:
    """Of an assignment of nodes to `parts` parts.

    Attributes:
        work: of each part, int64: its edges, by destination, and `row_cost` a node.
        rows: parts x parts, int64: how many rows the part of a line reads that the part of a column
            owns; 0 on the diagonal. A row is counted once a reader, however many edges read it.
        cut: edges from one part to another, equal ones included.
    """

    work: Int64
    rows: Int64
    cut: int

    @property
    def imbalance(self) -> float:
        """The greatest work over the mean: 1 where all have the same, or there is none."""
        total = int(self.work.sum())
        return int(self.work.max()) * len(self.work) / total if total else 1.0

    @property
    def halo(self) -> Int64:
        """The rows that each part receives."""
        return self.rows.sum(axis=1)

    @property
    def volume(self) -> int:
        """The rows that all parts receive together: what one exchange sends."""
        return int(self.rows.sum())

    @property
    def peers(self) -> Int64:
        """How many other parts each part reads from."""
        return (self.rows > 0).sum(axis=1)


def check_owner(owner: Int32, nodes: int, parts: int) -> None:
    """Raises ValueError where `parts` is not positive or `owner` is not a part for each node."""
    if parts < 1:
        raise ValueError(f"parts: {parts}, and there should be at least 1")
    if owner.shape != (nodes,):
        raise ValueError(f"owner: an array of shape {owner.shape} for {nodes} nodes")
    if owner.dtype != np.int32:
        raise ValueError(f"owner: an array of {owner.dtype}, not of int32")
    if nodes and not 0 <= int(owner.min()) <= int(owner.max()) < parts:
        raise ValueError(
            f"owner: parts from {owner.min()} to {owner.max()}, and they are 0 to {parts - 1}"
        )


def measure(edges: Edges, owner: Int32, parts: int, row_cost: int = ROW_COST) -> Measures:
    """Measures an assignment (int32, one part a node) in one pass, with nodes x parts bytes.

    Raises:
        ValueError: as `check_owner` and `check_row_cost` do.
    """
    check_owner(owner, edges.nodes, parts)
    check_row_cost(row_cost)
    work = row_cost * np.bincount(owner, minlength=parts).astype(np.int64)
    read = np.zeros((edges.nodes, parts), np.bool_)
    cut = 0
    for src, dst in edges:
        reader = owner[dst]
        work += np.bincount(reader, minlength=parts)
        cut += int(np.count_nonzero(owner[src] != reader))
        read[src, reader] = True
    read[np.arange(edges.nodes), owner] = False
    rows = np.zeros((parts, parts), np.int64)
    for part in range(parts):
        rows[part] = np.bincount(owner[read[:, part]], minlength=parts)
    return Measures(work, rows, cut)


def check_row_cost(row_cost: int) -> None:
    """Raises ValueError where the work of a node is not positive."""
    if row_cost < 1:
        raise ValueError(f"row_cost: {row_cost}, and a node should cost at least 1")


def work_of_nodes(edges: Edges, row_cost: int) -> Int64:
    """The work of each node, int64: an edge that leads to it is 1, itself `row_cost`."""
    work = np.full(edges.nodes, row_cost, np.int64)
    for _, dst in edges:
        # a block has few of the nodes where there are many
        node, count = np.unique(dst, return_counts=True)
        work[node] += count
    return work
