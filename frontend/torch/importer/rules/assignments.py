"""Rules that put numbers in the place of others: assignments to items, by index or by mask."""

from typing import Any

from ..errors import NoRule
from ..values.context import Context
from ..values.nodes import Filter, Set
from ..values.tensors import Arr
from ..values.views import fitted, put, spelled_out
from .registry import Call, rule


@rule("index_put")
def _index_put(c: Call) -> Arr:
    """`x[i] = y`, or with `accumulate` x[i] += y where a number may come again."""
    indices, value = c.arg("indices"), c.ctx.cast(c.tensor("values"), c.x.elem)
    if len(indices) != 1 or not isinstance(indices[0], Arr):
        raise NoRule("an assignment by several index tensors")
    (index,) = indices
    if not c.arg("accumulate"):
        return _assigned(c.ctx, c.x, index, value)
    if index.elem == "i1":
        raise NoRule("sums into the rows of a mask")
    if index.home is not None and value.home is not None:
        c.ctx.sizes.unify(index.home, value.home)
    source = c.ctx.expand(value, [*index.dims, *c.x.dims[1:]])
    return c.ctx.binary("add", c.x, c.ctx.scattered(c.x, source, index, 0, "sum"))


@rule("index_copy", "index_fill")
def _index_copy(c: Call) -> Arr:
    """Rows in the places of others, of which an index gives the numbers."""
    dim, index = c.dim(), c.tensor("index")
    value = c.arg("src" if c.op == "index_copy" else "value")
    if dim != 0:
        raise NoRule("columns copied to places that an index tells")
    return _assigned(c.ctx, c.x, index, c.ctx.cast(c.ctx.lift(value), c.x.elem))


@rule("setitem")
def _setitem(c: Call) -> None:
    base, index = c.arg("input"), c.arg("index")
    if not isinstance(base, Arr):
        raise NoRule("an assignment to an item of a value that is no tensor")
    value = c.ctx.cast(c.ctx.lift(c.arg("value")), base.elem)
    c.edits.append((c.form.arguments["input"], _assigned(c.ctx, base, index, value)))


def _assigned(ctx: Context, base: Arr, index: Any, value: Arr) -> Arr:
    if isinstance(index, Arr) and index.elem == "i1":
        return _assigned_mask(ctx, base, index, value)
    if isinstance(index, Arr) and isinstance(base.dims[0], Set) and index.rank == 1:
        return _assigned_rows(ctx, base, index, value)
    parts = spelled_out(index if isinstance(index, tuple) else (index,), base.rank)
    value = fitted(ctx, base, parts, value)
    return base if 0 in value.dims else put(ctx, base, parts, value)


def _assigned_mask(ctx: Context, base: Arr, mask: Arr, value: Arr) -> Arr:
    if mask.rank > base.rank:
        raise NoRule("a mask with more dimensions than the tensor")
    full, columns = mask, base.rank - mask.rank
    for _ in range(columns):
        full = ctx.unsqueeze(full, full.rank)
    home = value.home
    if home is None:  # the same for all rows
        if any(d != 1 for d in value.dims[: max(value.rank - columns, 0)]):
            raise NoRule("as many numbers as a mask chooses")
        return ctx.where(full, value, base)
    if not isinstance(home.origin, Filter) or home.origin.mask is not mask.v:
        raise NoRule("an assignment of rows that were not chosen by the same mask")
    v = ctx.values
    placed = v.make("scatter_parent", [value.v], base.home, value.v.shape, value.elem, subset=home)
    return ctx.where(full, Arr(base.dims, placed), base)


def _assigned_rows(ctx: Context, base: Arr, index: Arr, value: Arr) -> Arr:
    """Rows by their numbers, as nonzero gives those of a mask: each once, so that a sum of what is
    written there is what is written last."""
    home = index.home
    if home is None or index.v.op != "parent" or index.v.args[0].op != "iota":
        raise NoRule("an assignment to rows of a set by numbers that nonzero has not given")
    assert isinstance(home.origin, Filter)
    if home.origin.set.find() is base.home:
        return _assigned_mask(ctx, base, Arr([base.home], home.origin.mask), value)
    value = ctx.expand(value, [home, *base.dims[1:]])
    placed = ctx.scattered(base, value, index, 0, "sum")
    return ctx.where(ctx.compare("gt", ctx.counts(index, placed), 0), placed, base)
