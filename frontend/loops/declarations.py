"""The signature of a program: which argument is the graph, and what rows the others have.

def layer(g: Graph, x: Nodes["in"], w: Edges, W: Weights["etype", "in", "out"])
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .errors import suggestion
from .source import Source
from .widths import Shape, names, width

TABLES = ("etype", "ntype")
"""First widths of weights that have a block for each type."""


class _Kind:
    """An annotation. Subscripted with widths it stays what it is: programs are read as source."""

    def __class_getitem__(cls, widths: Any) -> type[_Kind]:
        return cls


class Nodes(_Kind):
    """Rows of all nodes, `Nodes["in"]`; without widths one number a node."""


class SrcNodes(_Kind):
    """Rows of the nodes that edges come from."""


class DstNodes(_Kind):
    """Rows of the nodes that edges lead to."""


class Edges(_Kind):
    """Rows of edges."""


class Weights(_Kind):
    """One block, `Weights["in", "out"]`, or one for each type of edge or node,
    `Weights["etype", "in", "out"]` and `Weights["ntype", "in", "out"]`."""


KINDS = ("Nodes", "SrcNodes", "DstNodes", "Edges", "Weights")


@dataclass(frozen=True)
class Argument:
    """An argument with rows. `table` is "etype" or "ntype" for weights with a block a type."""

    name: str
    kind: str
    table: str | None
    shape: Shape
    at: ast.arg


def read_signature(source: Source) -> tuple[str, dict[str, Argument]]:
    """The name of the graph, and the other arguments in order.

    Raises:
        ProgramError: no graph, or an argument without a kind.
    """
    given = source.tree.args
    if extra := (given.vararg or given.kwarg or next(iter(given.posonlyargs), None)):
        raise source.error(extra, "a program has plain arguments: one name for each tensor")
    if default := next((d for d in (*given.defaults, *given.kw_defaults) if d is not None), None):
        raise source.error(default, "an argument of a program has no default: pass it at each call")
    graph: str | None = None
    arguments: dict[str, Argument] = {}
    for a in (*given.args, *given.kwonlyargs):
        if _kind(a.annotation) == "Graph":
            if graph is not None:
                raise source.error(a, f"a program is over one graph, `{graph}` is one already")
            graph = a.arg
        else:
            arguments[a.arg] = _argument(source, a)
    if graph is None:
        raise source.error(source.tree, "a program takes a graph: declare one, `g: Graph`")
    return graph, arguments


def _kind(annotation: ast.expr | None) -> str | None:
    """The last word of an annotation without its widths: `gnnc.Nodes["in"]` is Nodes."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if isinstance(annotation, ast.Attribute):
        return annotation.attr
    return annotation.id if isinstance(annotation, ast.Name) else None


def _argument(source: Source, a: ast.arg) -> Argument:
    kind = _kind(a.annotation)
    if kind is None:
        raise source.error(
            a, f"`{a.arg}` needs a kind: `{a.arg}: Weights[..]`, or Graph, Nodes, Edges"
        )
    if kind not in KINDS:
        hint = suggestion(kind, (*KINDS, "Graph"), "there are")
        raise source.error(a.annotation or a, f"`{kind}` is no kind of argument: {hint}")
    shape = _widths(source, a.annotation)
    table = None
    if shape and shape[0] in TABLES:
        table, shape = shape[0], shape[1:]
        if kind != "Weights":
            raise source.error(
                a, f"only weights have a block for each type: `{a.arg}: Weights[{table!r}, ..]`"
            )
    if wrong := names(shape).intersection(TABLES):
        name = wrong.pop()
        raise source.error(a, f"`{name}` is no width: it comes first, Weights[{name!r}, ..]")
    return Argument(a.arg, kind, table, shape, a)


def _widths(source: Source, annotation: ast.expr | None) -> Shape:
    if not isinstance(annotation, ast.Subscript):
        return ()
    index = annotation.slice
    items: Sequence[ast.expr] = index.elts if isinstance(index, ast.Tuple) else [index]
    out: list[str] = []
    for item in items:
        value = item.value if isinstance(item, ast.Constant) else None
        found = width(value) if isinstance(value, str | int) else None
        if found is None:
            raise source.error(
                item, 'a width is a name, a number or a product: "in", 16 or "heads * out"'
            )
        out.append(found)
    return tuple(out)
