"""Which of the moves of nodes that one would like leave every part within its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .edges import Int64

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EXCHANGES = 20
"""How often the room that moves make is given to others."""


def loads(work: Int64, owner: NDArray[Any], parts: int) -> Int64:
    """The work of each part, int64."""
    return np.bincount(owner, weights=work, minlength=parts).astype(np.int64)


def admitted(source: NDArray[Any], target: NDArray[Any], work: Int64, room: Floats) -> Bools:
    """Flags of moves, in the order of preference, that together leave no part above its bound.

    `source`, `target` (parts) and `work` are the moves', `room` is what each part may take. What
    leaves a part makes room there, so parts that are full exchange nodes.
    """
    chosen = np.zeros(len(target), np.bool_)
    room = room.copy()
    for _ in range(_EXCHANGES):
        (waiting,) = np.nonzero(~chosen & (work <= room[target]))
        for part in np.unique(target[waiting]):
            moves = waiting[target[waiting] == part]
            chosen[moves] = np.cumsum(work[moves]) <= room[part]
        taken = waiting[chosen[waiting]]
        if not len(taken):
            break
        np.subtract.at(room, target[taken], work[taken])
        np.add.at(room, source[taken], work[taken])
    return chosen
