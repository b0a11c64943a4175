"""Steps on rows of integers and truth values, and on the floats that masks are made from.

These are the fast meaning of the ops, that of dialects/meaning is the oracle: tests/runtime/
test_structure_meaning.py compares the two op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import kernels
from .set_steps import Array, Attrs, Images, Rule, Value, between, follow, on_rows
from .sets import SetData

ELEMENTS: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "i1": np.dtype(np.bool_),
}


def _const(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """const () {value, shape, elem}: one unit row filled with a value."""
    return np.full((1, *attrs.get("shape", ())), attrs["value"], ELEMENTS[attrs["elem"]])


def _table(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """table () {values, elem}: one unit row given as nested lists."""
    return np.asarray(attrs["values"], ELEMENTS[attrs["elem"]])[None]


def _index(inputs: Sequence[Any], attrs: Attrs) -> Images:
    """index (g, s1, ..) {path}: a map, or the composition of several, as i64 rows."""
    return Images(follow(inputs, attrs["path"]))


def _iota(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """iota (s): the numbers of the rows, i64."""
    return np.arange(inputs[0].size, dtype=np.int64)


def _size(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """size (s): the number of rows, one unit i64."""
    return np.array([inputs[0].size], np.int64)


def _at(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """at (g, s1, .., x[, y]) {path}: x at the image of every row of g; where a partial map has
    none, y (which must then be given).
    """
    length = len(attrs["path"])
    path, x = follow(inputs[:length], attrs["path"]), inputs[length]
    x = on_rows(x, path.codomain)
    otherwise = inputs[length + 1] if len(inputs) > length + 1 else None
    if not path.partial:
        return x if path.is_identity else np.take(x, path.array, axis=0)
    if otherwise is None:
        raise ValueError(
            "reading along a partial map needs a value for the rows where it is not defined"
        )
    index = path.array
    if x.shape[0] == 0:  # the map is defined nowhere, but NumPy needs a row to take
        x = np.zeros((1, *x.shape[1:]), x.dtype)
    taken = np.take(x, np.maximum(index, 0), axis=0)
    return np.where(*_aligned([index >= 0, taken, on_rows(otherwise, path.size)]))


def _stack(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """stack (u, a, b, ..): values on the parts of a union as one value on it."""
    u: SetData = inputs[0]
    return np.concatenate([on_rows(x, size) for x, size in zip(inputs[1:], u.parts, strict=True)])


def _part(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """part (u, x) {index}: the rows of one part of a union."""
    u, x = inputs
    index: int = attrs["index"]
    start = sum(u.parts[:index])
    return on_rows(x, u.size)[start : start + u.parts[index]]


def _as_rows(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """as_rows (R, x): a unit value whose first dimension becomes the rows of R."""
    owner, x = inputs
    if x.ndim < 2 or x.shape[1] != owner.size:
        raise ValueError(
            f"a value of shape {x.shape[1:]} cannot be the rows of a set of {owner.size} rows"
        )
    return x[0]


def _as_unit(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """as_unit (R, x) {rows}: the rows of R, so many, as the first dimension of a unit value."""
    owner, x = inputs
    if owner.size != attrs["rows"]:
        raise ValueError(f"a set of {owner.size} rows cannot be a value of {attrs['rows']} rows")
    return on_rows(x, owner.size)[None]


def _reduce(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """reduce (g, x[, y]) {kind, along, over}: x on g[over] (absent: every row) reduced to g[along]
    ([]: unit).

    kind is sum, mean, mul, max, min or last. Empty groups give 0 (mul: 1; last: y). Rows where a
    partial map is not defined are left out.
    """
    g: SetData = inputs[0]
    over: list[str] | None = attrs.get("over")
    index, count = between(g, over, attrs["along"])
    x = on_rows(inputs[1], index.size)
    if np.any(index < 0):
        kept = np.flatnonzero(index >= 0)
        index, x = index[kept], x[kept]
    kind: str = attrs["kind"]
    if kind == "last":
        out = np.array(on_rows(inputs[2], count))
        last = np.full(count, -1, np.int64)
        np.maximum.at(last, index, np.arange(index.size))
        found = np.flatnonzero(last >= 0)
        out[found] = x[last[found]]
        return out
    if kind in ("max", "min"):
        return _extreme(kind, x, index, count)
    if kind not in ("sum", "mean", "mul") or x.dtype == np.bool_:
        raise TypeError(f"cannot reduce {x.dtype} rows with {kind!r}; cast them first")
    out = np.full((count, *x.shape[1:]), 1 if kind == "mul" else 0, x.dtype)
    (np.multiply if kind == "mul" else np.add).at(out, index, x)
    if kind == "mean":
        sizes = np.maximum(np.bincount(index, minlength=count), 1)
        out = out / sizes.reshape(-1, *[1] * (x.ndim - 1)).astype(out.dtype)
    return out


def _extreme(kind: str, x: Array, index: kernels.Int32s, count: int) -> Array:
    operation = np.maximum if kind == "max" else np.minimum
    ptr, order = kernels.group(index, count)
    found = np.flatnonzero(np.diff(ptr))
    out = np.zeros((count, *x.shape[1:]), x.dtype)
    if found.size:
        out[found] = operation.reduceat(x[order], ptr[:-1][found], axis=0)
    return out


def _count(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """count (g) {along, over, elem}: how many rows of g[over] each row of g[along] has (elem: i64
    by default).
    """
    index, count = between(inputs[0], attrs.get("over"), attrs["along"])
    return np.bincount(index[index >= 0], minlength=count).astype(
        ELEMENTS[attrs.get("elem", "i64")]
    )


def _cast(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """cast (x) {elem}: towards zero from floats to integers."""
    with np.errstate(invalid="ignore"):
        return inputs[0].astype(ELEMENTS[attrs["elem"]])


def _reshape(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """reshape (x) {shape}: the shape of a row."""
    return inputs[0].reshape(inputs[0].shape[0], *attrs["shape"])


def _transpose(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """transpose (x) {order}: permutes the dimensions of a row."""
    return inputs[0].transpose(0, *[d + 1 for d in attrs["order"]])


def _broadcast(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """broadcast (x) {shape}: to the shape of a row, aligned right."""
    x, shape = inputs[0], tuple(attrs["shape"])
    x = x.reshape(x.shape[0], *[1] * (len(shape) + 1 - x.ndim), *x.shape[1:])
    return np.broadcast_to(x, (x.shape[0], *shape))


def _slice(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """slice (x) {dim, lo, hi, step}: along one dimension of a row."""
    cut = slice(attrs["lo"], attrs["hi"], attrs.get("step", 1))
    return inputs[0][(slice(None),) * (attrs["dim"] + 1) + (cut,)]


def _concat(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """concat (a, b, ..) {dim}: along one dimension of a row."""
    return np.concatenate(_same_rows(inputs), axis=attrs["dim"] + 1)


def _same_rows(values: Sequence[Array]) -> list[Array]:
    counts = {x.shape[0] for x in values} - {1}
    if len(counts) > 1:
        raise ValueError(f"values of {sorted(counts)} rows do not belong to one set")
    count = counts.pop() if counts else 1
    return [on_rows(x, count) for x in values]


def _row_reduce(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """row_reduce (x) {kind: sum | max | min, dims}: over dimensions of a row."""
    x, dims = inputs[0], tuple(d + 1 for d in attrs["dims"])
    if attrs["kind"] == "sum":
        return x.sum(dims, dtype=x.dtype)
    return x.max(dims) if attrs["kind"] == "max" else x.min(dims)


# ---- pointwise ----


def _aligned(values: Sequence[Array]) -> list[Array]:
    """Values with row shapes aligned right, so that NumPy pairs rows with rows."""
    rank = max(x.ndim for x in values)
    return [x.reshape(x.shape[0], *[1] * (rank - x.ndim), *x.shape[1:]) for x in values]


def _pointwise(function: Callable[..., Any]) -> Rule:
    def rule(inputs: Sequence[Any], attrs: Attrs) -> Value:
        with np.errstate(all="ignore"):
            return np.asarray(function(*_aligned(inputs)))

    return rule


def _comparison(function: Callable[..., Any]) -> Rule:
    plain = _pointwise(function)

    def rule(inputs: Sequence[Any], attrs: Attrs) -> Value | Images:
        return plain(_narrowed(inputs), attrs)

    return rule


def _narrowed(values: Sequence[Any]) -> Sequence[Array]:
    """Numbers of rows by 32 bits each, and a single number that they are compared with as well,
    where that has no more."""
    if not any(isinstance(x, Images) for x in values):
        return values
    arrays: list[Array] = [x.map.array if isinstance(x, Images) else x for x in values]
    return [x.astype(np.int32) if x.size == 1 and abs(int(x.item())) < 2**31 else x for x in arrays]


def _sign(x: Array) -> Array:
    """0 of NaN, as torch has it and NumPy not."""
    return np.where(x == x, np.sign(x), 0).astype(x.dtype)


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
TAKE_IMAGES = {"attach", *COMPARISONS}
"""The steps that take the images of a map as they are."""

POINTWISE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "neg": np.negative,
    "abs": np.abs,
    "sign": _sign,
    "floor": np.floor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "where": np.where,
}
"""The pointwise steps, on operands of one element type (`where`: a mask and two values); row shapes
broadcast, aligned right. Integers divided by 0 give 0, as in kernels; torch raises for that, so no
program of torch comes here with such a divisor.
"""

ROW_STEPS: dict[str, Rule] = {
    "const": _const,
    "table": _table,
    "index": _index,
    "iota": _iota,
    "size": _size,
    "at": _at,
    "stack": _stack,
    "part": _part,
    "as_rows": _as_rows,
    "as_unit": _as_unit,
    "reduce": _reduce,
    "count": _count,
    "cast": _cast,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "concat": _concat,
    "row_reduce": _row_reduce,
    **{name: _pointwise(function) for name, function in POINTWISE.items()},
    **{name: _comparison(POINTWISE[name]) for name in COMPARISONS},
}
