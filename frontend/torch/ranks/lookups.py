"""Rows of a table that nodes read by an index: which of them other ranks have, and who sends them.

No rank knows the owners of all rows. Rows are numbered in as many blocks as there are ranks, and
rank r is told who owns those of block r, and asked: each rank has a list of its share, however many
rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....runtime.ranks.communicator import Communicator
from .cut_tensors import NodePart
from .row_exchange import Int64, exchanged

Int32 = NDArray[np.int32]


def part_read(table: NodePart, rows: Sequence[Int64], communicator: Communicator) -> NodePart:
    """A table with the rows of other ranks that are read, by their numbers in `rows`, as its
    ghosts. All ranks call it."""
    own = table.owned
    wanted = np.unique(np.concatenate(rows))
    far = wanted[~places_in(own, wanted)[1]]
    if not communicator.all_reduce(np.array(len(far)), "max"):
        none = np.zeros(0, np.int64)
        return NodePart(own, none, none, none.astype(np.int32), none, table.total, table.chunks)
    owner = _owners(table, far, communicator)
    order = np.lexsort((far, owner))
    ghosts, owner = far[order], owner[order]
    asked = exchanged(_split(ghosts, owner, communicator.size), communicator)
    sent = np.searchsorted(own, np.concatenate(asked)).astype(np.int32)
    reader = np.repeat(np.arange(communicator.size), [len(x) for x in asked])
    return NodePart(own, ghosts, owner, sent, reader, table.total, table.chunks)


def edges_read(part: NodePart, rows: Int64) -> list[tuple[Int32, Int32]]:
    """An edge for each node, from the row that it reads of a table: those from own rows, then those
    from the ghosts of each chunk, as places among these, and the places of the nodes."""
    place, is_own = places_in(part.owned, rows)
    out = [(place[is_own].astype(np.int32), np.flatnonzero(is_own).astype(np.int32))]
    nodes = np.flatnonzero(~is_own)
    order = np.argsort(part.ghosts)
    ghost = order[np.searchsorted(part.ghosts[order], rows[nodes])]
    for chunk in range(part.chunks):
        mine = part.ghost_chunk == chunk
        among = np.cumsum(mine) - 1
        kept = mine[ghost]
        out.append((among[ghost[kept]].astype(np.int32), nodes[kept].astype(np.int32)))
    return out


def block(total: int, rank: int, size: int) -> Int64:
    """The numbers of the rows of a block."""
    return np.arange(_first(total, rank, size), _first(total, rank + 1, size))


def _first(total: int, rank: int, size: int) -> int:
    return -(-rank * total // size)


def _owners(table: NodePart, rows: Int64, communicator: Communicator) -> Int64:
    """The ranks that own some rows of a table, ascending numbers."""
    size, total = communicator.size, max(1, table.total)
    first = _first(table.total, communicator.rank, size)
    known = np.empty(len(block(table.total, communicator.rank, size)), np.int64)
    told = exchanged(_split(table.owned, table.owned * size // total, size), communicator)
    for rank, owned in enumerate(told):
        known[owned - first] = rank
    asked = exchanged(_split(rows, rows * size // total, size), communicator)
    return np.concatenate(exchanged([known[x - first] for x in asked], communicator))


def _split(x: Int64, rank: Int64, size: int) -> list[Int64]:
    """The numbers for each rank, where these ascend."""
    return np.split(x, np.searchsorted(rank, np.arange(1, size)))


def places_in(owned: Int64, rows: Int64) -> tuple[Int64, NDArray[np.bool_]]:
    """Where rows lie among the owned ones, and which do."""
    place = np.minimum(np.searchsorted(owned, rows), max(0, len(owned) - 1))
    return place, owned[place] == rows if len(owned) else np.zeros(len(rows), bool)
