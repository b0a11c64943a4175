"""What a program computes: values with their rows and shapes, and the place in the source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .declarations import Argument
from .source import Source
from .widths import Shape


class Site(Enum):
    """What a value has a row for."""

    ONE = "nothing: a single row"
    EDGE = "edges"
    NODE = "nodes"
    SRC = "source nodes"
    DST = "destination nodes"

    @property
    def is_node(self) -> bool:
        return self in (Site.NODE, Site.SRC, Site.DST)

    def includes(self, other: Site) -> bool:
        """Whether a value of this site has a row at each of the other."""
        return self in (other, Site.ONE) or (self is Site.NODE and other.is_node)


@dataclass(frozen=True, eq=False)
class Value:
    """A result of `op` (emit.py has a method for each). `boolean`: a comparison, no number."""

    op: str
    args: tuple[Value, ...]
    site: Site
    shape: Shape
    at: ast.AST
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    boolean: bool = False


def is_degree(v: Value) -> bool:
    """Whether a value is a degree, or one read at edges. It follows from the graph, and so does its
    reciprocal: what is divided by it is better multiplied."""
    return v.op == "degree" or (v.op == "read" and is_degree(v.args[0]))


@dataclass(frozen=True)
class Program:
    """A function as values. `results` are (name, value); `one_kind`: source and destination nodes
    are the same; `etypes` and `ntypes`: the types of edges or nodes are read."""

    source: Source
    graph: str
    arguments: Mapping[str, Argument]
    results: tuple[tuple[str, Value], ...]
    single: bool
    one_kind: bool
    etypes: bool
    ntypes: bool

    @property
    def name(self) -> str:
        return self.source.name
