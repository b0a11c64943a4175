"""Whether a rank waits in vain, from what the ranks have noted on the board."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .board import Board, State, Status
from .errors import RankFailed, RanksError, Stuck

OUT_SECONDS = 1.0
"""Who has not looked for so long was itself stopped: it looks ten times as often."""


class Looker:
    """Somebody who looks at the board again and again. While all of a job is stopped, by Ctrl-Z or
    by what manages jobs, no rank makes progress, and none is stuck: what a rank does counts from
    when the looker came back."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._last = time.monotonic()
        self._back = 0.0

    def look(self) -> tuple[list[Status], float]:
        """What all ranks do, and the time."""
        now = time.monotonic()
        if now - self._last > OUT_SECONDS:
            self._back = now
        self._last = now
        statuses = self._board.read_all()
        return [replace(s, since=max(s.since, self._back)) for s in statuses], now


@dataclass(frozen=True)
class Diagnosis:
    """Why a rank waits in vain, and the `culprits` for it."""

    error: type[RanksError]
    text: str
    culprits: tuple[int, ...]


def diagnose(statuses: Sequence[Status], rank: int, now: float) -> Diagnosis | None:
    """Why `rank` will not get what it waits for; None while it may.

    Ranks that it waits for may wait for others themselves: all of those that it depends on count.
    One that works has as much time without progress as its stage has patience, counted from when
    somebody began to wait. Where nobody works, all wait for each other.
    """
    if statuses[rank].state != State.WAITING:
        return None
    needed = _needed(statuses, rank)
    waiters = [r for r in needed if statuses[r].state == State.WAITING]
    waited = min(now - statuses[r].since for r in waiters)
    for r in needed:
        status = statuses[r]
        if status.state in (State.FAILED, State.ENDED):
            return Diagnosis(RankFailed, f"{_doing(statuses, r)}; {_awaits(statuses, rank)}", (r,))
        if status.state == State.FINISHED and now - statuses[rank].since > statuses[rank].patience:
            return Diagnosis(Stuck, f"rank {r} has finished; {_awaits(statuses, rank)}", (r,))
        if status.state == State.WORKING:
            idle = now - max(status.since, min(statuses[w].since for w in waiters))
            if idle > status.patience:
                text = (
                    f"rank {r} is stuck: it made no progress for {idle:.1f} s in stage "
                    f'"{status.stage}", whose patience is {status.patience:g} s; '
                )
                return Diagnosis(Stuck, text + _awaits(statuses, rank), (r,))
    if len(waiters) < len(needed):
        return None
    if all(now - statuses[r].since > statuses[r].patience for r in waiters):
        text = f"ranks wait for each other, for {waited:.1f} s: "
        every = "; ".join(_awaits(statuses, r) for r in sorted(waiters))
        return Diagnosis(Stuck, text + every, tuple(sorted(waiters)))
    return None


def _needed(statuses: Sequence[Status], rank: int) -> list[int]:
    """The rank and all that it waits for, directly or not."""
    found = [rank]
    for r in found:
        if statuses[r].state == State.WAITING:
            found += [other for other in statuses[r].awaited if other not in found]
    return found


def _doing(statuses: Sequence[Status], rank: int) -> str:
    what = "failed" if statuses[rank].state == State.FAILED else "was killed or ended early"
    return f'rank {rank} {what} in stage "{statuses[rank].stage}"'


def _awaits(statuses: Sequence[Status], rank: int) -> str:
    status = statuses[rank]
    where = f'in {status.operation}, stage "{status.stage}"'
    return f"rank {rank} waits for {named(status.awaited)} {where}"


def named(ranks: Iterable[int]) -> str:
    """`rank 1`, `ranks 1 and 2`, `ranks 0, 1 and 2`."""
    numbers = [str(r) for r in ranks]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}" if numbers else "no rank"
