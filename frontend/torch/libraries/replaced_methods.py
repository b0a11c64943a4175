"""Methods of layers that Dynamo traces in another form than they are written in."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from torch import nn

_written: dict[CodeType, tuple[str, Callable[..., Any]]] = {}
"""The names of methods, and these as they were written, by the code of ours: what a user wraps
around one of ours has its attributes, but code of its own."""


def replace(cls: type[nn.Module], name: str, ours: FunctionType) -> None:
    """Puts a function in the place of a method. TorchScript, which compiles methods from their
    source, still takes the layer as it is written."""
    plain = getattr(cls, name)
    # libraries read parameter names and types from the signature: wraps keeps them
    method = functools.wraps(plain)(ours)
    _written[ours.__code__] = name, plain
    setattr(cls, name, method)
    setattr(cls, "__prepare_scriptable__", _as_written)


def _as_written(self: nn.Module) -> nn.Module:
    """The layer as TorchScript takes it: with the methods that its library has written."""
    cls = type(self)
    written = {
        name: method
        for code, (name, method) in _written.items()
        if getattr(getattr(cls, name, None), "__code__", None) is code
    }
    out = copy.copy(self)
    out.__class__ = type(cls.__name__, (cls,), {**written, "__module__": cls.__module__})
    return out
