"""How many of the threads that compiled code may use pay off now.

A team of threads is as fast as its last one. On cores that other programs use too, that one waits
for its turn, for milliseconds, at the end of every parallel loop: a step of 0.4 ms on free cores
takes 2 to 16 ms there, and on one thread as long as before. So calls of one kind are timed, and
what has been faster of late runs them: all threads, or one. The results have the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from .threads import num_threads

Result = TypeVar("Result")

SHARE = 0.01
"""Of the time of calls, what trying the other way may take."""
SOON = 8
"""Times this share is what tries may take after a change, half as much after each: what turned it
may have been a single pause."""
NEAR, BRIEF = 1.1, 10e-3
"""So many times the other's mean is that of what has just become the slower one, or so many
seconds, whichever is more: long calls would take many seconds to try it until this is forgotten."""
HORIZON = 0.25
"""Seconds of calls that a mean looks back on."""
LEAST, MOST = 1 / 256, 1 / 8
"""What a call weighs in a mean; one that tries the other way weighs `MOST`."""
NEW, FIRST = 2, 3
"""Calls at the start that are not counted, and those behind them that all threads run too: the
first ones find new memory, and what a graph has left in the caches."""
REST = 0.5
"""Seconds without a call, after which the first one is not counted: others have used the caches,
and perhaps the cores, meanwhile."""
TRIED = 0.1
"""Seconds: longer calls are tried on one thread later, when that fits into their share."""
DYNAMIC_VARIABLE = "OMP_DYNAMIC"
"""OpenMP's variable: where it is ``false``, the number of threads is never adjusted."""


class Crew:
    """Calls of one kind and about one size, on as many threads as they may use or on one.

    Calls of several Python threads may share one: an update that is lost costs nothing but time.
    """

    def __init__(self) -> None:
        self._start(1)
        self.ended = 0.0
        """When the last call was over (`perf_counter`)."""

    def rests(self) -> None:
        """The next call is not counted."""
        self._uncounted = max(self._uncounted, 1)

    def threads(self, allowed: int, size: float = 1.0) -> int:
        """The threads of the next call, at most `allowed`. `size` is its size in any unit: calls of
        other sizes tell of its time in proportion."""
        if allowed != self._allowed:
            self._start(allowed)
        if self._fixed or self._begun < FIRST:
            return allowed
        if self._means[False] is None and self._mean(True) * size < TRIED:
            return 1
        tries = self._since * self._share >= self._mean(not self._home) * size
        return allowed if self._home != tries else 1

    def took(self, threads: int, seconds: float, size: float = 1.0) -> None:
        """What a call of that size took on so many threads."""
        if self._uncounted:
            self._uncounted -= 1
            return
        team, cost = threads > 1, seconds / size
        mean = self._means[team]
        if self._begun < FIRST:
            self._begun += 1
            self._means[team] = cost if mean is None else min(mean, cost)
            return
        weight = 1.0 if mean is None else self._weight(team, mean * size)
        before = cost if mean is None else mean
        self._means[team] = before + weight * (cost - before)
        if team == self._home:
            self._since += seconds
        else:
            self._since, self._share = 0.0, max(self._share / 2, SHARE)
        if self._mean(self._home) > self._mean(not self._home):
            if team == self._home:
                # what turned it weighs as a try does, if that is not long: so the next ones begin
                most = max(NEAR * self._mean(not team), BRIEF / size)
                self._means[team] = min(before + MOST * (cost - before), most)
            self._home, self._since, self._share = not self._home, 0.0, SOON * SHARE

    def _start(self, allowed: int) -> None:
        self._allowed = allowed
        self._fixed = os.environ.get(DYNAMIC_VARIABLE, "").strip().lower() == "false"
        self._uncounted, self._begun = NEW, 0
        self._home = True
        """Whether a team of all threads runs the calls, but for some that try the other way."""
        self._since = 0.0
        """Seconds of calls since the last try."""
        self._share = SHARE
        self._means: dict[bool, float | None] = {True: None, False: None}
        """Seconds of a call of size 1, by a team and by one thread."""

    def _mean(self, team: bool) -> float:
        """What a call of size 1 takes; on one thread, before that was tried, as long as if all
        threads were busy all the time. Nothing before there was any call."""
        found = self._means[team]
        if found is not None:
            return found
        other = self._means[not team] or 0.0
        return other / self._allowed if team else other * self._allowed

    def _weight(self, team: bool, seconds: float) -> float:
        """What a call weighs in the mean of its kind, by which it takes so many seconds."""
        return min(max(seconds / HORIZON, LEAST), MOST) if team == self._home else MOST


class Crews:
    """Crews of calls, by what they are and the power of two of their size."""

    def __init__(self) -> None:
        self._crews: dict[tuple[str, int], Crew] = {}

    def run(
        self, name: str, size: int, call: Callable[[int], Result], threads: int | None = None
    ) -> Result:
        """The result of `call`, given a number of threads: `threads`, or by default as many of
        :func:`~gnnc.runtime.cpu.threads.num_threads` as pay off for calls of that kind and size.
        """
        if threads is not None:
            return call(threads)
        if (allowed := num_threads()) == 1:
            return call(1)
        key, size = (name, size.bit_length()), max(size, 1)
        if (crew := self._crews.get(key)) is None:
            crew = self._crews.setdefault(key, Crew())
        count = crew.threads(allowed, size)
        begin = perf_counter()
        if begin - crew.ended > REST:
            crew.rests()
        found = call(count)
        crew.ended = perf_counter()
        crew.took(count, crew.ended - begin, size)
        return found


crews = Crews()
"""Those of calls whose time follows from what they are and their size."""
