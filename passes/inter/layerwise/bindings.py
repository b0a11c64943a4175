"""What the functions of stages take and give, for who runs them: plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

SELF = ""
"""The path from a chunk's rows to themselves in the whole set."""
TILE = "tile"
"""The map of a chunk's rows to the rows from lo to hi that they belong to."""
Merge = Literal["sum", "mean", "max", "min", "mul"]
"""Reductions of all rows that follow from those of chunks."""


@dataclass(frozen=True)
class Path:
    """From a row of a set to one of the set `end`: through maps, `steps`. Without any it is the row
    itself, or where the set is a part of the union `end` the row there, with `before` the sets that
    come before."""

    steps: str
    end: str
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Some rows of the set `of`: those from lo to hi (`key` None), or all that the path `key` leads
    to one of them, in the order of these. Where this is a part of a union whose rows these are,
    `within` has the parts up to this one, for a part of a part those of both."""

    of: str
    key: str | None = None
    within: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Chunk:
    """A set argument with the rows of a place, and its maps by label. The map TILE is the key of
    the place, counted from lo."""

    name: str
    place: Place
    maps: tuple[tuple[str, Path], ...]


@dataclass(frozen=True)
class Given:
    """A rows argument: a value of the whole program with all its rows, or with those from lo to hi
    (`sliced`). A single row is whole."""

    name: str
    value: SSAValue
    sliced: bool


@dataclass(frozen=True)
class Made:
    """A result: rows lo to hi of a value, or with `merge` the reduction of these, which are merged
    so; of a mean it is the sum."""

    name: str
    value: SSAValue
    merge: Merge | None


@dataclass
class Stage:
    """One function, called for lo to hi of each chunk of rows of `target` (None: once). `whole` are
    set arguments that have as many rows as a set of the whole program, by name. `last` are the
    values that nobody reads later."""

    function: FuncOp
    target: str | None
    whole: dict[str, str]
    chunks: Sequence[Chunk]
    given: Sequence[Given]
    made: Sequence[Made]
    last: list[SSAValue] = field(default_factory=list[SSAValue])
