"""Dense batches with their dimensions moved, split, joined or left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .align import is_one
from .functions import Call, masked, of
from .values import GRAPH, PLACE, Axis, Dense, NotByRows, width


@of("permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "t", "mT", "T")
def moved(c: Call) -> Dense:
    """Another order of the dimensions: that which a tensor's numbers of dimensions get."""
    x = c.x
    if c.op in ("t", "T"):
        order = [*range(x.rank)][::-1]
    elif c.op == "mT":
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    elif c.op == "permute":
        order = [x.wrap(d) for d in c.arguments["dims"]]
    else:
        sizes = torch.empty([*range(1, x.rank + 1)], device="meta")  # each of its own
        order = [n - 1 for n in c.with_()(sizes).shape]
    return permuted(x, order)


def permuted(x: Dense, order: Sequence[int]) -> Dense:
    """The dimensions in this order."""
    axes = [x.axes[d] for d in order]
    columns = [x.column(d) for d in order if not isinstance(x.axes[d], str)]
    if columns == sorted(columns):
        return Dense(x.of, tuple(axes), x.rows, x.pad)
    return x.made(axes, lambda rows: rows.permute(0, *columns))


@of("unsqueeze")
def unsqueeze(c: Call) -> Dense:
    """A new dimension of size 1."""
    d = c.arguments["dim"]
    return unsqueezed(c.x, d if d >= 0 else d + c.x.rank + 1)


def unsqueezed(x: Dense, d: int) -> Dense:
    """A new dimension of size 1 at a place."""
    column = 1 + sum(not isinstance(a, str) for a in x.axes[:d])
    return x.made((*x.axes[:d], 1, *x.axes[d:]), lambda rows: rows.unsqueeze(column))


@of("squeeze")
def squeeze(c: Call) -> Dense:
    """Without one dimension of size 1; one of graphs or places is none."""
    x, dim = c.x, c.arguments.get("dim")
    if type(dim) is not int:
        raise NotByRows("squeeze of whichever dimensions have size 1")
    d = x.wrap(dim)
    if not is_one(x.axes[d]):
        if isinstance(x.axes[d], str):
            raise NotByRows(f"squeeze of the {x.axes[d]}s")
        return x
    column = x.column(d)
    return x.made((*x.axes[:d], *x.axes[d + 1 :]), lambda rows: rows.squeeze(column))


@of("view", "reshape", "flatten", "unflatten", "_unsafe_view")
def reshape(c: Call) -> Dense:
    """Columns split and joined, between graphs and places that stay what they are."""
    return reshaped(c.x, c.shape)


def reshaped(x: Dense, shape: Sequence[Any]) -> Dense:
    """The numbers in another shape, in the same order."""
    axes = _as_before(x, shape)
    sizes = [a for a in axes if not isinstance(a, str)]
    if sizes == list(x.columns):
        return Dense(x.of, axes, x.rows, x.pad)
    kept = _kept(x.columns, sizes)
    if kept is not None:
        start, end, new = kept
        return x.made(axes, lambda rows: _reshaped(rows, start, end, new))
    raise NotByRows("columns joined and split at once")


def _reshaped(rows: Any, start: int, end: int, new: Sequence[int]) -> Any:
    """The columns from `start` to `end` in the sizes of `new`."""
    if end - start > 1:
        rows = rows.flatten(1 + start, end)
    elif end == start:
        rows = rows.unsqueeze(1 + start)
    if not new:
        return rows.squeeze(1 + start)
    return rows.unflatten(1 + start, tuple(new)) if len(new) > 1 else rows


def _kept(old: Sequence[int], new: Sequence[int]) -> tuple[int, int, Sequence[int]] | None:
    """Which of the old columns become which new ones, where the others stay."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = list(new[start : len(new) - end])
    if math.prod(old[start : len(old) - end]) != math.prod(middle):
        return None
    return start, len(old) - end, middle


def _as_before(x: Dense, shape: Sequence[Any]) -> tuple[Axis, ...]:
    """The dimensions of a shape in which graphs and places stand as they do in `x`, with as many
    columns before, between and behind them."""
    axes: list[Axis] = []
    rest = list(shape)
    for name, columns in _segments(x.axes):
        product = 1
        while rest and (product < columns or not _may_be(x, name, rest[0])):
            size = rest.pop(0)
            product *= width(size)
            axes.append(width(size))
        if product != columns:
            raise NotByRows("columns that cross graphs or places")
        if name is not None:
            rest.pop(0)
            axes.append(name)
    return tuple(axes)


def _segments(axes: Sequence[Axis]) -> list[tuple[str | None, int]]:
    """Each dimension of graphs or places with the number of columns in front of it; the last
    columns."""
    out: list[tuple[str | None, int]] = []
    columns = 1
    for a in axes:
        if isinstance(a, str):
            out.append((a, columns))
            columns = 1
        else:
            columns *= a
    return [*out, (None, columns)]


def _may_be(x: Dense, name: str | None, size: Any) -> bool:
    if name is None:
        return False
    return x.of.is_graphs(size) if name == GRAPH else x.of.is_places(size)


@of("expand")
def expand(c: Call) -> Dense:
    """Columns of size 1 repeated."""
    x = c.x
    if len(c.shape) != x.rank:
        raise NotByRows("new dimensions by expand")
    axes = [a if isinstance(a, str) else width(n) for a, n in zip(x.axes, c.shape, strict=True)]
    for a, n in zip(x.axes, c.shape, strict=True):
        if isinstance(a, str) and not _may_be(x, a, n):
            raise NotByRows(f"{a}s repeated")
    sizes = [a for a in axes if not isinstance(a, str)]
    return x.made(axes, lambda rows: rows.expand(-1, *sizes))


@of("cat", "concat", "concatenate")
def cat(c: Call) -> Dense:
    """Columns side by side."""
    xs = c.arguments["tensors"]
    if not all(isinstance(x, Dense) for x in xs):
        raise NotByRows("a dense batch beside another tensor")
    d = xs[0].wrap(c.arguments["dim"])
    column = xs[0].column(d)
    if any(x.axes[:d] != xs[0].axes[:d] or x.axes[d + 1 :] != xs[0].axes[d + 1 :] for x in xs):
        raise NotByRows("dense batches of other dimensions side by side")
    if any(isinstance(x.rows, torch.Tensor) for x in xs):
        raise NotByRows("constants beside rows")
    axes = (*xs[0].axes[:d], sum(x.axes[d] for x in xs), *xs[0].axes[d + 1 :])
    rows = torch.cat([x.rows for x in xs], column)
    known = all(x.pad is not None for x in xs)
    pad = torch.cat([x.node(x.pad) for x in xs], column) if known else None
    return Dense(xs[0].of, axes, rows, pad)


@of("chunk", "split", "unbind", "tensor_split", "split_with_sizes")
def split(c: Call) -> Any:
    """Columns apart from each other."""
    x = c.x
    d = x.wrap(c.arguments["dim"])
    column, start = x.column(d), 0
    out = []
    for shape in c.shapes:
        if c.op == "unbind":
            axes = (*x.axes[:d], *x.axes[d + 1 :])
            out.append(x.made(axes, lambda rows, i=start: rows.select(column, i)))
            start += 1
        else:
            size = width(shape[d])
            axes = (*x.axes[:d], size, *x.axes[d + 1 :])
            out.append(x.made(axes, lambda r, i=start, n=size: r.narrow(column, i, n)))
            start += size
    return tuple(out)


@of("getitem")
def getitem(c: Call) -> Any:
    """Columns by numbers and slices, new dimensions, and the rows of all nodes by their mask."""
    x, index = c.arguments["input"], c.arguments["index"]
    if not isinstance(x, Dense):
        raise NotByRows("other rows by those of a dense batch")
    if isinstance(index, Dense):
        return by_mask(x, index)
    index = index if isinstance(index, tuple) else (index,)
    given = sum(i is not None and i is not Ellipsis for i in index)
    if Ellipsis in index:
        k = index.index(Ellipsis)
        index = (*index[:k], *[slice(None)] * (x.rank - given), *index[k + 1 :])
    d = 0
    for i in index:
        if i is None:
            x, d = unsqueezed(x, d), d + 1
        elif i == slice(None):
            d += 1
        elif type(i) is int:
            column = x.column(d)
            x = x.made((*x.axes[:d], *x.axes[d + 1 :]), lambda r, k=column, i=i: r.select(k, i))
        elif isinstance(i, slice) and not isinstance(x.axes[d], str):
            column, numbers = x.column(d), range(x.axes[d])[i]
            at = (*[slice(None)] * column, i)
            x = x.made((*x.axes[:d], len(numbers), *x.axes[d + 1 :]), lambda r, at=at: r[at])
            d += 1
        else:
            raise NotByRows("graphs or places by their numbers")
    return x


def by_mask(x: Dense, mask: Dense) -> Any:
    """The rows of all nodes, in their order."""
    whole = is_mask(mask) and mask.axes == (GRAPH, PLACE)
    if not whole or x.axes[:2] != mask.axes or x.paired:
        raise NotByRows("places by another mask than that of the nodes")
    return x.all_rows().clone()  # in torch they are nobody else's


@of("setitem")
def setitem(c: Call) -> Dense:
    """A number where the mask of the nodes, or its contrary, is true."""
    x, mask, value = c.x, c.arguments["index"], c.arguments["value"]
    constant = isinstance(mask, Dense) and isinstance(mask.rows, torch.Tensor)
    if not constant or mask.columns or mask.axes != x.axes[: mask.rank] or mask.pad is None:
        raise NotByRows("numbers put at other places than those of a mask of nodes")
    if type(value) not in (int, float):
        raise NotByRows("tensors put at the places of a mask")
    for _ in x.axes[mask.rank :]:
        mask = unsqueezed(mask, mask.rank)
    return masked(c.of, x, mask, value)


def is_mask(x: Dense) -> bool:
    """Whether this is true for nodes, and nowhere behind them."""
    rows, pad = x.rows, x.pad
    constant = isinstance(rows, torch.Tensor) and isinstance(pad, torch.Tensor)
    return constant and rows.dtype == torch.bool and bool(rows.all()) and not bool(pad.any())
