"""Ranks that are processes of one machine and were not started by MPI: the board and the rings, all
that they need of each other, lie in memory that whoever starts them gives to all."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from .board import Board, Note
from .rings import Rings, memory_bytes

_ALIGNED = 64
"""Where rings begin is a multiple of so many bytes."""

Shared = NDArray[np.uint8]


def needed(size: int) -> int:
    """The bytes that `size` ranks have to share.

    Raises:
        CompileError, NoCompiler: from the tool chain.
    """
    return _board_bytes(size) + memory_bytes(size)


def prepare(memory: Shared, size: int, patience: float) -> None:
    """Makes memory of `needed(size)` zeros ready, before any rank joins. Ranks give one another
    `patience` seconds without progress, where no stage says else."""
    _board(memory, size).clear(patience)


def joined(memory: Shared, rank: int, size: int) -> Rings:
    """The communicator of this process, the only one with this number.

    Raises:
        MemoryError, CompileError, NoCompiler: as `Rings`.
    """
    address = memory.ctypes.data + _board_bytes(size)
    assert address % _ALIGNED == 0
    found = Rings(rank, size, address, Note(_board(memory, size), rank, os.getpid()))
    found.keep(memory)
    return found


def _board_bytes(size: int) -> int:
    return -(-Board.bytes(size) // _ALIGNED) * _ALIGNED


def _board(memory: Shared, size: int) -> Board:
    return Board(size, memory.data[: Board.bytes(size)])
