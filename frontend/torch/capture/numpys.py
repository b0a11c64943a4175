"""NumPy in what Dynamo traces, where its tensors stand for arrays and numbers of NumPy.

A number of NumPy is one to torch: `np.sqrt(n) * loss` has the type of the loss, be it a tensor of
no dimension or one of integers. Dynamo makes a tensor of it, whose type counts there: a loss in
float32 became one in float64. So a float64 is known as the float that it is, and an int64 as an
integer, as are those that functions of numbers give; only a tensor that is made of a float64 alone
(`torch.tensor`) has its type. NumPy refuses a tensor that requires a gradient; Dynamo would go on,
and the numbers get one. And it would draw torch's random numbers for NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
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


class NumpyFloat(ConstantVariable):
    """A float64 that is known. What Python makes of it is NumPy's again; graphs have floats."""

    def __init__(self, value: np.float64, **options: Any) -> None:
        super().__init__(float(value), **options)
        self.value = value

    def as_proxy(self) -> float:
        return float(self.value)


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
        if type(value) not in (np.float64, np.int64) or math.isnan(value):
            return plain_wrap(self, value)
        self.install_guards(GuardBuilder.TYPE_MATCH, GuardBuilder.EQUALS_MATCH)
        known = value if type(value) is np.float64 else value.item()
        return create(known, source=self.source)

    def create(value: Any, **options: Any) -> VariableTracker:
        if type(value) is np.float64:
            return NumpyFloat(value, **options)
        return plain_create(value, **options)

    def call_torch(self: TorchInGraphFunctionVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if self.value in _MAKE_TENSORS and "dtype" not in kwargs and _has_float(args):
            kwargs = {**kwargs, "dtype": VariableTracker.build(tx, torch.float64)}
        return plain_torch(self, tx, args, kwargs)

    NumpyVariable.call_function = call  # type: ignore[method-assign]
    TensorVariable.method_numpy = method_numpy  # type: ignore[method-assign]
    VariableBuilder._wrap = wrap  # type: ignore[method-assign]
    ConstantVariable.create = staticmethod(create)  # type: ignore[method-assign]
    TorchInGraphFunctionVariable.call_function = call_torch  # type: ignore[method-assign]
    made = SourcelessBuilder._type_handlers
    made[np.float64] = lambda tx, value: create(value)
    try:
        yield
    finally:
        NumpyVariable.call_function = plain_call  # type: ignore[method-assign]
        TensorVariable.method_numpy = plain_numpy  # type: ignore[method-assign]
        VariableBuilder._wrap = plain_wrap  # type: ignore[method-assign]
        ConstantVariable.create = staticmethod(plain_create)  # type: ignore[method-assign]
        TorchInGraphFunctionVariable.call_function = plain_torch  # type: ignore[method-assign]
        made.pop(np.float64, None)


def _refuse_gradient(x: VariableTracker) -> None:
    """Leaves the graph at a tensor that NumPy refuses. (Its arrays are tensors here as well.)"""
    if not isinstance(x, NumpyNdarrayVariable) and getattr(x, "requires_grad", False):
        _leave("numbers for NumPy of a tensor that requires a gradient")


def _has_float(args: Sequence[VariableTracker]) -> bool:
    """Whether the only argument is a float64 of NumPy, or numbers of which one is."""
    if len(args) != 1:
        return False
    if isinstance(args[0], BaseListVariable):
        return any(_has_float([x]) for x in args[0].items)
    return isinstance(args[0], NumpyFloat)


def _is_of_numbers(x: VariableTracker) -> bool:
    """Whether an argument is a number, or a tuple or list of them; sizes are."""
    if isinstance(x, BaseListVariable):
        return all(map(_is_of_numbers, x.items))
    if isinstance(x, SymNodeVariable):
        return True
    return x.is_python_constant() and isinstance(x.as_python_constant(), _NUMBERS)


def _draws(function: Any) -> bool:
    """Whether it is one of `numpy.random`."""
    return isinstance(getattr(function, "__self__", None), np.random.RandomState)


def _known(
    function: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> np.float64 | int | bool | None:
    """What a function of NumPy gives for numbers that are known; None where that is no number."""
    if not all(x.is_python_constant() for x in (*args, *kwargs.values())):
        return None
    out = function(
        *(x.as_python_constant() for x in args),
        **{name: x.as_python_constant() for name, x in kwargs.items()},
    )
    if isinstance(out, np.float64):
        return out
    return out.item() if isinstance(out, np.int64 | np.bool_) else None


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
