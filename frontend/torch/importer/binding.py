"""How the arguments and results of an imported program meet torch's: plain data.

Placeholders are those of the FX graph, by position. A compiled program is called as
`(sets.., rows..)` in the order of `Imported.sets` and `Imported.rows`, and gives
`Imported.results` followed by `Imported.updates`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp


@functools.cache
def _compiled(text: str, names: tuple[str, ...]) -> Callable[..., int | float]:
    # text is printed from a size expression, with functions of these modules
    return eval(f"lambda {', '.join(names)}: {text}", {"math": math, "torch": torch})


@dataclass(frozen=True)
class Size:
    """A number that the placeholders give: `text` is a Python expression of names, each a dimension
    of a tensor placeholder (or, with `dim` None, the number that the placeholder is). `kind` is the
    type of the number: a mean degree is a float, a comparison a bool."""

    text: str
    names: tuple[tuple[str, int, int | None], ...] = ()
    kind: type[int | float | bool] = int

    def __call__(self, args: Sequence[Any]) -> Any:
        values = [
            args[position] if dim is None else args[position].shape[dim]
            for _, position, dim in self.names
        ]
        return self.kind(self._compute(*values))

    @functools.cached_property
    def _compute(self) -> Callable[..., int | float]:
        return _compiled(self.text, tuple(n for n, _, _ in self.names))


@dataclass(frozen=True)
class MapBinding:
    """A map of a set argument: one column of an integer placeholder. With the row axis removed,
    `index` chooses the number in each other dimension, in order."""

    label: str
    codomain: str
    placeholder: int
    row_axis: int
    index: tuple[int, ...]


@dataclass(frozen=True)
class SetBinding:
    """A set argument: its size and maps."""

    name: str
    size: Size
    maps: tuple[MapBinding, ...]


@dataclass(frozen=True)
class FromTensor:
    """Rows of a placeholder, with `row_axis` moved to the front (None: one row)."""

    placeholder: int
    row_axis: int | None


@dataclass(frozen=True)
class FromSize:
    """One number computed from sizes."""

    size: Size


@dataclass(frozen=True)
class DropoutKey:
    """One i64 number that is fresh for each call in training."""


@dataclass(frozen=True)
class RowsBinding:
    """A rows argument. `shape` is that of one row, `elem` one of f32 f64 i32 i64 i1."""

    name: str
    source: FromTensor | FromSize | DropoutKey
    shape: tuple[int, ...]
    elem: str
    needs_grad: bool


@dataclass(frozen=True)
class ResultBinding:
    """A result as a tensor: `dims` with -1 at the row axis; the tensor's dimension there counts
    `merge` times the set's rows, the factor the slower index. `row_axis` None: one row."""

    name: str
    dims: tuple[int, ...]
    row_axis: int | None
    merge: int
    elem: str
    set: str | None


@dataclass(frozen=True)
class UpdateBinding:
    """A result to be copied into a placeholder after the call."""

    placeholder: int
    argument: str
    result: ResultBinding


@dataclass(frozen=True)
class Result:
    """An output that is the result of this number."""

    number: int


@dataclass(frozen=True)
class Same:
    """An output that is a placeholder itself."""

    placeholder: int


@dataclass(frozen=True)
class Copy:
    """An output that is a new tensor with a placeholder's numbers."""

    placeholder: int


@dataclass(frozen=True)
class Number:
    """An output that is a number computed from sizes."""

    size: Size


@dataclass(frozen=True)
class Constant:
    """An output that is this Python value."""

    value: Any


@dataclass(frozen=True)
class Check:
    """Two sizes that have to be equal when the program runs: two tensors meet row by row."""

    left: Size
    right: Size
    message: str


@dataclass(frozen=True)
class Imported:
    """An imported graph.

    `module` holds one function @main. `outputs` is the structure that the graph returns (tuples,
    lists and dicts) with `Result | Same | Copy | Number | Constant` leaves. `widths` are sizes that
    were made constant (Dynamo guards them). `placeholders` are their names.
    """

    module: ModuleOp
    sets: tuple[SetBinding, ...]
    rows: tuple[RowsBinding, ...]
    results: tuple[ResultBinding, ...]
    updates: tuple[UpdateBinding, ...]
    outputs: Any
    checks: tuple[Check, ...]
    widths: tuple[tuple[str, int], ...]
    placeholders: tuple[str, ...]

    @property
    def function(self) -> FuncOp:
        """The one function of the module."""
        (func,) = self.module.ops
        assert isinstance(func, FuncOp)
        return func

    @property
    def uses_dropout(self) -> bool:
        return any(isinstance(r.source, DropoutKey) for r in self.rows)

    def check(self, args: Sequence[Any]) -> None:
        """Raises ValueError where sizes that have to agree do not."""
        for c in self.checks:
            left, right = c.left(args), c.right(args)
            if left != right:
                raise ValueError(f"{c.message}: {left} and {right} rows")
