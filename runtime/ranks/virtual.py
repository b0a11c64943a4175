"""Virtual ranks: threads of one process that have communicators, for tests and for programs that
are to be tried without MPI.

Messages are stricter than those of MPI: the receiver's memory is filled from the sender's only when
both have started and the link has brought the message, so that memory that is read or overwritten
too early shows.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from . import world
from .board import PATIENCE, Board, Note, State
from .communicator import Communicator
from .errors import RankFailed
from .peers import Channel, Messages, Peers
from .rows import Bytes
from .waiting import Pending

Result = TypeVar("Result")

LEAVE_SECONDS = 1.0
"""How long the other ranks have to end once one has failed; those that compute cannot be ended."""


@dataclass(frozen=True)
class Link:
    """What lies between two ranks, in each direction: a message takes `latency` seconds, and one
    after the other its bytes at `bandwidth` bytes a second (None: no time)."""

    latency: float = 0.0
    bandwidth: float | None = None


@dataclass(eq=False)
class _Message:
    """One message, from when the first of both sides starts it."""

    source: int
    target: int
    sent: Bytes | None = None
    received: Bytes | None = None
    ready: float = 0.0
    done: bool = False


_Key = tuple[int, int, Channel, int]
"""Source, target, channel, tag."""


class _Network:
    """What all ranks share; `lock` guards it and the messages."""

    def __init__(self, link: Link) -> None:
        self.lock = threading.Condition()
        self._link = link
        self.takes_time = link != Link()
        self._free: dict[tuple[int, int], float] = {}
        self._unmatched: dict[_Key, deque[_Message]] = {}

    def post(self, key: _Key, *, sent: Bytes | None = None, received: Bytes | None = None):
        """One side of a message, joined with the other if that was there first."""
        queue = self._unmatched.setdefault(key, deque())
        side = "sent" if sent is not None else "received"
        if queue and getattr(queue[0], side) is None:
            message = queue.popleft()
        else:
            message = _Message(key[0], key[1])
            queue.append(message)
        if sent is not None:
            message.sent = sent
            message.ready = self._arrival(key[0], key[1], len(sent))
        else:
            message.received = received
        return message

    def _arrival(self, source: int, target: int, size: int) -> float:
        link = self._link
        begins = max(time.monotonic(), self._free.get((source, target), 0.0))
        ends = begins + (size / link.bandwidth if link.bandwidth is not None else 0.0)
        self._free[source, target] = ends
        return ends + link.latency

    def deliver(self, message: _Message, now: float) -> bool:
        """Fills the receiver's memory if that can be done now; True once it is. Raises
        ValueError."""
        sent, received = message.sent, message.received
        if message.done or sent is None or received is None:
            return message.done
        if len(sent) != len(received):
            raise ValueError(
                f"rank {message.source} sends {len(sent)} bytes to rank {message.target}, which "
                f"expects {len(received)}"
            )
        if now >= message.ready:
            received[...] = sent
            message.done = True
            self.lock.notify_all()
        return message.done


class _VirtualPending(Pending):
    """Messages of a virtual rank."""

    def __init__(
        self, name: str, note: Note, network: _Network, messages: Sequence[_Message]
    ) -> None:
        super().__init__(name, note)
        self._network = network
        self._messages = list(messages)

    def poll(self) -> bool:
        now = time.monotonic()
        with self._network.lock:
            try:
                self._messages = [m for m in self._messages if not self._network.deliver(m, now)]
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
        return not self._messages

    def missing(self) -> Sequence[int]:
        mine = self.note.rank
        return sorted({m.source if m.target == mine else m.target for m in self._messages})

    def left(self) -> int:
        return len(self._messages)

    def pause(self, seconds: float) -> None:
        with self._network.lock:
            self._network.lock.wait(seconds)


class Virtual(Peers):
    """One of the ranks of `run`."""

    def __init__(self, rank: int, board: Board, network: _Network) -> None:
        super().__init__(rank, board.size, Note(board, rank))
        self._network = network
        self.on_one_machine = not network.takes_time

    def carry(
        self, sends: Messages, receives: Messages, channel: Channel, tag: int, name: str
    ) -> Pending:
        network, here = self._network, self.rank
        with network.lock:
            messages = [
                *(network.post((here, r, channel, tag), sent=data) for r, data in sends),
                *(network.post((r, here, channel, tag), received=data) for r, data in receives),
            ]
        return _VirtualPending(name, self.note, network, messages)


class Wrap(Protocol):
    """Makes another communicator of that of a rank."""

    def __call__(self, communicator: Virtual) -> Communicator: ...


def run(
    size: int,
    function: Callable[[Communicator], Result],
    *,
    patience: float = PATIENCE,
    link: Link | None = None,
    wrap: Wrap | None = None,
) -> list[Result]:
    """Calls `function` with the communicator of each of `size` ranks, each in a thread of its own,
    and returns the results by rank. In those threads `gnnc.rank()` is the rank.

    Args:
        patience: seconds without progress that ranks give one another, where no stage says else.
        link: what lies between them; None: messages take no time.
        wrap: what the function gets instead of the communicator.

    Raises:
        ValueError: for a size below 1.
        Exception: that of the rank that failed first, with a note that names the rank and stage.
            All others stop where they wait next; those that do not wait go on until they return.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    board = Board.private(size, patience)
    network = _Network(link or Link())
    results: dict[int, Result] = {}
    errors: list[tuple[int, BaseException]] = []

    def work(rank: int) -> None:
        inner = Virtual(rank, board, network)
        communicator = inner if wrap is None else wrap(inner)
        world.set_of_thread(communicator)
        try:
            results[rank] = function(communicator)
            inner.note.ended(State.FINISHED)
        except BaseException as error:  # all of them end the run; it raises them again
            errors.append((rank, error))
            inner.note.ended(State.FAILED)

    threads = [
        threading.Thread(target=work, args=(r,), name=f"rank {r}", daemon=True) for r in range(size)
    ]
    for thread in threads:
        thread.start()
    _join(threads, errors)
    if errors:
        rank, error = _first(errors)
        error.add_note(f'in rank {rank} of {size}, in stage "{board.read(rank).stage}"')
        raise error
    return [results[rank] for rank in range(size)]


def _join(threads: Sequence[threading.Thread], errors: Sequence[Any]) -> None:
    """Waits for all, or after an error for those that end soon."""
    until: float | None = None
    for thread in threads:
        while thread.is_alive():
            thread.join(0.02)
            if errors:
                until = until or time.monotonic() + LEAVE_SECONDS
                if time.monotonic() > until:
                    return


def _first(errors: Sequence[tuple[int, BaseException]]) -> tuple[int, BaseException]:
    """The error that the others follow from."""
    return next((e for e in errors if not isinstance(e[1], RankFailed)), errors[0])
