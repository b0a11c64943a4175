"""NumPy in what Dynamo traces, where its tensors stand for arrays and numbers of NumPy.

A number of NumPy is one to torch: `np.sqrt(n) * loss` has the type of the loss, be it a tensor of
no dimension or one of integers. Dynamo makes a tensor of it, whose type counts there: a loss in
float32 became one in float64, and what needs a number (a slope, a size) cannot have it. So numbers
of NumPy, and what its functions give of numbers, are known, with their types for what Python and
NumPy make of them (a sum of float32s is rounded as one); torch takes floats of any width, and
truths, for floats. Only a tensor that is made of such a number alone (`torch.tensor`) has its type.
NumPy refuses a tensor that requires a gradient; Dynamo would go on, and the numbers get one. And it
would draw torch's random numbers for NumPy's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch._dynamo.exc import unimplemented
from torch._dynamo.guards import GuardBuilder
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import SourcelessBuilder, VariableBuilder
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.lists import BaseListVariable
from torch._dynamo.variables.misc import NumpyVariable
from torch._dynamo.variables.tensor import NumpyNdarrayVariable, SymNodeVariable, TensorVariable
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable
from torch.fx.experimental.symbolic_shapes import guard_or_false

_NUMBERS = (int, float, bool)


_MAKE_TENSORS = (torch.tensor, torch.as_tensor, torch.asarray)


_FLOATS = (np.float16, np.float32, np.float64, np.bool_)
_INTEGERS = (
    *(np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
)


class NumpyNumber(ConstantVariable):
    """A number of NumPy that is known, with its type."""

    def __init__(self, number: Any, **options: Any) -> None:
        super().__init__(number.item(), **options)
        self.number = number

    def python_type(self) -> type:
        return type(self.number)

    def const_getattr(self, tx: Any, name: str) -> Any:
        found = getattr(self.number, name, None)
        if found is None:
            return super().const_getattr(tx, name)
        if type(found) not in _NUMBERS:
            raise NotImplementedError  # a method, which is called below
        return found

    def call_method(self, tx: Any, name: str, args: Any, kwargs: Any) -> VariableTracker:
        given = (*args, *kwargs.values())
        if hasattr(self.number, name) and all(x.is_python_constant() for x in given):
            named = {key: x.as_python_constant() for key, x in kwargs.items()}
            out = getattr(self.number, name)(*(x.as_python_constant() for x in args), **named)
            if type(out) in (*_NUMBERS, *_FLOATS, *_INTEGERS):
                return self.create(out)
        return super().call_method(tx, name, args, kwargs)

    def _computed(
        self, operation: Callable[..., Any], other: VariableTracker, reverse: bool
    ) -> VariableTracker:
        """What an operation of Python's gives, of which Dynamo knows those of Python's numbers."""
        if not other.is_python_constant():
            return self.create(NotImplemented)
        given = self.number, _number(other)
        return self.create(operation(*(reversed(given) if reverse else given)))


def _binary(operation: Callable[..., Any]) -> Callable[..., VariableTracker]:
    def computed(self: NumpyNumber, tx: Any, other: Any, reverse: bool = False) -> VariableTracker:
        return self._computed(operation, other, reverse)

    return computed


def _unary(operation: Callable[..., Any]) -> Callable[..., VariableTracker]:
    def computed(self: NumpyNumber, tx: Any) -> VariableTracker:
        return self.create(operation(self.number))

    return computed


# releases of torch that ask a number itself for its arithmetic ask by these names
for _name, _of in {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
}.items():
    setattr(NumpyNumber, f"nb_{_name}_impl", _binary(_of))
for _name, _of in {
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
}.items():
    setattr(NumpyNumber, f"nb_{_name}_impl", _unary(_of))


class NumpyFloat(NumpyNumber):
    """A float, or a truth. What Python makes of it is NumPy's again; graphs have floats."""

    def __init__(self, number: Any, **options: Any) -> None:
        super().__init__(number, **options)
        self.value = number

    def as_proxy(self) -> float:
        return float(self.number)


@contextmanager
def in_force() -> Generator[None]:
    """While it holds Dynamo takes numbers of NumPy for numbers, and leaves to NumPy what it would
    do otherwise."""
    plain_call, plain_numpy = NumpyVariable.call_function, TensorVariable.method_numpy
    plain_wrap, plain_create = VariableBuilder._wrap, ConstantVariable.create
    plain_torch = TorchInGraphFunctionVariable.call_function

    def call(self: NumpyVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if _draws(self.value):
            _leave("random numbers of NumPy")
        given = (*args, *kwargs.values())
        for x in given:
            _refuse_gradient(x)
        if not all(map(_is_of_numbers, given)):
            return plain_call(self, tx, args, kwargs)
        known = _known(self.value, args, kwargs)
        if known is not None:
            return create(known)
        if not kwargs and (function := _from_math(self.value, args)) is not None:
            return VariableTracker.build(tx, function).call_function(tx, args, kwargs)
        return _no_float(plain_call(self, tx, args, kwargs))

    def method_numpy(self: TensorVariable, tx: Any, *, force: Any = False) -> Any:
        if not (force and force.as_python_constant()):
            _refuse_gradient(self)
        return plain_numpy(self, tx, force=force)

    def wrap(self: VariableBuilder, value: Any) -> Any:
        if type(value) not in (*_FLOATS, *_INTEGERS) or math.isnan(value):
            return plain_wrap(self, value)
        # there are two truths of NumPy, of which Dynamo compares no values
        same = GuardBuilder.ID_MATCH if type(value) is np.bool_ else GuardBuilder.EQUALS_MATCH
        self.install_guards(GuardBuilder.TYPE_MATCH, same)
        return create(value, source=self.source)

    def create(value: Any, **options: Any) -> VariableTracker:
        if type(value) in _FLOATS:
            return NumpyFloat(value, **options)
        if type(value) in _INTEGERS:
            return NumpyNumber(value, **options)
        return plain_create(value, **options)

    def call_torch(self: TorchInGraphFunctionVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if self.value in _MAKE_TENSORS and "dtype" not in kwargs and (kind := _type_in(args)):
            kwargs = {**kwargs, "dtype": VariableTracker.build(tx, kind)}
        return plain_torch(self, tx, args, kwargs)

    NumpyVariable.call_function = call  # type: ignore[method-assign]
    TensorVariable.method_numpy = method_numpy  # type: ignore[method-assign]
    VariableBuilder._wrap = wrap  # type: ignore[method-assign]
    ConstantVariable.create = staticmethod(create)  # type: ignore[method-assign]
    TorchInGraphFunctionVariable.call_function = call_torch  # type: ignore[method-assign]
    made = SourcelessBuilder._type_handlers
    for kind in (*_FLOATS, *_INTEGERS):
        made[kind] = lambda tx, value: create(value)
    try:
        yield
    finally:
        NumpyVariable.call_function = plain_call  # type: ignore[method-assign]
        TensorVariable.method_numpy = plain_numpy  # type: ignore[method-assign]
        VariableBuilder._wrap = plain_wrap  # type: ignore[method-assign]
        ConstantVariable.create = staticmethod(plain_create)  # type: ignore[method-assign]
        TorchInGraphFunctionVariable.call_function = plain_torch  # type: ignore[method-assign]
        for kind in (*_FLOATS, *_INTEGERS):
            made.pop(kind, None)


def _refuse_gradient(x: VariableTracker) -> None:
    """Leaves the graph at a tensor that NumPy refuses. (Its arrays are tensors here as well.)"""
    if not isinstance(x, NumpyNdarrayVariable) and getattr(x, "requires_grad", False):
        _leave("numbers for NumPy of a tensor that requires a gradient")


def _type_in(args: Sequence[VariableTracker]) -> torch.dtype | None:
    """The type of a tensor that is made of the only argument, if that is a number of NumPy, or
    numbers of which one is; None for others."""
    if len(args) != 1 or not _has_numpys(args[0]):
        return None
    try:
        return torch.tensor(_like(args[0])).dtype
    except (TypeError, ValueError, RuntimeError):
        _leave("a tensor of what torch may not take")


def _has_numpys(x: VariableTracker) -> bool:
    if isinstance(x, BaseListVariable):
        return any(map(_has_numpys, x.items))
    return isinstance(x, NumpyNumber)


def _like(x: VariableTracker) -> Any:
    """Numbers of the same types, those that are known the same."""
    if isinstance(x, BaseListVariable):
        return [_like(y) for y in x.items]
    if isinstance(x, SymNodeVariable):
        return x.python_type()(1)
    if isinstance(x, TensorVariable):
        return torch.zeros((), dtype=x.dtype).item()
    return _number(x)


def _is_of_numbers(x: VariableTracker) -> bool:
    """Whether an argument is a number, or a tuple or list of them; sizes are."""
    if isinstance(x, BaseListVariable):
        return all(map(_is_of_numbers, x.items))
    if isinstance(x, SymNodeVariable):
        return True
    known = (*_NUMBERS, *_FLOATS, *_INTEGERS)
    return x.is_python_constant() and isinstance(x.as_python_constant(), known)


def _draws(function: Any) -> bool:
    """Whether it is one of `numpy.random`."""
    return isinstance(getattr(function, "__self__", None), np.random.RandomState)


def _known(
    function: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> np.generic | None:
    """What a function of NumPy gives for numbers that are known; None where that is no number."""
    if not all(x.is_python_constant() for x in (*args, *kwargs.values())):
        return None
    out = function(*map(_number, args), **{name: _number(x) for name, x in kwargs.items()})
    return out if type(out) in (*_FLOATS, *_INTEGERS) else None


def _number(x: VariableTracker) -> Any:
    """A number that is known, with its type."""
    return x.number if isinstance(x, NumpyNumber) else x.as_python_constant()


def _from_math(function: Any, args: Sequence[VariableTracker]) -> Any:
    """The function of `math` that gives the same of a size, or a number made of sizes; None where
    there is none. Where NumPy knows no number either, that of `math` raises."""
    if len(args) != 1 or not isinstance(args[0], SymNodeVariable):
        return None
    size = args[0].sym_num
    if function is np.sqrt:
        return math.sqrt if guard_or_false(size >= 0) else None
    same = {np.log: math.log, np.log2: math.log2}.get(function)
    return same if same is not None and guard_or_false(size > 0) else None


def _no_float(made: VariableTracker) -> VariableTracker:
    """What a function of sizes gave, unless it is a float of NumPy: then leaves the graph."""
    y = made.as_proxy().node.meta["example_value"]
    if isinstance(y, torch.Tensor) and y.dtype is torch.float64 and y.dim() == 0:
        _leave("a function of NumPy that makes a float of sizes")
    return made


def _leave(why: str) -> None:
    unimplemented(gb_type=why, context="", explanation="Dynamo has tensors for it.", hints=[])
