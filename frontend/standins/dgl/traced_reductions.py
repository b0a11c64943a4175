"""Reductions and softmax of messages or of features, in a reduce function that is traced."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .reduce import reduce_messages, softmax_by
from .traced_values import Traced, operation, unsupported


def of_messages(input: Traced, reducer: str, keepdim: bool = False) -> Traced:
    """The sum, mean, max or min of the messages of each node."""
    values = input.values
    if reducer == "sum" and not values.is_floating_point():
        values = values.long()  # as torch's sum
    reduced = reduce_messages(values, input.inbox.index, input.inbox.rows, reducer)
    reduced = reduced.unsqueeze(1) if keepdim else reduced
    return Traced(reduced, input.inbox, 1, unsafe=True, zero=True)


def _split(input: Traced, dim: Any) -> tuple[list[int], bool]:
    """Which feature dimensions of the rows are meant, and whether the degree is."""
    if dim is None or dim == () or dim == []:
        raise unsupported("a reduction of all nodes together")
    dims = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    degree = any(input.is_degree(d) for d in dims)
    return [input.feature(d) for d in dims if not input.is_degree(d)], degree


def _reduction(reducer: str) -> Any:
    def reduction(
        function: Any, input: Traced, dim: Any = None, keepdim: bool = False, **named: Any
    ) -> Traced:
        dims, degree = _split(input, named.pop("axis", dim))
        if not degree:
            return input.computed(function(input.values, dims, keepdim, **named))
        if named:
            raise unsupported(f"{reducer} with {', '.join(named)}")
        if not dims:
            return of_messages(input, reducer, keepdim)
        features = input.computed(function(input.values, dims, keepdim))
        return of_messages(features, reducer, keepdim)

    return reduction


for _name, _reducer in {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min"}.items():
    operation(_name)(_reduction(_reducer))


class Extreme(NamedTuple):
    """What max and min of messages give. No one knows which message it was."""

    values: Traced
    indices: None


def _extreme(reducer: str) -> Any:
    def extreme(function: Any, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is not None and not isinstance(dim, int):
            raise unsupported(f"{reducer} of two tensors")
        dims, degree = _split(input, dim)
        if degree:
            return Extreme(of_messages(input, reducer, keepdim), None)
        values, indices = function(input.values, dims[0], keepdim)
        return Extreme(input.computed(values), input.computed(indices))

    return extreme


for _name in ("max", "min"):
    operation(_name)(_extreme(_name))


@operation("softmax")
def softmax(
    function: Any, input: Traced, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Traced:
    """Softmax over the messages of a node, or over features."""
    dims, degree = _split(_typed(input, dtype), dim)
    input = _typed(input, dtype)
    if degree:
        rows = softmax_by(input.values, input.inbox.index, input.inbox.rows)
        return input.computed(rows)
    return input.computed(torch.softmax(input.values, dims[0]))


@operation("log_softmax")
def log_softmax(
    function: Any, input: Traced, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Traced:
    """The logarithm of softmax, over the messages of a node or over features."""
    input = _typed(input, dtype)
    dims, degree = _split(input, dim)
    if not degree:
        return input.computed(torch.log_softmax(input.values, dims[0]))
    return input - _log_sum(input).unsqueeze(1)


def _typed(input: Traced, dtype: Any) -> Traced:
    return input if dtype is None else input.computed(input.values.to(dtype))


@operation("logsumexp")
def logsumexp(function: Any, input: Traced, dim: Any, keepdim: bool = False) -> Traced:
    """The logarithm of a sum of powers, over the messages of a node or over features."""
    dims, degree = _split(input, dim)
    if not degree:
        return input.computed(torch.logsumexp(input.values, dims, keepdim))
    if dims:
        raise unsupported("logsumexp of messages and features")
    result = _log_sum(input)
    return result.unsqueeze(1) if keepdim else result


def _log_sum(input: Traced) -> Traced:
    highest = of_messages(input.computed(input.values.detach()), "max")
    powers = (input - highest.unsqueeze(1)).exp()
    return of_messages(powers, "sum").log() + highest


def _deviation(root: bool) -> Any:
    def deviation(
        function: Any,
        input: Traced,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: int | None = None,
    ) -> Traced:
        freedom = int(unbiased) if correction is None else correction
        dims, degree = _split(input, dim)
        if not degree:
            rows = function(input.values, dims, correction=freedom, keepdim=keepdim)
            return input.computed(rows)
        if dims:
            raise unsupported("a variance of messages and features")
        squares = (input - of_messages(input, "mean", True)) ** 2
        total = of_messages(squares, "sum", keepdim)
        result = total / (input.shape[1] - freedom).clamp(min=0)
        result.unsafe = True  # the divisor may be zero where there is no message
        return _root(result) if root else result

    return deviation


for _name, _root_of in {"var": False, "std": True}.items():
    operation(_name)(_deviation(_root_of))


def _root(input: Traced) -> Traced:
    """A square root whose gradient at zero is zero, as that of torch's std and norm."""
    zero = input.values == 0
    rows: Tensor = input.values.masked_fill(zero, 1).sqrt().masked_fill(zero, 0)
    return input.computed(rows)


@operation("norm", "linalg_vector_norm", "linalg_norm")
def norm(
    function: Any, input: Traced, p: Any = 2, dim: Any = None, keepdim: bool = False, **named: Any
) -> Traced:
    """The norm of the messages of a node, or of features."""
    p = named.pop("ord", p)
    dims, degree = _split(input, dim)
    if named or (len(dims) > 1 and p not in (None, 2, "fro")):
        raise unsupported(f"norm with {', '.join(named) or 'several dimensions'}")
    if not degree:
        return input.computed(torch.linalg.vector_norm(input.values, _order(p), dims, keepdim))
    if dims or _order(p) not in (1, 2):
        raise unsupported("a norm of messages but for p of 1 and 2")
    if _order(p) == 1:
        return of_messages(input.abs(), "sum", keepdim)
    return _root(of_messages(input**2, "sum", keepdim))


def _order(p: Any) -> Any:
    return 2 if p in (None, "fro") else p


@operation("normalize")
def normalize(
    function: Any, input: Traced, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None
) -> Traced:
    """Values over their norm."""
    return input / norm(function, input, p, dim, True).clamp(min=eps)


@operation("prod")
def prod(
    function: Any, input: Traced, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Traced:
    """The product of the messages of each node, or of features."""
    input = _typed(input, dtype)
    dims, degree = _split(input, dim)
    if not degree:
        return input.computed(torch.prod(input.values, dims[0], keepdim))
    values, index = input.values, input.inbox.index
    if not values.is_floating_point():
        raise unsupported("a product of integers")
    at = index.reshape((-1,) + (1,) * input.features).expand_as(values)
    ones = values.new_ones((input.inbox.rows, *values.shape[1:]))
    rows = ones.scatter_reduce(0, at, values, "prod")
    return Traced(rows.unsqueeze(1) if keepdim else rows, input.inbox, 1)


@operation("argmax", "argmin")
def place(function: Any, input: Traced, dim: int | None = None, keepdim: bool = False) -> Traced:
    """Which feature is the greatest or least."""
    dims, degree = _split(input, dim)
    if degree:
        raise unsupported("the place of a message")
    return input.computed(function(input.values, dims[0], keepdim))
