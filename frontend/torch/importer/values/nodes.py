"""Symbolic values and the sets that their rows are of: what the importer computes with.

A node is rows over a `Set` (or over no set: one row) with a constant row shape. `values.py` makes
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy
from torch import fx

from .elements import FLOATS, Elem

_numbers = itertools.count()


@dataclass(frozen=True)
class Sized:
    """A set given by its size: an argument, or (with data-dependent symbols) computed."""


@dataclass(frozen=True)
class Filter:
    """The rows of `set` where `mask` holds."""

    set: Set
    mask: Node


@dataclass(frozen=True)
class Union:
    """The disjoint union of `parts`, in order."""

    parts: tuple[Set, ...]


@dataclass(frozen=True)
class Loops:
    """One loop per node of `nodes`; `of` are the edges that may already hold some, with the
    columns of their end points (or None: their loops do not matter)."""

    nodes: Set
    of: Set
    src: Node
    dst: Node


Origin = Sized | Filter | Union | Loops


@dataclass(eq=False)
class Set:
    """A set; `expr` is its size in the graph's symbols. Sets that meet become one (`find`)."""

    expr: sympy.Expr
    origin: Origin = Sized()
    number: int = field(default_factory=lambda: next(_numbers))
    merged: Set | None = None

    def find(self) -> Set:
        s = self
        while s.merged is not None:
            s = s.merged
        return s

    def __repr__(self) -> str:
        s = self.find()
        return f"set{s.number}({s.expr})"


@dataclass(eq=False)
class Node:
    """One value. `set` None: a single row. `attrs` are constants, sets and further nodes. `source`
    is the node of the FX graph that it was first made for."""

    op: str
    args: tuple[Node, ...]
    set: Set | None
    shape: tuple[int, ...]
    elem: Elem
    attrs: dict[str, Any]
    number: int
    source: fx.Node | None = None

    @property
    def home(self) -> Set | None:
        return None if self.set is None else self.set.find()

    def __repr__(self) -> str:
        return f"%{self.number}:{self.op}"


def is_const(v: Node, value: float | None = None) -> bool:
    """Whether a node is a constant fill (with that value)."""
    return v.op == "const" and (value is None or v.attrs["value"] == value)


def behind(v: Node, enter: Callable[[Node], bool] = lambda x: True) -> Iterator[Node]:
    """A value and what it is computed from, each once; `enter` tells of which nodes the operands
    are looked at."""
    todo, seen = [v], set[int]()
    while todo:
        x = todo.pop()
        if x.number not in seen:
            seen.add(x.number)
            yield x
            if enter(x):
                todo += x.args


def depends_on_floats(v: Node) -> bool:
    """Whether a value depends on a float input."""
    return any(x.op == "input" and x.elem in FLOATS for x in behind(v))


def sources(v: Node) -> Iterator[Node]:
    """The float inputs that a value has a gradient for."""
    inner = behind(v, enter=lambda x: x.elem in FLOATS and x.op != "stop")
    return (x for x in inner if x.op == "input" and x.elem in FLOATS)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    out = []
    for column in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        sizes = {d for d in column if d != 1}
        if len(sizes) > 1:
            raise AssertionError(f"row shapes {shapes} do not broadcast")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)
