"""Where the numbers of a row are while a team of threads computes it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue


@dataclass(frozen=True)
class Single:
    """A row of one number, which every thread of the team has: an expression."""

    text: str


@dataclass(frozen=True)
class Each:
    """Every thread has all numbers of the row, a variable each."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """Threads share the row, tiles of `tile` numbers in turns: an array of registers each."""

    name: str
    length: int
    tile: int


@dataclass(frozen=True)
class Grouped:
    """A row of `length` numbers beside a row of `whole`, of which threads share tiles of `tile`
    numbers in turns: for each of its tiles a thread has the number of the row at the tile's place,
    divided by `each`. Those who have one number have the same bits of it."""

    name: str
    length: int
    whole: int
    tile: int

    @property
    def each(self) -> int:
        """Neighbouring numbers of the whole row to one of this."""
        return self.whole // self.length


@dataclass(frozen=True)
class Memory:
    """The row lies at an address, of which `multiple` says how many numbers it is aligned to."""

    address: str
    aligned: int = 1


Place = Single | Each | Spread | Grouped | Memory


class NeedsMemory(Exception):
    """A thread asks for numbers that others have: the row has to be laid in memory before."""

    def __init__(self, value: SSAValue) -> None:
        super().__init__()
        self.value = value


@dataclass(frozen=True)
class Tiles:
    """A loop over a row of `length` numbers that a team shares: `tile` neighbouring ones at `f`,
    the `k`-th of the thread; `k` is None where there are too many for registers."""

    length: int
    tile: int
    f: str
    k: str | None

    def holds(self, place: Spread | Grouped) -> bool:
        """Whether the threads have the same numbers of the row in registers."""
        whole = place.length if isinstance(place, Spread) else place.whole
        return self.k is not None and (self.length, self.tile) == (whole, place.tile)
