"""What each rank has of a partitioned graph, and the rows that ranks send each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...runtime.partition import files, measure
from ...runtime.partition.edges import Edges, Int32
from . import halo

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loads:
    """The sizes of `ranks` ranks: float64, a number a rank, or a single one where all are alike.

    Attributes:
        nodes, edges: of the whole graph.
        owned: nodes of a rank.
        local_edges, remote_edges: edges that lead to them, by the owner of the source.
        ghosts, sent: rows that it receives and sends in an exchange.
        readers, owners: ranks that it sends such rows to, and that it receives them from.
        rows: ranks x ranks, rows that the rank of a line receives from that of a column; None where
            all ranks are alike, and send each other equally many.
    """

    ranks: int
    nodes: float
    edges: float
    owned: Floats
    local_edges: Floats
    remote_edges: Floats
    ghosts: Floats
    sent: Floats
    readers: Floats
    owners: Floats
    rows: Floats | None = None

    @property
    def volume(self) -> float:
        """Rows that cross in one exchange, of all ranks."""
        return float(self.ghosts.sum()) * (self.ranks if len(self.ghosts) < self.ranks else 1)

    def matrix(self) -> Floats:
        """`rows`, also where all are alike."""
        if self.rows is not None:
            return self.rows
        others = 1 - np.eye(self.ranks)
        return others * (float(self.ghosts[0]) / max(self.ranks - 1, 1))


@dataclass(frozen=True)
class Numbers:
    """A graph of which only numbers are known, and how its halo grows with ranks.

    Attributes:
        nodes, edges: how many.
        exponent: owners are drawn, and the k-th most frequent source has a frequency like k **
            -exponent; 0: all have equally many edges.
        across: None where owners are drawn; else the share of the edges that crosses.
        border: with `across`, the share of the nodes of a rank that others may read.
        imbalance: the greatest work of a rank over the mean, from 1; all predicted ranks have it.

    Raises:
        ValueError: one of them is out of its range.
    """

    nodes: int
    edges: int
    exponent: float = 0.0
    across: float | None = None
    border: float = 1.0
    imbalance: float = 1.0

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError(f"nodes: {self.nodes}, and there should be at least 1")
        if self.edges < 0:
            raise ValueError(f"edges: {self.edges} is negative")
        if not 0 <= self.exponent < 10:
            raise ValueError(f"exponent: {self.exponent} is not from 0 to below 10")
        for name, share in (("across", self.across), ("border", self.border)):
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{name}: {share} is not a share from 0 to 1")
        if not 1 <= self.imbalance < float("inf"):
            raise ValueError(f"imbalance: {self.imbalance}, and it is at least 1")

    def halo(self, ranks: int) -> float:
        """Expected rows that a rank receives."""
        nodes, edges = float(self.nodes), float(self.edges)
        if self.across is not None:
            if ranks == 1:
                return 0.0
            return halo.planted_halo(nodes, edges, ranks, self.across, self.border)
        if self.exponent:
            return halo.power_law_halo(nodes, edges, ranks, self.exponent)
        return halo.random_halo(nodes, edges, ranks)

    def loads(self, ranks: int) -> Loads:
        """Those of so many ranks, all alike.

        Raises:
            ValueError: `ranks` is not positive.
        """
        _check(ranks)
        crossing = (1 - 1 / ranks) if self.across is None or ranks == 1 else self.across
        owned = self.nodes / ranks * (self.imbalance if ranks > 1 else 1)
        edges = self.edges / ranks * (self.imbalance if ranks > 1 else 1)
        ghosts, others = self.halo(ranks), ranks - 1
        # a pair exchanges nothing where none of the expected rows falls to it
        peers = others * -np.expm1(-ghosts / others) if others else 0.0
        alike = (owned, edges * (1 - crossing), edges * crossing, ghosts, ghosts, peers, peers)
        return Loads(ranks, self.nodes, self.edges, *(np.array([float(x)]) for x in alike))


def alone(nodes: float, edges: float) -> Loads:
    """The loads of a graph on one rank."""
    none = np.zeros(1)
    of_edges = (np.array([nodes]), np.array([edges]), none)
    return Loads(1, nodes, edges, *of_edges, none, none, none, none, np.zeros((1, 1)))


def of_partition(edges: Edges, owner: Int32, ranks: int) -> Loads:
    """The loads of a graph whose nodes have owners, in two passes over the edges.

    Raises:
        ValueError: as `measure.measure` does.
    """
    found = measure.measure(edges, owner, ranks)
    local, remote = np.zeros(ranks), np.zeros(ranks)
    for src, dst in edges:
        reader = owner[dst]
        here = owner[src] == reader
        local += np.bincount(reader[here], minlength=ranks)
        remote += np.bincount(reader[~here], minlength=ranks)
    owned = np.bincount(owner, minlength=ranks).astype(np.float64)
    return _of_rows(owned, local, remote, found.rows.astype(np.float64))


def of_folder(folder: Path) -> Loads:
    """The loads of a partition that `gnnc partition --out` wrote.

    Raises:
        OSError: the folder cannot be read.
        files.BadPartition: it has no partition, or one that is damaged.
    """
    manifest = files.read_manifest(folder)
    ranks = manifest.ranks
    owned, local, remote = np.zeros(ranks), np.zeros(ranks), np.zeros(ranks)
    rows = np.zeros((ranks, ranks))
    for rank in range(ranks):
        part = files.load_of(folder, manifest, rank)
        owned[rank] = len(part.owned)
        local[rank] = sum(e.local for e in part.edges)
        remote[rank] = sum(len(e.numbers) for e in part.edges) - local[rank]
        rows[rank] = part.receive_counts
    return _of_rows(owned, local, remote, rows)


def _of_rows(owned: Floats, local: Floats, remote: Floats, rows: Floats) -> Loads:
    return Loads(
        len(owned),
        float(owned.sum()),
        float(local.sum() + remote.sum()),
        owned,
        local,
        remote,
        rows.sum(axis=1),
        rows.sum(axis=0),
        (rows > 0).sum(axis=0).astype(np.float64),
        (rows > 0).sum(axis=1).astype(np.float64),
        rows,
    )


def _check(ranks: int) -> None:
    if ranks < 1:
        raise ValueError(f"ranks: {ranks}, and there should be at least 1")
