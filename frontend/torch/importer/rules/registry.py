"""The table of rules and the view of a call that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ..calls.canonical import Canonical
from ..calls.schemas import plain_name
from ..errors import NoRule
from ..values.context import Context
from ..values.sizes import COUNTED, expression, tensors_in
from ..values.tensors import Arr, Elem, Sym, elem_of

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}

_MISSING = object()

_ANSWERED = {
    "_stacklevel",  # of a warning
    "copy",  # of numbers that are the same; who shares memory with whom is the walk's matter
    "cudnn_enable",
    "cudnn_enabled",
    "device",  # the result's, which must be this one's
    "inplace",  # an edit, which the walk makes
    "layout",  # the result's, which must be strided
    "memory_format",  # an order in memory
    "non_blocking",
    "path",  # an order of products
}
"""Arguments that cannot change the numbers of a result on the CPU, whatever the op."""

_FLAGS = {"pin_memory", "requires_grad"}
"""Arguments that no rule handles, which may be False where their default is None."""


def rule(*ops: str, counts: str | None = None) -> Callable[[Rule], Rule]:
    """Registers a rule under the names of ops, as `canonical` has them. The argument `counts` is
    the number of rows that the result has."""

    def register(f: Rule) -> Rule:
        for op in ops:
            assert op not in RULES and op == plain_name(op), op
            RULES[op] = f
            if counts is not None:
                COUNTED[op] = counts
        return f

    return register


def rules(of: Mapping[str, Rule]) -> None:
    """Registers rules of one expression, each under the names of ops with spaces between them."""
    for ops, f in of.items():
        rule(*ops.split())(f)


def formulas(**of: Callable[[Context, Arr], Arr]) -> None:
    """Registers rules of a tensor and nothing else, by what they compute of it."""
    rules({op: lambda c, f=f: f(c.ctx, c.x) for op, f in of.items()})


@dataclass
class Call:
    """One node: its op, its evaluated arguments by name, its example result, and what it changes.

    A rule names the arguments that it takes. One that it has not asked for and that is not at its
    default sends the call to torch (`refuse_unread`), so that no argument is ever ignored.
    """

    ctx: Context
    node: fx.Node
    form: Canonical
    arguments: Mapping[str, Any]
    example: Any
    new_site: Callable[[], int]
    key: Callable[[], Arr]
    # nodes (of tensors edited in place besides the first argument) with their new values
    edits: list[tuple[fx.Node, Arr]] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    @property
    def op(self) -> str:
        return self.form.op

    def arg(self, name: str, default: Any = _MISSING) -> Any:
        """An argument; the default is for signatures that do not have it."""
        self.read.add(name)
        if name in self.arguments:
            return self.arguments[name]
        if default is _MISSING:
            raise NoRule(f"a call without the argument {name!r}")
        return default

    def tensor(self, name: str) -> Arr:
        x = self.arg(name)
        if not isinstance(x, Arr):
            raise NoRule(f"argument {name!r} is no tensor")
        return x

    def optional(self, name: str) -> Arr | None:
        """A tensor or None."""
        return None if self.arg(name, None) is None else self.tensor(name)

    def number(self, name: str, default: Any = _MISSING) -> float:
        """A number that is known now."""
        value = self.arg(name, default)
        if not isinstance(value, int | float):
            raise NoRule(f"{name}= is no constant number")
        return value

    def dim(self, name: str = "dim", default: Any = _MISSING) -> int:
        """A number of a dimension of the first argument, from 0."""
        return self.x.wrap(self.arg(name, default))

    @property
    def x(self) -> Arr:
        """The first argument, a tensor."""
        return self.tensor("input")

    @property
    def out(self) -> Tensor:
        if not isinstance(self.example, Tensor):
            raise NoRule("several results")
        return self.example

    @property
    def elem(self) -> Elem:
        """The element type of the result, for rules that compute in it: `dtype=` asks for it."""
        self.read.add("dtype")
        return elem_of(self.out.dtype)

    def seen_in_result(self, *names: str) -> None:
        """Tells that the rule takes what these arguments say from the example result."""
        self.read.update(names)

    def refuse_unread(self) -> None:
        """Raises NoRule for an argument that nobody has looked at, unless it says nothing."""
        for name in sorted(self.form.set_apart() - self.read - _ANSWERED):
            value = self.arguments[name]
            if not (name in _FLAGS and value in (None, False)):
                said = f"={value!r}" if isinstance(value, bool | int | float | str) else "="
                raise NoRule(f"the argument {name}{said}")
        for t in tensors_in(self.example):
            if t.device.type != "cpu" or t.layout is not torch.strided:
                raise NoRule(f"a result of layout {t.layout} on {t.device}")


def size_expr(x: Any) -> sympy.Expr:
    """A size argument as an expression."""
    if isinstance(x, Sym):
        return x.expr
    if isinstance(x, Arr):
        raise NoRule("a tensor as a size")
    return expression(x)
