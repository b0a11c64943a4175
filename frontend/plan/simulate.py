"""Ranks that compute, send and wait, in virtual time: a discrete-event simulation of a step.

A rank goes through stages in order. In each it works, starts its messages, works on beside them,
and waits for those of the others; with chunks, for one after the other, and works on what each has
brought. Every rank has one port for what it sends and one for what it receives. A port carries a
message at a time, which takes the link's overhead and its bytes over the bandwidth (the gap of
LogGP, Alexandrov et al., SPAA 1995, and no more than that); the first byte is at the other port a
latency after it left.

The outgoing port takes messages as they are started: the next rank's first, so that ranks do not
all send to the same one. The incoming port takes those of a stage and chunk as they come, and those
of the next ones after them. So each time is made of sums and maxima of others in a fixed way: with
more bandwidth, or less work, nothing is later.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """What lies between ranks.

    Attributes:
        overhead: seconds that a message keeps a port, besides those of its bytes.
        bandwidth: bytes a second through a port.
        latency: seconds between the ports, which keeps none of them.

    Raises:
        ValueError: one is negative, or the bandwidth is not positive.
    """

    overhead: float = 0.0
    bandwidth: float = float("inf")
    latency: float = 0.0

    def __post_init__(self) -> None:
        for name, seconds in (("overhead", self.overhead), ("latency", self.latency)):
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"{name}: {seconds} is not a number of seconds")
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth: {self.bandwidth}, and it should be above 0")

    def seconds(self, size: float) -> float:
        """For which a message of so many bytes keeps a port."""
        return self.overhead + size / self.bandwidth


@dataclass(frozen=True)
class Stage:
    """What all ranks do until they have what others send.

    Attributes:
        before: seconds of work, a number a rank, that messages wait for.
        beside: of work that needs no message.
        after: of work on what messages bring.
        rows: ranks x ranks: what the rank of a line receives from that of a column; None where
            nothing is sent.
        row_bytes: bytes of such a row in each of the messages that two ranks exchange.
    """

    before: Floats
    beside: Floats
    after: Floats
    rows: Floats | None = None
    row_bytes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Run:
    """What a simulation found.

    Attributes:
        seconds: until the last rank is done.
        finished: when each is, float64.
        waited: seconds that each waited for messages.
        sent: bytes of each.
        messages: how many each sent.
    """

    seconds: float
    finished: Floats
    waited: Floats
    sent: Floats
    messages: NDArray[np.int64]


def simulate(stages: Sequence[Stage], link: Link, *, chunks: int = 1, overlap: float = 1.0) -> Run:
    """Plays the stages of a step.

    Args:
        stages: those of all ranks, in order.
        link: between each two.
        chunks: into how many messages each one is divided.
        overlap: the share of the work beside messages that can go on while they are under way; the
            rest is done once they are there.

    Raises:
        ValueError: there is no stage, stages are of different numbers of ranks, work or rows are
            negative, or `chunks` or `overlap` is out of its range.
    """
    _check(stages, chunks, overlap)
    return _Simulation(stages, link, chunks, overlap).run()


def _check(stages: Sequence[Stage], chunks: int, overlap: float) -> None:
    if chunks < 1:
        raise ValueError(f"chunks: {chunks}, and there should be at least 1")
    if not 0 <= overlap <= 1:
        raise ValueError(f"overlap: {overlap} is not a share from 0 to 1")
    if not stages:
        raise ValueError("stages: there is none")
    ranks = len(stages[0].before)
    for place, stage in enumerate(stages):
        work = (stage.before, stage.beside, stage.after)
        if any(w.shape != (ranks,) for w in work) or ranks == 0:
            raise ValueError(f"stages: stage {place} has not a number for each of {ranks} ranks")
        if any((w < 0).any() for w in work):
            raise ValueError(f"stages: stage {place} has work of negative time")
        if stage.rows is None:
            continue
        if stage.rows.shape != (ranks, ranks) or (stage.rows < 0).any():
            raise ValueError(f"stages: the rows of stage {place} are not those of {ranks} ranks")


_Group = tuple[int, int]
"""A stage and a chunk: what is waited for together."""


@dataclass
class _Port:
    """The incoming port of a rank: the group it takes now, what has come for later ones, and how
    many messages of each are still to arrive."""

    groups: list[_Group]
    missing: dict[_Group, int]
    early: dict[_Group, list[float]]
    free: float = 0.0

    def skip(self) -> None:
        """Drops groups that are complete."""
        while self.groups and not self.missing.get(self.groups[0], 0):
            self.groups.pop(0)


class _Simulation:
    """One run: `_events` has (time, number, what is to be done), the number of equals in order."""

    def __init__(self, stages: Sequence[Stage], link: Link, chunks: int, overlap: float) -> None:
        self.stages, self.link, self.chunks, self.overlap = stages, link, chunks, overlap
        self.ranks = len(stages[0].before)
        self._events: list[tuple[float, int, int, _Group, float | None]] = []
        self._count = 0
        self._out = np.zeros(self.ranks)
        self._ports = [self._port(r) for r in range(self.ranks)]
        self._awaited: list[_Group] = [(0, 0)] * self.ranks
        self._waits, self._since = [False] * self.ranks, np.zeros(self.ranks)
        self.finished, self.waited = np.zeros(self.ranks), np.zeros(self.ranks)
        self.sent, self.messages = np.zeros(self.ranks), np.zeros(self.ranks, np.int64)

    def _port(self, rank: int) -> _Port:
        missing: dict[_Group, int] = {}
        for place, stage in enumerate(self.stages):
            if stage.rows is None:
                continue
            senders = np.count_nonzero(stage.rows[rank]) - (stage.rows[rank, rank] > 0)
            for chunk in range(self.chunks):
                missing[place, chunk] = int(senders) * len(stage.row_bytes)
        return _Port(sorted(missing), missing, defaultdict(list))

    def run(self) -> Run:
        for rank in range(self.ranks):
            self._ports[rank].skip()
            self._advance(rank, self._begin(rank, 0, 0.0))
        while self._events:
            now, _, rank, group, size = heapq.heappop(self._events)
            if size is None:
                self._delivered(rank, group, now)
            else:
                self._arrives(rank, group, size, now)
        return Run(float(self.finished.max()), self.finished, self.waited, self.sent, self.messages)

    # ------------------------------------------------------------ ranks

    def _begin(self, rank: int, place: int, now: float) -> float:
        """Starts a stage; when the rank needs its messages, which may lie ahead of the time of the
        simulation, for nobody but the rank sees it."""
        stage = self.stages[place]
        now += stage.before[rank]
        self._start_messages(rank, place, now)
        return now + self.overlap * stage.beside[rank]

    def _start_messages(self, rank: int, place: int, now: float) -> None:
        stage = self.stages[place]
        if stage.rows is None:
            return
        for chunk in range(self.chunks):
            for row_bytes in stage.row_bytes:
                for step in range(1, self.ranks):
                    to = (rank + step) % self.ranks
                    if (rows := float(stage.rows[to, rank])) > 0:
                        self._send(rank, to, (place, chunk), rows * row_bytes / self.chunks, now)

    def _send(self, rank: int, to: int, group: _Group, size: float, now: float) -> None:
        begins = max(now, self._out[rank])
        self._out[rank] = begins + self.link.seconds(size)
        self.sent[rank] += size
        self.messages[rank] += 1
        self._push(begins + self.link.latency, to, group, size)

    def _push(self, time: float, rank: int, group: _Group, size: float | None) -> None:
        self._count += 1
        heapq.heappush(self._events, (float(time), self._count, rank, group, size))

    def _advance(self, rank: int, now: float) -> None:
        """Goes on until the rank has to wait, or is done."""
        while (group := self._awaited[rank])[0] < len(self.stages):
            if self._ports[rank].missing.get(group, 0):
                self._since[rank], self._waits[rank] = now, True
                return
            now = self._received(rank, group, now)
        self.finished[rank] = now

    def _received(self, rank: int, group: _Group, now: float) -> float:
        """Works on what a group brought; when the rank needs the next one."""
        (place, chunk), stage = group, self.stages[group[0]]
        if chunk == 0:
            now += (1 - self.overlap) * stage.beside[rank]
        now += stage.after[rank] / self.chunks
        if chunk + 1 < self.chunks:
            self._awaited[rank] = (place, chunk + 1)
            return now
        self._awaited[rank] = (place + 1, 0)
        return self._begin(rank, place + 1, now) if place + 1 < len(self.stages) else now

    # ------------------------------------------------------------ ports

    def _arrives(self, rank: int, group: _Group, size: float, now: float) -> None:
        port = self._ports[rank]
        if port.groups and group == port.groups[0]:
            self._take(rank, group, size, now)
        else:
            port.early[group].append(size)

    def _take(self, rank: int, group: _Group, size: float, now: float) -> None:
        port = self._ports[rank]
        port.free = max(now, port.free) + self.link.seconds(size)
        self._push(port.free, rank, group, None)

    def _delivered(self, rank: int, group: _Group, now: float) -> None:
        port = self._ports[rank]
        port.missing[group] -= 1
        if port.missing[group]:
            return
        port.skip()
        if port.groups:
            for size in port.early.pop(port.groups[0], []):
                self._take(rank, port.groups[0], size, now)
        if self._waits[rank] and self._awaited[rank] == group:
            self._waits[rank] = False
            self.waited[rank] += max(0.0, now - self._since[rank])
            self._advance(rank, max(now, self._since[rank]))
