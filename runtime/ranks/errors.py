"""What goes wrong between ranks."""

from __future__ import annotations


class RanksError(RuntimeError):
    """Ranks cannot go on together; `culprits` are those at fault, where that is known."""

    def __init__(self, text: str, culprits: tuple[int, ...] = ()) -> None:
        super().__init__(text)
        self.culprits = culprits


class Disagreement(RanksError):
    """Ranks have different values of what must be the same; raised on all of them."""


class Stuck(RanksError):
    """A rank waits in vain: those it waits for make no progress, wait for it, or have finished."""


class RankFailed(RanksError):
    """A rank waits for one that has failed."""
