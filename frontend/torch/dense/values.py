"""Dense batches as a trace sees them.

PyG's `to_dense_batch` lays the rows of each graph side by side, graphs x places x columns, and
fills the places behind them up. A `Dense` stands for such a tensor: for the rows alone, one for
each node, and for what stands at all places behind, the `pad`. A function of each place by itself
is computed of both (of the pad nothing, unless somebody reads it). Two dimensions of places, as the
scores of attention have them, are pairs of nodes of the same graph.

What is the same for all rows (a mask) is no node of the graph but a tensor of one row, of which
functions are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch.utils._python_dispatch import _disable_current_modes

from ..importer.values.sizes import expression, is_unbacked
from ..retraced import Retraced

GRAPH, PLACE, KEY = "graph", "place", "key"
"""Dimensions that are no columns: the graph, the place in it, and in pairs that of the second."""

Axis = str | int
Rows = fx.Proxy | Tensor
"""Rows x columns, or a tensor with one row that is the same for all."""


class NotByRows(Exception):
    """A function of dense batches cannot be said of rows."""


@dataclass(frozen=True, eq=False)
class Places:
    """Which graph each row is of (`batch`, in order), how many graphs there are, and the places of
    each. `ask_pairs` gives the pairs of rows of the same graph, 2 x pairs, in the order of the
    first; `partners` are the pairs of a row in the first call, in the mean."""

    tracer: Retraced
    batch: fx.Proxy
    graphs: fx.Proxy | int
    longest: fx.Proxy
    ask_pairs: Callable[[], fx.Proxy]
    partners: float
    sums: dict[fx.Node, tuple[str, Dense, Dense]] = field(default_factory=dict)
    """The products over the places of a graph so far: an equation, and its operands."""

    @cached_property
    def ends(self) -> tuple[fx.Proxy, fx.Proxy]:
        """The rows that pairs are of."""
        pairs = self.ask_pairs()
        return pairs[0], pairs[1]

    @cached_property
    def graph_of_pairs(self) -> fx.Proxy:
        return self.batch.index_select(0, self.ends[0])

    @cached_property
    def count(self) -> fx.Proxy:
        """How many rows there are."""
        return torch.ops.aten.sym_size.int(self.batch, 0)

    @cached_property
    def pairs_count(self) -> fx.Proxy:
        """How many pairs there are."""
        return torch.ops.aten.sym_size.int(self.ends[0], 0)

    def constant(self, x: Tensor) -> fx.Proxy:
        """A tensor of equal numbers as a node."""
        values = x.unique()
        if len(values) != 1:
            raise NotByRows("a row of several constants")
        return self.tracer.called(torch.full, tuple(x.shape), values.item(), dtype=x.dtype)

    def computed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A function of proxies and constant tensors (perhaps a `partial`, of others as well): of
        constants alone it is computed now."""
        if isinstance(function, partial):
            kwargs = function.keywords | kwargs
            function, args = function.func, (*function.args, *args)
        leaves = pytree.tree_leaves((args, kwargs))
        if not any(isinstance(x, fx.Proxy) for x in leaves):
            with _disable_current_modes(), torch.no_grad():
                return function(*args, **kwargs)
        args, kwargs = pytree.tree_map_only(Tensor, self.constant, (args, kwargs))
        return function(*args, **kwargs)

    def is_graphs(self, size: Any) -> bool:
        return expression(size) == expression(size_of(self.graphs))

    def is_places(self, size: Any) -> bool:
        return expression(size) == expression(size_of(self.longest))


@dataclass(frozen=True, eq=False)
class Dense:
    """A tensor whose dimensions are `axes`: `GRAPH`, `PLACE`, perhaps `KEY`, and columns by their
    number. `rows` are those of nodes (of pairs, with `KEY`) with the columns in this order; `pad`
    (one row) is what all places behind them have, in pairs those where the first is a node. None:
    it is not known, or not the same for all."""

    of: Places
    axes: tuple[Axis, ...]
    rows: Rows
    pad: Rows | None

    def __post_init__(self) -> None:
        """A node has all rows, also where it was computed of constants and is the same for all; the
        pad has all columns, and the type of the rows, also where it is that of one operand."""
        rows, pad = self.rows, self.pad
        if isinstance(rows, fx.Proxy):
            count, *sizes = shape_of(rows)
            if type(count) is int and count == 1:
                rows = rows.expand(self.of.pairs_count if self.paired else self.of.count, *sizes)
        if pad is not None:
            if len(_sizes(pad)) != 1 + len(self.columns):
                raise NotByRows("a pad of other columns")
            if _sizes(pad) != (1, *self.columns):
                pad = pad.expand(1, *self.columns)
            if _dtype(pad) != _dtype(rows):
                pad = pad.to(_dtype(rows))
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "pad", pad)

    @property
    def dtype(self) -> torch.dtype:
        return _dtype(self.rows)

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def paired(self) -> bool:
        return KEY in self.axes

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(a for a in self.axes if not isinstance(a, str))

    def wrap(self, dim: Any) -> int:
        if type(dim) is not int or not -self.rank <= dim < self.rank:
            raise NotByRows(f"a dimension {dim}")
        return dim % self.rank

    def column(self, dim: int) -> int:
        """The dimension of `rows` that a dimension is.

        Raises:
            NotByRows: it is none of columns.
        """
        dim = self.wrap(dim)
        if isinstance(self.axes[dim], str):
            raise NotByRows(f"along the {self.axes[dim]}s")
        return 1 + sum(not isinstance(a, str) for a in self.axes[:dim])

    def made(self, axes: Sequence[Axis], function: Callable[[Rows], Any]) -> Dense:
        """A function of each row by itself, whose result has these dimensions."""
        rows = self.of.computed(function, self.rows)
        pad = None if self.pad is None else self.of.computed(function, self.pad)
        return Dense(self.of, tuple(axes), rows, pad)

    def node(self, x: Rows) -> fx.Proxy:
        return self.of.constant(x) if isinstance(x, Tensor) else x

    def all_rows(self) -> fx.Proxy:
        """The rows as a node, one for each node also where all are the same."""
        if isinstance(self.rows, fx.Proxy):
            return self.rows
        count = self.of.pairs_count if self.paired else self.of.count
        return self.node(self.rows).expand(count, *self.columns)


def size_of(x: Any) -> Any:
    """A size that is a number or a node."""
    return x.node.meta["example_value"] if isinstance(x, fx.Proxy) else x


def shape_of(x: Any) -> tuple[Any, ...]:
    """The sizes of a plain tensor, as numbers where they are such for certain."""
    sizes = x.node.meta["example_value"].shape
    return tuple(int(n) if expression(n).is_Integer else n for n in sizes)


def _sizes(x: Rows) -> tuple[Any, ...]:
    return shape_of(x) if isinstance(x, fx.Proxy) else tuple(x.shape)


def _dtype(x: Rows) -> torch.dtype:
    return x.node.meta["example_value"].dtype if isinstance(x, fx.Proxy) else x.dtype


def width(size: Any) -> int:
    """A number of columns, which a guard keeps.

    Raises:
        NotByRows: only running the program tells it.
    """
    if any(is_unbacked(s) for s in expression(size).free_symbols):
        raise NotByRows("columns that are counted by data")
    return int(size)


def is_all(x: Rows | None, value: float | bool) -> bool:
    """Whether this is a constant, everywhere this number."""
    return isinstance(x, Tensor) and bool((x == value).all())
