"""A communicator on top of messages between pairs of ranks: exchanges and collectives.

Collectives are made of messages too, so that a rank knows at any time which others are missing, and
so that sums have an order. Ranks are few: each sends to all others.
"""

from __future__ import annotations

import enum
import hashlib
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .board import Note, State
from .communicator import Kind
from .diagnosis import named
from .errors import Disagreement
from .rows import Bytes, as_bytes, checked_segments
from .waiting import Pending

LARGEST_TAG = (1 << 15) - 1
"""Every MPI has tags up to here."""
_KINDS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}

Messages = Sequence[tuple[int, Bytes]]
"""Messages to, or places for those from, other ranks; none is empty."""


class Channel(enum.IntEnum):
    """Messages of one never meet those of another."""

    EXCHANGE = 0
    COLLECTIVE = 1


class _Call(enum.IntEnum):
    """Calls that are part of the tag: those of different kinds never match."""

    SUM = 0
    MAX = 1
    MIN = 2
    BROADCAST = 3
    GATHER = 4
    BARRIER = 5
    AGREE = 6
    FINISH = 7
    MUL = 8


_SEQUENCE = (LARGEST_TAG + 1) // len(_Call)


def tag_of_reduction(kind: Kind) -> int:
    """Of the reductions of phases, which are matched in their order."""
    return _Call[kind.upper()]


class Reduced:
    """An all-reduce under way: the arrays of all ranks, of which the own one is there."""

    def __init__(self, pending: Pending, table: NDArray[Any], kind: Kind) -> None:
        self._pending = pending
        self._table = table
        self._kind: Kind = kind

    def poll(self) -> bool:
        return self._pending.poll()

    def wait(self) -> NDArray[Any]:
        self._pending.wait()
        combine = _KINDS[self._kind]
        rows = self._table.reshape(len(self._table), -1)
        result = rows[0].copy()
        with np.errstate(all="ignore"):  # infinities are no news, as in compiled code
            for other in rows[1:]:
                combine(result, other, out=result)
        return result.reshape(self._table.shape[1:])


class Peers(ABC):
    """A Communicator whose subclass carries messages."""

    shares_memory = True
    on_one_machine = True

    def __init__(self, rank: int, size: int, note: Note) -> None:
        self.rank = rank
        self.size = size
        self.note = note
        self._calls = 0
        self._stages = 0
        self._programs = 0
        self._before_call: tuple[str, float | None] | None = None

    @abstractmethod
    def carry(
        self, sends: Messages, receives: Messages, channel: Channel, tag: int, name: str
    ) -> Pending:
        """Starts to send and to receive messages; those with equal channel and tag between two
        ranks are matched in their order. The memory is the messages' until they are complete."""

    def start(
        self,
        sent: NDArray[Any],
        send_counts: Sequence[int],
        received: NDArray[Any],
        receive_counts: Sequence[int],
        tag: int,
    ) -> Pending:
        """See Communicator."""
        if not 0 <= tag <= LARGEST_TAG:
            raise ValueError(f"tag must be from 0 to {LARGEST_TAG}, got {tag}")
        out, into = checked_segments(sent, send_counts, received, receive_counts, self)
        into[self.rank][...] = out[self.rank]
        sends, receives = (
            [(r, x) for r, x in enumerate(segments) if r != self.rank and len(x)]
            for segments in (out, into)
        )
        self.note.calling()
        return self.carry(sends, receives, Channel.EXCHANGE, tag, f"exchange {tag}")

    def all_reduce(self, array: NDArray[Any], kind: Kind) -> NDArray[Any]:
        """See Communicator."""
        return self.start_all_reduce(array, kind).wait()

    def start_all_reduce(self, array: NDArray[Any], kind: Kind) -> Reduced:
        """See Communicator."""
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
        if array.dtype.kind not in "iuf":
            raise TypeError(f"array must hold integers or floats, not {array.dtype}")
        pending, table = self._all_gather(array, _Call[kind.upper()], f"all-reduce ({kind})")
        return Reduced(pending, table, kind)

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """See Communicator."""
        self._check_root(root)
        if self.rank == root:
            text = pickle.dumps(value)
            others = [r for r in range(self.size) if r != root]
            length = _length(text)
            self._call([(r, length) for r in others], [], _Call.BROADCAST, "broadcast")
            body = np.frombuffer(text, np.uint8)
            self._call([(r, body) for r in others], [], _Call.BROADCAST, "broadcast")
            return pickle.loads(text)
        length = np.empty(8, np.uint8)
        self._call([], [(root, length)], _Call.BROADCAST, "broadcast")
        body = np.empty(int(length.view(np.int64)[0]), np.uint8)
        self._call([], [(root, body)], _Call.BROADCAST, "broadcast")
        return pickle.loads(body.tobytes())

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """See Communicator."""
        self._check_root(root)
        text = pickle.dumps(value)
        if self.rank != root:
            self._call([(root, _length(text))], [], _Call.GATHER, "gather")
            body = np.frombuffer(text, np.uint8)
            self._call([(root, body)], [], _Call.GATHER, "gather")
            return None
        others = [r for r in range(self.size) if r != root]
        lengths = np.empty((self.size, 8), np.uint8)
        self._call([], [(r, lengths[r]) for r in others], _Call.GATHER, "gather")
        bodies = {r: np.empty(int(lengths[r].view(np.int64)[0]), np.uint8) for r in others}
        self._call([], list(bodies.items()), _Call.GATHER, "gather")
        return [pickle.loads(text if r == root else bodies[r].tobytes()) for r in range(self.size)]

    def barrier(self) -> None:
        """See Communicator."""
        self._all_gather(np.zeros(1, np.uint8), _Call.BARRIER, "barrier")[0].wait()

    def finish(self) -> None:
        """Returns when every rank has called it; this rank does no more."""
        with self.stage("end of the script"):
            self._all_gather(np.zeros(1, np.uint8), _Call.FINISH, "its end")[0].wait()
        self.note.ended(State.FINISHED)

    def agree(self, what: str, value: str) -> None:
        """See Communicator."""
        digest = np.frombuffer(hashlib.sha256(value.encode()).digest(), np.uint8)
        pending, table = self._all_gather(digest, _Call.AGREE, f"agree on {what}")
        pending.wait()
        digests = [row.tobytes().hex() for row in table]
        usual = Counter(digests).most_common(1)[0][0]  # of equally many, that of the lowest rank
        others = [r for r, found in enumerate(digests) if found != usual]
        if others:
            same = named(r for r, found in enumerate(digests) if found == usual)
            hashes = ", ".join(f"{digests[r][:12]} on rank {r}" for r in others)
            raise Disagreement(
                f"ranks differ in {what}: {named(others)} from {same} "
                f"(hashes: {usual[:12]} on {same}, {hashes})",
                tuple(others),
            )

    @contextmanager
    def stage(self, name: str, patience: float | None = None) -> Generator[None]:
        """See Communicator."""
        note = self.note
        if patience is not None and not patience > 0:
            raise ValueError(f"patience must be a number of seconds above 0, got {patience}")
        before = note.stage, note.stage_patience
        self._stages += 1
        note.stage = name
        if patience is not None:
            note.stage_patience = patience
        note.working()
        try:
            yield
        finally:
            self._stages -= 1
            note.stage, note.stage_patience = before
        note.working()  # after an error the board keeps the stage: it is the one that failed

    @contextmanager
    def until_call(self, name: str, patience: float) -> Generator[None]:
        """See Communicator."""
        note = self.note
        before = self._before_call = note.stage, note.stage_patience
        note.stage, note.stage_patience = name, patience
        note.working()
        try:
            yield
        finally:
            self._before_call = None
            _, note.stage_patience = before
            if note.stage == name:
                note.stage = before[0]
        note.working()

    def begin_call(self) -> None:
        """See Communicator."""
        self._programs += 1
        if self._before_call is not None:
            self.note.stage, self.note.stage_patience = self._before_call
            self._before_call = None
        if not self._stages:
            self.note.stage = f"call {self._programs}"
            self.note.working()

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise ValueError(f"root must be a rank from 0 to {self.size - 1}, got {root}")

    def _tag(self, call: _Call) -> int:
        self._calls += 1
        return (self._calls % _SEQUENCE) * len(_Call) + call

    def _call(self, sends: Messages, receives: Messages, call: _Call, name: str) -> None:
        """One step of a collective."""
        self.note.calling()
        self.carry(sends, receives, Channel.COLLECTIVE, self._tag(call), name).wait()

    def _all_gather(
        self, array: NDArray[Any], call: _Call, name: str
    ) -> tuple[Pending, NDArray[Any]]:
        """Starts to gather the arrays of all ranks in a table, by rank; the own one is there."""
        table = np.empty((self.size, *array.shape), array.dtype)
        table[self.rank] = array
        rows = table.reshape(self.size, -1)
        others = [r for r in range(self.size) if r != self.rank] if array.size else []
        sends = [(r, as_bytes(rows[self.rank])) for r in others]
        receives = [(r, as_bytes(rows[r])) for r in others]
        self.note.calling()
        return self.carry(sends, receives, Channel.COLLECTIVE, self._tag(call), name), table


def _length(text: bytes) -> Bytes:
    """The number of bytes, as a message."""
    return np.array([len(text)], np.int64).view(np.uint8)
