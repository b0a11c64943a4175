"""What a user's reduce function computes with while a call is traced.

The degree differs from node to node, so a mailbox, `(nodes, degree, ..)`, has no shape that a trace
could have. A `Traced` stands for it and holds one row an edge; values of nodes are `Traced` too,
so that what mixes nodes is seen. Each function of torch that works row by row is an `operation`;
any other raises `NotImplementedError`, and the call runs by degrees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .reduce import counts

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""What each function does, by torch's name for it. It is given torch's own, then its arguments."""


TURNED: dict[str, Callable[..., Any]] = {}
"""The same of operands of which one is turned round."""


def operation(
    *names: str, of: dict[str, Callable[..., Any]] = OPERATIONS
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function what torch's functions and methods of these names do."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            of[name] = handler
        return handler

    return register


def apply(name: str, function: Any, args: Any, options: Any) -> Any:
    """An operation, which may have no meaning here."""
    known = OPERATIONS
    for value in args:
        if isinstance(value, Traced) and value.turned:
            known = TURNED
    if name not in known:
        raise unsupported(name)
    return known[name](function, *args, **options)


def unsupported(what: str) -> NotImplementedError:
    """The one error of this module and its operations."""
    return NotImplementedError(f"gnnc.dgl cannot trace {what} in a reduce function")


class Inbox:
    """Where messages lead: edge `i` to row `index[i]`, below `rows`."""

    def __init__(self, index: Tensor, rows: int):
        self.index, self.rows = index, rows
        self.degrees = counts(index, rows)

    def filled(self, values: Tensor, value: int) -> Tensor:
        """Values of nodes, with this one at nodes without a message."""
        empty = (self.degrees == 0).reshape((-1,) + (1,) * (values.dim() - 1))
        return values.masked_fill(empty, value)


class Traced:
    """A tensor whose first `lead` dimensions are nodes, and messages of a node, if `lead` is 2.

    `raw` has one row for both of these, an edge or a node; with `lead` of 0 it stands for a number
    that differs from node to node. The function is not to see nodes without a message: `unsafe`
    values may be anything there, and are replaced where they are computed with, lest an infinity
    gets into a gradient. `zero` says that raw values are zero there. `turned` stands for messages
    `(nodes, features, degree)`.
    """

    __hash__ = None  # as of a tensor, it is elements that are compared

    def __init__(
        self, raw: Tensor, inbox: Inbox, lead: int, unsafe: bool = False, zero: bool = False
    ):
        self.raw, self.inbox, self.lead = raw, inbox, lead
        self.unsafe, self.zero = unsafe, zero
        self.viewed = self.turned = False

    @property
    def values(self) -> Tensor:
        """The rows, to compute with."""
        if self.turned:
            raise unsupported("messages that are transposed")
        return self.inbox.filled(self.raw, 1) if self.unsafe else self.raw

    def computed(self, rows: Any) -> Any:
        """What is computed of the values, row by row; there may be several tensors."""
        if isinstance(rows, Tensor):
            return Traced(rows, self.inbox, self.lead)
        return tuple(self.computed(part) for part in rows)

    def moved(self, rows: Tensor) -> Traced:
        """Elements of the raw values in another shape, which share memory in DGL."""
        result = Traced(rows, self.inbox, self.lead, self.unsafe, self.zero)
        self.viewed = result.viewed = True
        return result

    def turned_round(self) -> Traced:
        """Messages `(nodes, degree, features)` with the last two dimensions swapped."""
        if self.lead != 2 or self.features != 1:
            raise unsupported("transpose of nodes or messages")
        result = self.moved(self.raw)
        result.turned = True
        return result

    def turned_back(self) -> Traced:
        """The messages that are turned round."""
        return self.moved(self.raw)

    def overwrite(self, result: Traced) -> None:
        """What a function does that works in place."""
        if self.viewed:
            raise unsupported("a view that is written to")
        if (result.lead, result.dim(), result.dtype) != (self.lead, self.dim(), self.dtype):
            raise unsupported("an operation in place that makes another tensor")
        self.raw, self.unsafe, self.zero = result.raw, result.unsafe, result.zero

    def spread(self) -> Traced:
        """Values of nodes, `(nodes, 1, ..)`, as ones of messages."""
        if self.lead != 1 or self.raw.dim() < 2 or self.raw.shape[1] != 1:
            raise unsupported("a tensor that has not one row a node")
        rows = self.raw.squeeze(1).index_select(0, self.inbox.index)
        return Traced(rows, self.inbox, 2)

    def result(self) -> Tensor:
        """One row a node, zero where there was no message."""
        if self.lead != 1:
            raise unsupported("a result that has not one row a node")
        return self.raw if self.zero else self.inbox.filled(self.raw, 0)

    @property
    def features(self) -> int:
        """The number of dimensions after those of nodes and messages."""
        return self.raw.dim() - 1

    def feature(self, dim: int, more: int = 0) -> int:
        """Which dimension of the rows one is, where there are `more` than now."""
        total = self.dim() + more
        found = dim + total if dim < 0 else dim
        if not self.lead <= found < total:
            raise unsupported(f"dimension {dim} of {total}")
        return found - self.lead + 1

    def is_degree(self, dim: int) -> bool:
        """Whether a dimension is that of the messages of a node."""
        return self.lead == 2 and dim in (1, 1 - self.dim())

    def dim(self) -> int:
        """The number of dimensions."""
        return self.lead + self.features

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.dim()

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, of which the first are no numbers."""
        first = (Extent(self.inbox, 0), Extent(self.inbox, 1))
        if self.turned:
            return first[0], self.raw.shape[1], first[1]
        return (*first[: self.lead], *self.raw.shape[1:])

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the elements."""
        return self.raw.dtype

    @property
    def device(self) -> torch.device:
        """Where the elements are."""
        return self.raw.device

    @classmethod
    def __torch_function__(
        cls, function: Any, types: object, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # Names, as the functions of Dynamo's for operators cannot be looked up.
        return apply(getattr(function, "__name__", "it"), function, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in OPERATIONS:
            raise unsupported(name)
        return Method(self, name)

    def __bool__(self) -> bool:
        raise unsupported("a condition on elements")

    def __getitem__(self, index: Any) -> Any:
        return apply("__getitem__", None, (self, index), {})

    def __matmul__(self, other: Any) -> Any:
        return apply("matmul", torch.matmul, (self, other), {})

    def __neg__(self) -> Any:
        return apply("neg", torch.neg, (self,), {})

    def __abs__(self) -> Any:
        return apply("abs", torch.abs, (self,), {})

    def __invert__(self) -> Any:
        return apply("logical_not", torch.logical_not, (self,), {})


class Extent:
    """How many nodes (`lead` of 0) or messages of a node there are, which is no number.

    It can be given where a shape is asked for; messages of a node can also be computed with.
    """

    __hash__ = None

    def __init__(self, inbox: Inbox, lead: int):
        self.inbox, self.lead = inbox, lead

    def __eq__(self, other: object) -> bool:
        raise unsupported("a condition on the number of nodes or messages")

    def number(self) -> Traced:
        """Degrees, as a number for each node."""
        if self.lead == 0:
            raise unsupported("arithmetic with the number of nodes")
        return Traced(self.inbox.degrees, self.inbox, 0, unsafe=True)


class Method:
    """A method of a tensor."""

    def __init__(self, owner: Traced, name: str):
        self._owner, self._name = owner, name

    def __call__(self, *args: Any, **options: Any) -> Any:
        function = getattr(Tensor, self._name, None)
        return apply(self._name, function, (self._owner, *args), options)


def _operator(function: Callable[..., Any], swapped: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        args = (other, self) if swapped else (self, other)
        return apply(function.__name__, function, args, {})

    return method


def _in_place(function: Callable[..., Any]) -> Callable[[Traced, Any], Traced]:
    def method(self: Traced, other: Any) -> Traced:
        self.overwrite(apply(function.__name__, function, (self, other), {}))
        return self

    return method


for _name, _function in {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.true_divide,
    "pow": torch.pow,
}.items():
    setattr(Traced, f"__i{_name}__", _in_place(_function))
    for _kind in (Traced, Extent):
        setattr(_kind, f"__{_name}__", _operator(_function, False))
        setattr(_kind, f"__r{_name}__", _operator(_function, True))

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Traced, f"__{_name}__", _operator(getattr(torch, _name), False))
