"""Functions outside of torch that a model calls while it is traced, and Dynamo cannot trace.

Those of SciPy, given numbers (`comb(K, k)` of a polynomial filter), give a number as well, which is
known then. Dynamo would go on in their code, and leave its graph where that calls NumPy's; behind
that NumPy's numbers are not what they were, and SciPy's own code fails. `copy.copy` of a dict asks
a table for a method that Dynamo does not take from there. `repeat(x, times=n)` would never end:
Dynamo does not look at `times` by name. A class whose metaclass says what a call
of it makes (PyG's `Batch`) is called by Python: Dynamo would not ask the metaclass, and give an
object of another class without a word.
"""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.functions import UserFunctionVariable
from torch._dynamo.variables.iter import ItertoolsVariable
from torch._dynamo.variables.user_defined import UserDefinedClassVariable

_PACKAGE = "scipy."
_NUMBERS = (int, float, bool)


def _number(
    function: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> int | float | bool | None:
    """What a function of SciPy gives for numbers that are known; None where that, or they, are no
    numbers."""
    if not (getattr(function, "__module__", None) or "").startswith(_PACKAGE):
        return None
    if not all(map(_is_number, (*args, *kwargs.values()))):
        return None
    out = function(
        *(x.as_python_constant() for x in args),
        **{name: x.as_python_constant() for name, x in kwargs.items()},
    )
    out = out.item() if isinstance(out, np.generic) else out
    return out if isinstance(out, _NUMBERS) else None


def _is_number(x: VariableTracker) -> bool:
    return x.is_python_constant() and isinstance(x.as_python_constant(), _NUMBERS)


def _copies_dict(function: Any, args: Sequence[VariableTracker]) -> bool:
    return function is copy.copy and len(args) == 1 and args[0].python_type() is dict


def _by_position(
    args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> tuple[Sequence[VariableTracker], Mapping[str, VariableTracker]]:
    """The arguments of `itertools.repeat`, those that were given by name behind the others."""
    rest = dict(kwargs)
    named = [rest.pop(name) for name in ("object", "times")[len(args) :] if name in rest]
    return ([*args, *named], rest)


def _metaclass_makes(cls: type) -> bool:
    """Whether a metaclass of a user's or a library's says what a call of a class makes. (Dynamo
    knows those of torch and of Python, whose enumerations have one.)"""
    call = type(cls).__call__
    package = (getattr(call, "__module__", None) or "").partition(".")[0]
    known = package == "torch" or package in sys.stdlib_module_names
    return isinstance(call, FunctionType) and not known


@contextmanager
def in_force() -> Generator[None]:
    """While it holds Dynamo knows what these functions and classes give, or leaves its graph."""
    plain, plain_class = UserFunctionVariable.call_function, UserDefinedClassVariable.call_function
    plain_iterator = ItertoolsVariable.call_function

    def call_function(self: UserFunctionVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if _copies_dict(self.fn, args):
            return args[0].call_method(tx, "copy", [], {})
        known = _number(self.fn, args, kwargs)
        return plain(self, tx, args, kwargs) if known is None else ConstantVariable.create(known)

    def call_class(self: UserDefinedClassVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if _metaclass_makes(self.value):
            unimplemented(
                gb_type="a class whose metaclass says what a call of it makes",
                context=self.value.__name__,
                explanation="Dynamo makes objects without asking metaclasses.",
                hints=[],
            )
        return plain_class(self, tx, args, kwargs)

    def call_iterator(self: ItertoolsVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if self.value is itertools.repeat:
            args, kwargs = _by_position(args, kwargs)
        return plain_iterator(self, tx, args, kwargs)

    UserFunctionVariable.call_function = call_function  # type: ignore[method-assign]
    UserDefinedClassVariable.call_function = call_class  # type: ignore[method-assign]
    ItertoolsVariable.call_function = call_iterator  # type: ignore[method-assign]
    try:
        yield
    finally:
        UserFunctionVariable.call_function = plain  # type: ignore[method-assign]
        UserDefinedClassVariable.call_function = plain_class  # type: ignore[method-assign]
        ItertoolsVariable.call_function = plain_iterator  # type: ignore[method-assign]
