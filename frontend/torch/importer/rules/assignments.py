"""Rules that put numbers in the place of others: assignments to items, by index or by mask."""

from collections.abc import Sequence
from typing import Any

from ..errors import NoRule
from ..values.context import Context
from ..values.elements import FLOATS
from ..values.nodes import Filter, Set
from ..values.tensors import Arr
from ..values.views import WHOLE, fitted, put, spelled_out
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
    if (columns := _masked_columns(ctx, base, parts, value)) is not None:
        return ctx.where(columns, value, base)
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


def _masked_columns(ctx: Context, base: Arr, parts: Sequence[Any], value: Arr) -> Arr | None:
    """The mask of `x[:, mask] = value` beside x, where the value is the same in all these columns;
    None for another assignment."""
    *whole, mask = parts if parts else (None,)
    if any(i != WHOLE for i in whole) or not isinstance(mask, Arr) or mask.elem != "i1":
        return None
    after = base.rank - len(parts)
    own = value.rank - after - 1
    if mask.rank != 1 or mask.home is not None or (own >= 0 and value.dims[own] != 1):
        return None
    for _ in range(after):
        mask = ctx.unsqueeze(mask, mask.rank)
    return mask


def _assigned_rows(ctx: Context, base: Arr, index: Arr, value: Arr) -> Arr:
    """Rows by their numbers, of which the last that names a row stays."""
    home = index.home
    if home is None:
        raise NoRule("an assignment to rows of a set by an index of constant size")
    once = index.v.op == "parent" and index.v.args[0].op == "iota"
    if once and isinstance(home.origin, Filter) and home.origin.set.find() is base.home:
        return _assigned_mask(ctx, base, Arr([base.home], home.origin.mask), value)
    if base.elem == "i1":
        base, value = (ctx.cast(x, "i64") for x in (base, value))
        return ctx.compare("ne", _assigned_rows(ctx, base, index, value), 0)
    if value.home is not None and value.rank == base.rank:
        home = ctx.sizes.unify(home, value.home)
    value = ctx.expand(value, [home, *base.dims[1:]])
    written = value if once else _last(ctx, base, index, value)
    placed = ctx.scattered(base, written, index, 0, "sum")
    return ctx.where(ctx.compare("gt", ctx.counts(index, placed), 0), placed, base)


def _last(ctx: Context, base: Arr, index: Arr, value: Arr) -> Arr:
    """Rows that are written, with zeros for those that a later one overwrites. These keep their
    gradient where they are finite: torch gives all rows the one of the place that they name."""
    number = ctx.values.make("iota", [], index.home, (), "i64")
    place = Arr([index.home], ctx.values.cast(number, "f64"))
    highest = ctx.scattered(Arr([base.dims[0]], base.v), place, index, 0, "max")
    last = ctx.compare("eq", ctx.gather(highest, 0, index), place)
    for _ in range(value.rank - 1):
        last = ctx.unsqueeze(last, last.rank)
    if value.elem not in FLOATS:
        return ctx.where(last, value, 0, elem=value.elem)
    zero = ctx.binary("sub", value, ctx.flat(value))
    zero = ctx.where(ctx.compare("eq", zero, zero), zero, 0, elem=value.elem)  # not of infinities
    return ctx.where(last, value, zero)
