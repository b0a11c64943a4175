"""Operands of a function of each number, brought to the rows that they share, as torch broadcasts
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from .values import GRAPH, KEY, PLACE, Axis, Dense, NotByRows, Places, Rows, shape_of, width


@dataclass(frozen=True, eq=False)
class Operand:
    """An operand at rows of nodes or of pairs, and at the places behind them."""

    rows: Any
    pad: Any | None


def aligned(of: Places, operands: Sequence[Any]) -> tuple[tuple[Axis, ...], list[Operand]]:
    """The dimensions of the result of operands that are broadcast, and each operand at its rows.

    Raises:
        NotByRows: one has places where another has columns, or as many rows as there are places.
    """
    ranks = [x.rank if isinstance(x, Dense) else _rank(x) for x in operands]
    axes = _dimensions(operands, ranks)
    return axes, [
        dense_at(x, axes) if isinstance(x, Dense) else plain_at(of, x, axes) for x in operands
    ]


def is_one(size: Any) -> bool:
    return type(size) is int and size == 1


def _rank(x: Any) -> int:
    return len(shape_of(x)) if isinstance(x, fx.Proxy) else 0


def _dimensions(operands: Sequence[Any], ranks: Sequence[int]) -> tuple[Axis, ...]:
    rank = max(ranks)
    axes: list[Any] = [1] * rank
    places, names = set[int](), dict[int, str]()
    for x, own in zip(operands, ranks, strict=True):
        sizes = x.axes if isinstance(x, Dense) else shape_of(x) if isinstance(x, fx.Proxy) else ()
        for i, size in enumerate(sizes, rank - own):
            if size == GRAPH:
                names[i] = GRAPH
            elif isinstance(size, str):
                places.add(i)
                if x.paired and names.setdefault(i, size) != size:
                    raise NotByRows("pairs that meet pairs the other way round")
            elif not is_one(size):
                axes[i] = size
    missing = [p for p in (PLACE, KEY) if p not in names.values()]
    for i in sorted(places - names.keys()):
        if not missing:
            raise NotByRows("places of graphs along three dimensions")
        names[i] = missing.pop(0)
    if list(names.values()).count(GRAPH) != 1:
        raise NotByRows("graphs along two dimensions")
    for i, name in names.items():
        axes[i] = name
    return tuple(a if isinstance(a, str) else width(a) for a in axes)


def dense_at(x: Dense, axes: Sequence[Axis]) -> Operand:
    """A dense batch at the rows of a result with these dimensions."""
    rows = x.rows
    if KEY in axes and not x.paired:
        rows = _at(rows, x.of.ends[_role(x, axes) == KEY])
    return Operand(_fitted(x, rows, axes), pad_at(x, axes))


def pad_at(x: Dense, axes: Sequence[Axis]) -> Rows | None:
    """What a dense batch has at the places behind the rows of a result with these dimensions."""
    pad = x.pad
    if KEY in axes and not x.paired and _role(x, axes) == PLACE:
        # where the first is a node, whatever the second is
        pad = None if isinstance(x.rows, fx.Proxy) else x.rows
    return None if pad is None else _fitted(x, pad, axes)


def _role(x: Dense, axes: Sequence[Axis]) -> Axis:
    """What the places of a batch are in a result."""
    return axes[len(axes) - x.rank + x.axes.index(PLACE)]


def _fitted(x: Dense, part: Rows, axes: Sequence[Axis]) -> Any:
    """Rows of `x` with the columns that a result has."""
    first = len(axes) - x.rank
    for d in reversed(range(x.rank)):
        if not isinstance(x.axes[d], str) and isinstance(axes[first + d], str):
            if x.axes[d] != 1:
                raise NotByRows("columns that meet places")
            part = part.squeeze(x.column(d))
    columns = sum(not isinstance(a, str) for a in axes)
    own = sum(not isinstance(a, str) for a in axes[first:])
    for _ in range(columns - own):
        part = part.unsqueeze(1)
    return part


def _at(rows: Rows, index: fx.Proxy) -> Rows:
    return rows.index_select(0, index) if isinstance(rows, fx.Proxy) else rows


def plain_at(of: Places, x: Any, axes: Sequence[Axis]) -> Operand:
    """Any other operand at such rows: one row for all, or one for each graph."""
    if not isinstance(x, fx.Proxy):
        return Operand(x, x)
    shape, first = shape_of(x), len(axes) - _rank(x)
    graph = None
    for d in reversed(range(len(shape))):
        axis = axes[first + d]
        if isinstance(axis, str) and is_one(shape[d]):
            x = x.squeeze(d)
            graph = None if graph is None else graph - 1
        elif axis == GRAPH and of.is_graphs(shape[d]):
            graph = d
        elif isinstance(axis, str):
            raise NotByRows(f"a tensor with a row for each {axis}")
    if graph is None:
        return Operand(x, x)
    x = x.movedim(graph, 0) if graph else x
    columns = sum(not isinstance(a, str) for a in axes)
    for _ in range(columns - (_rank(x) - 1)):
        x = x.unsqueeze(1)
    return Operand(x.index_select(0, of.graph_of_pairs if KEY in axes else of.batch), None)
