"""What a program that trains is made of, as plain data: the arrays that it reads, and how they meet
the arguments of a compiled step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class NoProgram(RuntimeError):
    """A training cannot be printed as a program; the message says what of it, and why."""


@dataclass(frozen=True)
class NonZeros:
    """What an array is made from: the row, column or value of each entry of a matrix, an array of a
    lower number, that is not 0."""

    matrix: int
    part: str


PART = "part"
"""The folder of arrays that each rank has of its own: `part-0` and so on beside those of `data`."""
LISTED = "part"
"""The array there that says whose it is: the rank, of how many, and the number of the cut."""


@dataclass(frozen=True)
class Array:
    """An array in a file `folder`/`name`.npy, or one that is `made` from another. `dims` has a
    number where it is fixed, else the name of a size; None is any. `elem` is one of f32 f64 i32 i64
    i1."""

    name: str
    folder: str
    elem: str
    dims: tuple[int | str | None, ...]
    made: NonZeros | None = None


@dataclass(frozen=True)
class SizeText:
    """A Python expression of names, each a dimension (array, dimension) or a number."""

    text: str
    names: Mapping[str, tuple[int, int] | int]


@dataclass(frozen=True)
class MapArgument:
    """A map of a set: a column of an array of integers, with `axis` moved to the front and the rest
    of a row counted through."""

    label: str
    codomain: str
    array: int
    axis: int
    column: int


@dataclass(frozen=True)
class SetArgument:
    """A set with its maps."""

    name: str
    size: SizeText
    maps: tuple[MapArgument, ...]


@dataclass(frozen=True)
class OfArray:
    """Rows of an array, with `axis` moved to the front (None: one row)."""

    array: int
    axis: int | None


@dataclass(frozen=True)
class Key:
    """The key of dropout: a number from the generator, another in each step."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of the optimizer for a parameter. `kind` and `options` are those of
    runtime/standalone/optimizers.h. `count` is the argument that counts steps, None where the rule
    keeps no count; `begun`: whether something is kept from the first step on."""

    kind: str
    options: Mapping[str, float]
    count: str | None
    begun: bool


@dataclass(frozen=True)
class Fixed:
    """Numbers that are the same in every step."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class RowsArgument:
    """An argument of rows: `elem` is the type of its numbers, `width` how many a row has. `label`
    is what the program calls it, each by another."""

    name: str
    label: str
    elem: str
    width: int
    source: OfArray | SizeText | Key | Numbers | Fixed


@dataclass(frozen=True)
class Condition:
    """What has to hold of sizes, with what is said where it does not."""

    holds: SizeText
    message: str


@dataclass(frozen=True)
class Value:
    """A number that a step gives: the result and its type."""

    result: str
    elem: str


@dataclass(frozen=True)
class OfEpoch:
    """Arithmetic of whole numbers with the number of the epoch, which `text` calls `name`."""

    text: str
    name: str


@dataclass(frozen=True)
class Piece:
    """A part of a line: a text, a value, or a number that the epoch gives; with a `format` of
    printf, or as Python shows it."""

    what: str | Value | OfEpoch
    format: str | None = None


@dataclass(frozen=True)
class Line:
    """What is printed after an epoch, always or where `when` is not 0."""

    pieces: tuple[Piece, ...]
    when: OfEpoch | None = None


@dataclass(frozen=True)
class Epochs:
    """A range: the epochs' numbers."""

    start: int
    stop: int
    step: int


@dataclass(frozen=True)
class Standalone:
    """A training. `artifact` is that of the step (codegen/common/artifact.py); `updates` maps an
    argument to the result that becomes its next value; `held` are results that have to be true,
    with what is said else; `generator` tells whether a step draws random numbers."""

    name: str
    artifact: Mapping[str, Any]
    arrays: Sequence[Array]
    sets: Sequence[SetArgument]
    rows: Sequence[RowsArgument]
    updates: Mapping[str, str]
    conditions: Sequence[Condition]
    held: Mapping[str, str]
    epochs: Epochs
    lines: Sequence[Line]
    generator: bool
