"""What a matrix of SciPy answers while Dynamo traces, where one of torch stands for it.

Libraries' layers get torch's, which is all they know. Who else asks what a matrix is or has
(`torch.is_tensor(a)`, `hasattr(a, "tocoo")`, `type(a)`, `scipy.sparse.issparse(a)`) is told what
SciPy's says; what an attribute of it holds, and what is raised where it has none, only the matrix
itself can tell: then the call is made with that, in torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.variables import builtin
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

from ..importer.errors import of_library
from ..sparse.matrix import Matrix
from ..sparse.scipy_calls import OnlyScipys

_SAME = {"shape", "ndim"}
"""Attributes that mean the same of both."""
_QUESTIONS = {isinstance, type, hasattr, getattr}
_OTHER_OF_SCIPY = {len, abs, iter, sum}
"""Functions that give something else, or raise, for SciPy's."""
# releases of torch have a class for some functions of Python's, and one for the others
_FUNCTIONS: list[Any] = [
    x
    for name, x in vars(builtin).items()
    if name.endswith("BuiltinVariable") and "call_function" in vars(x)
]
_ARE_TENSORS = {torch.is_tensor, torch.overrides.is_tensor_like}


def _class_of(x: VariableTracker) -> type | None:
    """The class of the matrix of SciPy that a value of the trace stands for; None for others."""
    x = x.realize()  # which guards what a matrix is
    if not isinstance(x, TensorVariable) or x.python_type() is not Matrix:
        return None
    return x.as_proxy().node.meta["example_value"].scipy


@functools.cache
def _some(kind: type) -> Any:
    """Some matrix of a class, which has the attributes that all of them have."""
    return kind((1, 1))


def _by_itself(asked: str) -> NoReturn:
    """Gives the trace up, and the call, which is made with the matrix itself."""
    error = OnlyScipys(f"{asked} of it, which torch's lacks or means otherwise")
    raise BackendCompilerFailed(_by_itself, error, None)


def _answer(
    question: Any, kind: type, tx: Any, rest: list[VariableTracker]
) -> VariableTracker | None:
    """What a function of Python's gives for a matrix of class `kind`, and `rest` behind it; None
    where that is what it gives for torch's."""
    if question is type:
        return VariableTracker.build(tx, kind) if not rest else None
    if question is isinstance:
        return ConstantVariable.create(isinstance(_some(kind), rest[0].as_python_constant()))
    if question in _OTHER_OF_SCIPY:
        _by_itself(question.__name__)
    name = rest[0].as_python_constant()
    has = hasattr(_some(kind), name)
    if question is hasattr:
        return ConstantVariable.create(has)
    if name == "__class__":
        return VariableTracker.build(tx, kind)
    if not has and len(rest) > 1:
        return rest[1]
    return None if name in _SAME else _by_itself(name)


@contextmanager
def in_force() -> Generator[None]:
    """While it holds what is traced is told of matrices of SciPy what they say."""
    plain_torch = TorchInGraphFunctionVariable.call_function
    plains = {cls: cls.call_function for cls in _FUNCTIONS}

    def answering(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call_function(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
            fn = self.as_python_constant()
            asks = fn in _QUESTIONS or fn in _OTHER_OF_SCIPY
            if asks and args and not kwargs and (kind := _class_of(args[0])) is not None:
                if not of_library(tx.f_code.co_filename):
                    answer = _answer(fn, kind, tx, list(args[1:]))
                    if answer is not None:
                        return answer
                elif fn is isinstance and issubclass(kind, args[1].as_python_constant()):
                    return ConstantVariable.create(True)
            return plain(self, tx, args, kwargs)

        return call_function

    def call_torch(self: TorchInGraphFunctionVariable, tx: Any, args: Any, kwargs: Any) -> Any:
        asks = self.value in _ARE_TENSORS and len(args) == 1 and not kwargs
        if asks and _class_of(args[0]) is not None and not of_library(tx.f_code.co_filename):
            return ConstantVariable.create(False)
        return plain_torch(self, tx, args, kwargs)

    for cls, plain in plains.items():
        cls.call_function = answering(plain)
    TorchInGraphFunctionVariable.call_function = call_torch  # type: ignore[method-assign]
    try:
        yield
    finally:
        for cls, plain in plains.items():
            cls.call_function = plain
        TorchInGraphFunctionVariable.call_function = plain_torch  # type: ignore[method-assign]
