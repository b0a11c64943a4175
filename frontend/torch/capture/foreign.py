"""Functions outside of torch that a model calls while it is traced, and Dynamo cannot trace.

Those of SciPy, given numbers (`comb(K, k)` of a polynomial filter), give a number as well, which is
known then. Dynamo would go on in their code, and leave its graph where that calls NumPy's; behind
that NumPy's numbers are not what they were, and SciPy's own code fails. `copy.copy` of a dict asks
a table for a method that Dynamo does not take from there.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.functions import UserFunctionVariable

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


@contextmanager
def in_force() -> Generator[None]:
    """While it holds Dynamo knows what these functions give."""
    plain = UserFunctionVariable.call_function

    def call_function(self: UserFunctionVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        if _copies_dict(self.fn, args):
            return args[0].call_method(tx, "copy", [], {})
        known = _number(self.fn, args, kwargs)
        return plain(self, tx, args, kwargs) if known is None else ConstantVariable.create(known)

    UserFunctionVariable.call_function = call_function  # type: ignore[method-assign]
    try:
        yield
    finally:
        UserFunctionVariable.call_function = plain  # type: ignore[method-assign]
