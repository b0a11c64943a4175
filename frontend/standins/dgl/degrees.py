"""Degrees, while a call is traced.

Layers ask `(graph.in_degrees() == 0).any()` and raise, so a tracer needs a Python answer. The graph
knows it (`Relation.reached`); a `Degrees` gives that answer, and is a tensor for all else.
Outside of tracing, degrees are tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from .topology import Coverage


class _OfTensor:
    """What stands for a tensor, and is that for all that it does not answer itself."""

    values: Tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.values, name)

    def __getitem__(self, index: Any) -> Tensor:
        return self.values[index]


class Degrees(_OfTensor):
    """A tensor of degrees, of which it may be known whether all are above zero."""

    __hash__ = None  # as of a tensor, it is elements that are compared

    def __init__(self, values: Tensor, covered: Coverage):
        self.values, self._covered = values, covered

    def __eq__(self, other: object) -> Any:
        return self._answer(self.values == other, other, 0, False)

    def __ne__(self, other: object) -> Any:
        return self._answer(self.values != other, other, 0, True)

    def __gt__(self, other: Any) -> Any:
        return self._answer(self.values > other, other, 0, True)

    def __le__(self, other: Any) -> Any:
        return self._answer(self.values <= other, other, 0, False)

    def __ge__(self, other: Any) -> Any:
        return self._answer(self.values >= other, other, 1, True)

    def __lt__(self, other: Any) -> Any:
        return self._answer(self.values < other, other, 1, False)

    def _answer(self, values: Tensor, other: object, border: int, positive: bool) -> Any:
        """The comparison; where it asks for degrees above zero, with the answer."""
        if isinstance(other, int) and other == border:
            return Comparison(values, positive, self._covered)
        return values

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> Any:
        if function in COMPARISONS and isinstance(args[0], Degrees) and not kwargs:
            return COMPARISONS[function](args[0], args[1])
        return _call(function, args, kwargs)

    def __repr__(self) -> str:
        return repr(self.values)

    def __len__(self) -> int:
        return self.values.shape[0]

    def __add__(self, other: Any) -> Tensor:
        return self.values + plain(other)

    def __sub__(self, other: Any) -> Tensor:
        return self.values - plain(other)

    def __mul__(self, other: Any) -> Tensor:
        return self.values * plain(other)

    def __truediv__(self, other: Any) -> Tensor:
        return self.values / plain(other)

    def __pow__(self, other: Any) -> Tensor:
        return self.values ** plain(other)

    def __floordiv__(self, other: Any) -> Tensor:
        return self.values // plain(other)

    def __mod__(self, other: Any) -> Tensor:
        return self.values % plain(other)

    def __neg__(self) -> Tensor:
        return -self.values

    def __radd__(self, other: Any) -> Tensor:
        return other + self.values

    def __rsub__(self, other: Any) -> Tensor:
        return other - self.values

    def __rmul__(self, other: Any) -> Tensor:
        return other * self.values

    def __rtruediv__(self, other: Any) -> Tensor:
        return other / self.values


class OneCount(Degrees):
    """The number of rows of a graph that is no batch, as a tensor of one element: what runs over
    it gets the number, which is known."""

    def __init__(self, values: Tensor, count: int):
        super().__init__(values, Coverage(None))
        self._count = count

    def __iter__(self) -> Iterator[int]:
        return iter([self._count])


COMPARISONS: dict[Any, Callable[[Any, Any], Any]] = {
    torch.eq: operator.eq,
    torch.ne: operator.ne,
    torch.gt: operator.gt,
    torch.ge: operator.ge,
    torch.lt: operator.lt,
    torch.le: operator.le,
}
"""What torch's functions of the same meaning are."""


class Comparison(_OfTensor):
    """Whether each degree is above zero (`positive`), or is zero (not `positive`)."""

    def __init__(self, values: Tensor, positive: bool, covered: Coverage):
        self.values, self._positive, self._covered = values, positive, covered

    def any(self) -> Any:
        """Whether one is: it may be known if the question is for a zero."""
        if self._positive or self._covered.whole is None:
            return self.values.any()
        return Answer(not self._covered.whole)

    def all(self) -> Any:
        """Whether all are: it may be known if the question is for no zero."""
        if not self._positive or self._covered.whole is None:
            return self.values.all()
        return Answer(self._covered.whole)

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], Comparison):
            if function is torch.any:
                return args[0].any()
            if function is torch.all:
                return args[0].all()
        return _call(function, args, kwargs)

    def __invert__(self) -> Comparison:
        return Comparison(~self.values, not self._positive, self._covered)


class Answer:
    """A bool that is asked as a tensor of one element is."""

    def __init__(self, value: bool):
        self._value = value

    def __bool__(self) -> bool:
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == bool(other)

    __hash__ = None

    def item(self) -> bool:
        """The bool."""
        return self._value


def plain(value: object) -> object:
    """The tensor, where a value may be `Degrees` or a comparison of them."""
    return value.values if isinstance(value, (Degrees, Comparison)) else value


def untraced(value: object) -> object:
    """What a value is outside of tracing, where it may be one of the classes above."""
    return torch.tensor(bool(value)) if isinstance(value, Answer) else plain(value)


def _call(
    function: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object] | None
) -> Any:
    named = {name: _plain_parts(value) for name, value in (kwargs or {}).items()}
    return function(*[_plain_parts(a) for a in args], **named)


def _plain_parts(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return type(value)([plain(part) for part in value])
    return plain(value)
