"""The table of rules and the view of a call that they get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sympy
from torch import Tensor, fx

from ..context import Context
from ..errors import NoRule
from ..sizes import expression
from ..tensors import Arr, Sym

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}

_MISSING = object()


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule under the names of torch functions and methods."""

    def register(f: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = f
        return f

    return register


@dataclass
class Call:
    """One node: its name, its evaluated arguments, its example result, and what it changes."""

    ctx: Context
    node: fx.Node
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    example: Any
    new_site: Callable[[], int]
    key: Callable[[], Arr]
    # nodes (of tensors edited in place besides the first argument) with their new values
    edits: list[tuple[fx.Node, Arr]] = field(default_factory=list)

    def arg(self, position: int, name: str, default: Any = _MISSING) -> Any:
        """An argument given by position or by name."""
        if position < len(self.args):
            return self.args[position]
        if name in self.kwargs:
            return self.kwargs[name]
        if default is _MISSING:
            raise NoRule(f"argument {name!r} is missing")
        return default

    def tensor(self, position: int, name: str) -> Arr:
        x = self.arg(position, name)
        if not isinstance(x, Arr):
            raise NoRule(f"argument {name!r} is no tensor")
        return x

    @property
    def x(self) -> Arr:
        """The first argument, a tensor."""
        return self.tensor(0, "input")

    def dims_from(self, position: int, name: str) -> list[Any]:
        """Trailing numbers given one by one or as one sequence (`permute(1, 0)`)."""
        if position < len(self.args):
            first = self.args[position]
            return list(first if isinstance(first, tuple | list) else self.args[position:])
        value = self.arg(position, name)
        return list(value if isinstance(value, tuple | list) else [value])

    def refuse(self, *names: str) -> None:
        """Raises when one of these keyword arguments is given."""
        for name in names:
            if self.kwargs.get(name) is not None:
                raise NoRule(f"the argument {name}=")

    @property
    def out(self) -> Tensor:
        if not isinstance(self.example, Tensor):
            raise NoRule("several results")
        return self.example


def size_expr(x: Any) -> sympy.Expr:
    """A size argument as an expression."""
    if isinstance(x, Sym):
        return x.expr
    if isinstance(x, Arr):
        raise NoRule("a tensor as a size")
    return expression(x)
