"""What has to hold in every call of a program."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from .nodes import Node, Set
from .tensors import Arr


def exception_named(name: str) -> type[Exception]:
    """The class of a built-in exception, or that of "module.name"."""
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module or "builtins"), own)


@dataclass(frozen=True)
class Held:
    """A number that is not 0, or `raised` is raised with `message`."""

    condition: Arr
    message: str
    raised: type[Exception] = AssertionError


@dataclass(frozen=True)
class Bound:
    """One number at each row of `rows`, or one for all of them, that is to be in 0 .. size - 1."""

    number: Node
    rows: Set
    size: int
