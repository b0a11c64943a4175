"""Waiting for messages: often at first, then seldom, and not for ever."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from .board import Note
from .diagnosis import Looker, diagnose

EAGER_SECONDS = 5e-4
"""So long a rank asks without pausing, but lets others run: messages between cores take less."""
SHORTEST_PAUSE, LONGEST_PAUSE = 2e-5, 1e-3
PAUSE_SHARE = 1 / 16
"""Of the time that a rank has waited: so much longer than needed it waits at most."""
DIAGNOSE_SECONDS = 0.1
"""How often a rank that waits looks whether it does so in vain."""


class Pending(ABC):
    """Messages under way that have a `name`; `note` is the hand of their rank."""

    def __init__(self, name: str, note: Note) -> None:
        self.name = name
        self.note = note

    @abstractmethod
    def poll(self) -> bool:
        """Moves them on without waiting; True once all have arrived. Raises ValueError for one
        that has another length than was expected."""

    @abstractmethod
    def missing(self) -> Sequence[int]:
        """The ranks whose messages, or whose readiness for ours, are missing."""

    @abstractmethod
    def left(self) -> int:
        """How many messages are under way."""

    def pause(self, seconds: float) -> None:
        """Lets others work for so long, or until something happened; 0: those that are ready."""
        if seconds:
            time.sleep(seconds)
        else:
            os.sched_yield()

    def wait(self) -> None:
        """Waits until all have arrived.

        Raises:
            ValueError: a message has another length than was expected.
            Stuck, RankFailed: those that are missing do not come.
        """
        start = time.monotonic()
        while not self.poll():
            if time.monotonic() - start > EAGER_SECONDS:
                self._wait_with_pauses(start)
                break
            self.pause(0)
        self.note.working()

    def _wait_with_pauses(self, start: float) -> None:
        left = -1
        looked = 0.0
        looker = Looker(self.note.board)
        while not self.poll():
            now = time.monotonic()
            if left != self.left():
                left = self.left()
                self.note.waiting(self.name, self.missing())
                looked = now
            elif now - looked > DIAGNOSE_SECONDS:
                looked = now
                self._diagnose(looker)
            share = PAUSE_SHARE * (now - start)
            self.pause(min(max(share, SHORTEST_PAUSE), LONGEST_PAUSE))

    def _diagnose(self, looker: Looker) -> None:
        statuses, now = looker.look()
        found = diagnose(statuses, self.note.rank, now)
        if found is not None:
            raise found.error(found.text, found.culprits)
