"""What each rank does, for others to read: a slot a rank in memory that all share.

A rank alone writes its slot (and, once its process has ended, the one that watches it). A reader
may see a slot while it is written, and then a garbled text; what is decided is decided again later.
"""

from __future__ import annotations

import ctypes
import enum
import mmap
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 8.0
"""Seconds without progress of a rank that others wait for; what follows takes less than 2 more."""


class State(enum.IntEnum):
    """What a rank does."""

    WORKING = 0
    WAITING = 1
    FINISHED = 2
    FAILED = 3
    """It raised an error."""
    ENDED = 4
    """Its process was killed, or ended by itself without a word."""


@dataclass(frozen=True)
class Status:
    """One rank: what it does `since` the time (`time.monotonic()`) of its last progress, in which
    stage. One that waits does so in `operation`, for the ranks `awaited`."""

    state: State
    process: int
    since: float
    patience: float
    stage: str
    operation: str
    awaited: tuple[int, ...]


_HEAD = struct.Struct("<Bqdd240s120s")
_PROGRESS = struct.calcsize("<Bq")
"""Where in a slot the time of the last progress is."""


class Board:
    """The slots of `size` ranks in `memory`, which has `Board.bytes(size)` bytes."""

    def __init__(self, size: int, memory: mmap.mmap | memoryview) -> None:
        self.size = size
        self._memory = memory
        self._slot = _HEAD.size + size

    @staticmethod
    def bytes(size: int) -> int:
        """The memory that the slots take."""
        return size * (_HEAD.size + size)

    @classmethod
    def private(cls, size: int, patience: float = PATIENCE) -> Board:
        """A board for the threads of this process."""
        return cls(size, mmap.mmap(-1, cls.bytes(size))).clear(patience)

    @classmethod
    def create(cls, path: Path, size: int, patience: float = PATIENCE) -> Board:
        """A board in a new file, for other processes to open."""
        path.write_bytes(bytes(cls.bytes(size)))
        return cls.open(path, size).clear(patience)

    @classmethod
    def open(cls, path: Path, size: int) -> Board:
        """The board in a file."""
        with open(path, "r+b") as file:
            return cls(size, mmap.mmap(file.fileno(), cls.bytes(size)))

    def clear(self, patience: float) -> Board:
        """Makes all ranks work, with so much patience, from now on; the board itself."""
        for rank in range(self.size):
            self.write(rank, Status(State.WORKING, 0, time.monotonic(), patience, "start", "", ()))
        return self

    def write(self, rank: int, status: Status) -> None:
        """Fills the slot of a rank; long texts lose their ends."""
        awaited = bytearray(self.size)
        for other in status.awaited:
            awaited[other] = 1
        place = rank * self._slot
        self._memory[place : place + self._slot] = (
            _HEAD.pack(
                status.state,
                status.process,
                status.since,
                status.patience,
                status.stage.encode(),
                status.operation.encode(),
            )
            + awaited
        )

    def read(self, rank: int) -> Status:
        """What a rank does."""
        place = rank * self._slot
        slot = self._memory[place : place + self._slot]
        state, process, since, patience, stage, operation = _HEAD.unpack_from(slot)
        return Status(
            State(state),
            process,
            since,
            patience,
            _text(stage),
            _text(operation),
            tuple(k for k, byte in enumerate(slot[_HEAD.size :]) if byte),
        )

    def place_of_progress(self, rank: int) -> int:
        """The address of the time, a double, of the last progress of a rank, for C to write."""
        begin = ctypes.c_char.from_buffer(self._memory)  # the memory cannot be closed from here on
        return ctypes.addressof(begin) + rank * self._slot + _PROGRESS

    def read_all(self) -> list[Status]:
        """What all ranks do, by rank."""
        return [self.read(rank) for rank in range(self.size)]


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode(errors="replace")


class Note:
    """The hand of one rank on the board: what it does, written where that changes.

    Its patience is that of its stage (`stage_patience`), else the one on the board, which `later`
    replaces when the rank calls others for the first time (None: it stays).
    """

    def __init__(
        self, board: Board, rank: int, process: int = 0, later: float | None = None
    ) -> None:
        found = board.read(rank)
        self.board = board
        self.rank = rank
        self.stage = found.stage
        self.stage_patience: float | None = None
        self._process = process
        self._patience = found.patience
        self._later = later

    def _write(self, state: State, operation: str = "", awaited: Iterable[int] = ()) -> None:
        patience = self._patience if self.stage_patience is None else self.stage_patience
        now = time.monotonic()
        status = Status(state, self._process, now, patience, self.stage, operation, tuple(awaited))
        self.board.write(self.rank, status)

    def working(self) -> None:
        """This rank made progress, and goes on."""
        self._write(State.WORKING)

    def calling(self) -> None:
        """This rank starts something with others."""
        if self._later is not None:
            self._patience, self._later = self._later, None
        self.working()

    def waiting(self, operation: str, awaited: Iterable[int]) -> None:
        """This rank waits, and made progress until now."""
        self._write(State.WAITING, operation, awaited)

    def ended(self, state: State) -> None:
        """This rank does no more: its stage is the last on the board."""
        self.stage = self.board.read(self.rank).stage
        self._write(state)
