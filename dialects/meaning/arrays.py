"""Rows as arrays of NumPy, the row axis first: their numbers, how they align, how they are reduced
by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from ..inter.types import is_bool, is_float
from .world import Array, Index


def dtype_of(elem: Attribute) -> type[np.float64] | type[np.int64] | type[np.bool_]:
    """What numbers of an element type are in the interpreter."""
    if is_float(elem):
        return np.float64
    return np.bool_ if is_bool(elem) else np.int64


def as_elements(x: Any, elem: Attribute) -> Array:
    """Numbers of an element type; those of i32, which wrap around, are given in int64."""
    return np.asarray(x, np.int32 if elem == i32 else None).astype(dtype_of(elem), copy=False)


def aligned(xs: Sequence[Array]) -> list[Array]:
    """Arrays with the row axis first, given leading dimensions of 1 so that rows align right."""
    rank = max(x.ndim for x in xs)
    return [x.reshape(x.shape[:1] + (1,) * (rank - x.ndim) + x.shape[1:]) for x in xs]


def spread(flags: Array, like: Array) -> Array:
    """A flag or number per row, to be used with rows like those of `like`."""
    return flags.reshape(-1, *[1] * (like.ndim - 1))


def scatter(kind: str, x: Array, group: Index, n: int) -> Array:
    """Rows of `x` reduced by group; empty groups are 0 (mul: 1)."""
    x, group = x[group >= 0], group[group >= 0]
    shape = (n, *x.shape[1:])
    if kind == "mul":
        y = np.ones(shape, x.dtype)
        np.multiply.at(y, group, x)
        return y
    if kind in ("max", "min"):
        if x.dtype == np.float64:
            start: float = -np.inf if kind == "max" else np.inf
        else:
            start = np.iinfo(np.int64).min if kind == "max" else np.iinfo(np.int64).max
        y = np.full(shape, start, x.dtype)
        (np.maximum if kind == "max" else np.minimum).at(y, group, x)
        return np.where(spread(np.bincount(group, minlength=n) == 0, y), 0, y).astype(x.dtype)
    y = np.zeros(shape, x.dtype)
    np.add.at(y, group, x)
    if kind == "mean":
        count = np.maximum(np.bincount(group, minlength=n), 1)
        y = y / spread(count, y)
    return y


def last_rows(group: Index, n: int) -> Index:
    """The last row of each group, -1 where it has none."""
    out = np.full(n, -1, np.int64)
    rows = np.flatnonzero(group >= 0)
    np.maximum.at(out, group[rows], rows)
    return out
