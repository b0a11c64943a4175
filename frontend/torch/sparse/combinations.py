"""What keeps features sparse on the way to a product: linear functions of their rows, and functions
of each number that keep zeros.

A model may read rows of its features, scale and sum them before it multiplies them with a weight
(SAGE and GIN do). `L(X) W` is `L(X W)` where L is linear in the rows of X, so such a function is
kept with the matrix, as what the product with any weight will be (`times`), and the matrix itself
stays the one that the user has. All functions here are of features, dense tensors that are taken as
sparse (`like` is torch.strided), of which torch would compute every number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._guards import TracingContext
from torch.nn import functional as F

from .operations import OPERATIONS, Entries, is_matrix, plain, product, with_values

COMBINATIONS: dict[Any, Callable[..., Any]] = {}
"""The functions of features beside those of all matrices."""


def operation(function: Any, matrices: Sequence[Any]) -> Callable[..., Any] | None:
    """What a function is in terms of entries, given the matrices among its arguments."""
    if function in COMBINATIONS and any(a.like is torch.strided for a in matrices):
        return COMBINATIONS[function]
    return OPERATIONS.get(function)


def _of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def define(body: Callable[..., Any]) -> Callable[..., Any]:
        COMBINATIONS.update(dict.fromkeys(functions, body))
        return body

    return define


def _combined(a: Entries, columns: Any, times: Callable[[Any], Any]) -> Entries:
    """A matrix of which only the product with a weight is known, and not how many rows it has."""
    return Entries(a.row, a.col, a.value, (None, columns), a.like, False, times)


def _example(x: Any) -> Any:
    return x.node.meta["example_value"] if isinstance(x, fx.Proxy) else x


def _among_rows(dim: int) -> None:
    if dim not in (0, -2):
        raise RuntimeError(f"columns of features, along {dim}")


# ---------------------------------------------------------------- rows


@_of(torch.index_select, Tensor.index_select)
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Rows by their numbers."""
    _among_rows(dim)
    return _combined(input, input.shape[1], lambda w: product(input, w).index_select(0, index))


@_of(Tensor.__getitem__, operator.getitem)
def getitem(input: Any, index: Any) -> Any:
    """Rows by their numbers, or a slice of them."""
    example = _example(index)
    rows = isinstance(example, Tensor) and example.dim() == 1 and example.dtype == torch.int64
    if not rows and not isinstance(index, slice):
        raise RuntimeError("numbers of features by an index of another kind than rows")
    return _combined(input, input.shape[1], lambda w: product(input, w)[index])


@_of(torch.ops.gnnc.segment_reduce, torch.ops.gnnc.segment_reduce.default)
def segment_reduce(src: Any, index: Any, dim: int, dim_size: Any, reduce: str) -> Any:
    """Sums or means of rows."""
    _among_rows(dim)
    if reduce not in ("sum", "mean"):
        raise RuntimeError(f"{reduce} is not linear in the rows of features")
    sums = torch.ops.gnnc.segment_reduce
    return _combined(src, src.shape[1], lambda w: sums(product(src, w), index, 0, dim_size, reduce))


@_of(torch.mm, torch.matmul, Tensor.mm, Tensor.matmul, Tensor.__matmul__, operator.matmul)
def matmul(a: Any, x: Any) -> Any:
    """A product with a weight, or of an adjacency matrix with features."""
    if not (is_matrix(a) and is_matrix(x)):
        return OPERATIONS[torch.matmul](a, x)
    if a.like is torch.strided:
        raise RuntimeError("a product of features with another matrix")
    return _combined(x, x.shape[1], lambda w: product(a, product(x, w)))


# ---------------------------------------------------------------- arithmetic


def _scaled(a: Any, factor: Any, by: Callable[[Any, Any], Any]) -> Any:
    """Rows that are multiplied or divided by a number, or each by its own (a column of them)."""
    y = _example(factor)
    if isinstance(y, Tensor):
        if y.dtype != _example(a.value).dtype:
            raise RuntimeError(f"features times a tensor of {y.dtype}")
        if y.dim() > 2 or (y.dim() > 0 and y.shape[-1] != 1):
            raise RuntimeError("features whose columns are scaled")
    elif not isinstance(y, int | float) or not math.isfinite(y):
        raise RuntimeError(f"features times {y}")

    def times(w: Any) -> Any:
        column = isinstance(y, Tensor) and y.dim() == 2 and _example(w).dim() == 1
        return by(product(a, w), factor.squeeze(1) if column else factor)

    return _combined(a, a.shape[1], times)


@_of(torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.multiply, operator.mul)
def mul(input: Any, other: Any) -> Any:
    """Scaled rows."""
    if is_matrix(input) and is_matrix(other):
        raise RuntimeError("features times features")
    a, factor = (input, other) if is_matrix(input) else (other, input)
    return _scaled(a, factor, operator.mul)


@_of(torch.div, Tensor.div, Tensor.__truediv__, torch.true_divide, operator.truediv)
def div(input: Any, other: Any) -> Any:
    """Rows that are divided."""
    if not is_matrix(input) or is_matrix(other):
        raise RuntimeError("a quotient by features")
    if isinstance(other, int | float) and other == 0:
        raise RuntimeError("features over 0")
    return _scaled(input, other, operator.truediv)


@_of(torch.neg, Tensor.neg, Tensor.__neg__, operator.neg)
def neg(input: Any) -> Any:
    """The negative."""
    return _scaled(input, -1, operator.mul)


@_of(torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, operator.add)
def add(input: Any, other: Any) -> Any:
    """The sum of two combinations of features; 0, with which Python's `sum` begins, is none."""
    for x, y in ((input, other), (other, input)):
        if isinstance(y, int) and y == 0:
            return x
    return _both(input, other, operator.add)


@_of(torch.sub, Tensor.sub, Tensor.__sub__, operator.sub)
def sub(input: Any, other: Any) -> Any:
    """The difference of two combinations of features."""
    return _both(input, other, operator.sub)


def _both(a: Any, b: Any, by: Callable[[Any, Any], Any]) -> Any:
    if not (is_matrix(a) and is_matrix(b)):
        raise RuntimeError("features and what is not sparse, added")
    if _example(a.value).dtype != _example(b.value).dtype:
        raise RuntimeError("features of two types, added")
    return _combined(a, a.shape[1], lambda w: by(product(a, w), product(b, w)))


def _columns(x: Any) -> Any:
    """How many columns there are, as a number: it says where a weight is cut. While Dynamo traces,
    it guards that it stays that number; later nobody would."""
    size = _example(x.shape[1] if is_matrix(x) else _example(x).shape[1])
    if isinstance(size, torch.SymInt) and TracingContext.try_get() is None:
        raise RuntimeError("features beside columns whose number is no constant")
    return int(size)


@_of(torch.cat, torch.concat, torch.concatenate)
def cat(tensors: Any, dim: int = 0) -> Any:
    """Columns beside those of features: parts of the weight belong to each."""
    if dim not in (1, -1):
        raise RuntimeError("rows below those of features")
    first = next(x for x in tensors if is_matrix(x))
    types = {_example(x.value if is_matrix(x) else x).dtype for x in tensors}
    if len(types) > 1:
        raise RuntimeError(f"features beside columns of {types}")
    widths = [_columns(x) for x in tensors]

    def times(w: Any) -> Any:
        out, start = None, 0
        for x, width in zip(tensors, widths, strict=True):
            part = w[start : start + width]
            term = product(x, part) if is_matrix(x) else x @ part
            out, start = term if out is None else out + term, start + width
        return out

    return _combined(first, sum(widths), times)


SAME_SHAPE = (mul, div, neg, add, sub)
"""The functions whose result has the rows of the features, which are not broadcast."""


# ---------------------------------------------------------------- numbers


@_of(torch.sum, Tensor.sum)
def row_sums(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of each row."""
    plain(input)
    if dim not in (1, -1, (1,), (-1,), [1], [-1]):
        raise RuntimeError("a sum over rows of features")
    sums = torch.ops.gnnc.segment_reduce(input.value, input.row, 0, input.shape[0], "sum")
    return sums.unsqueeze(1) if keepdim else sums


@_of(F.normalize)
def normalize(
    input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None
) -> Any:
    """Rows over their 1-norm or 2-norm."""
    plain(input)
    if p not in (1, 2) or dim not in (1, -1) or out is not None:
        raise RuntimeError(f"features over their {p}-norm along {dim}")
    powers = input.value.abs() if p == 1 else input.value.square()
    norms = torch.ops.gnnc.segment_reduce(powers, input.row, 0, input.shape[0], "sum")
    norms = (norms if p == 1 else norms.sqrt()).clamp_min(eps)
    return with_values(input, input.value / norms.index_select(0, input.row))


@_of(F.dropout, torch.dropout)
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Outside of training, nothing; else each entry by its row and column, as of dense features."""
    if inplace or not 0 <= p < 1:
        raise RuntimeError("a dropout of features in place, or of all numbers")
    if not training or p == 0:
        return input
    plain(input)
    dropped = torch.ops.gnnc.sparse_dropout(input.row, input.col, input.value, p)
    return with_values(input, dropped)


@_of(Tensor.contiguous, Tensor.clone, torch.clone)
def same(input: Any) -> Any:
    """The numbers as they are."""
    return input


@_of(Tensor.float)
def to_float(input: Any) -> Any:
    """The numbers as they are, where they are float32."""
    return to(input, torch.float32)


@_of(Tensor.double)
def to_double(input: Any) -> Any:
    """The numbers as they are, where they are float64."""
    return to(input, torch.float64)


@_of(Tensor.to)
def to(input: Any, target: Any) -> Any:
    """The numbers as they are, where they are of this type, or for this device, already."""
    value = _example(input.value)
    if target not in (value.dtype, value.device, str(value.device)):
        raise RuntimeError(f"features of {value.dtype}, to {target}")
    return input


def _made(name: str) -> Callable[..., Any]:
    """A new dense tensor of the type of features."""
    return lambda input, *size, **more: getattr(input.value, name)(*size, **more)


for _name in ("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"):
    _of(getattr(Tensor, _name))(_made(_name))


def _of_numbers(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that gives 0 for 0, on the entries."""

    def on_entries(input: Any, inplace: bool = False) -> Any:
        plain(input)
        if inplace:
            raise RuntimeError("features that are edited")
        return with_values(input, function(input.value))

    return on_entries


for _name in ("relu", "abs", "square", "sqrt", "log1p", "tanh", "sign"):
    _of(getattr(torch, _name), getattr(Tensor, _name))(_of_numbers(getattr(torch, _name)))
_of(F.relu)(_of_numbers(torch.relu))
