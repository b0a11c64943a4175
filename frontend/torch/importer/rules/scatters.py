"""Rules that write by index: reductions into rows, and assignments to items."""

from typing import Any

import sympy
import torch

from ..errors import NoRule
from ..values.sizes import expression
from ..values.tensors import DTYPES, Arr, Dim, elem_of, numbers
from ..values.values import FLOATS, Filter, Set
from .indexing import column_numbers
from .registry import Call, rule, size_expr


@rule("scatter")
def _scatter(c: Call) -> Arr:
    """`x.scatter(dim, i, value)` of one column a row, as one-hot code does."""
    dim, i = c.dim(), c.tensor("index")
    value = c.arg("src") if "src" in c.arguments else c.arg("value")
    if isinstance(value, Arr) and value.rank and numbers(value.dims) != numbers(i.dims):
        raise NoRule("numbers of another shape than the index that places them")
    columns = column_numbers(c, c.x, dim, i)
    c.ctx.require_below(i, c.x.dims[dim])
    return c.ctx.where(c.ctx.compare("eq", i, columns), value, c.x, elem=c.x.elem)


@rule("index_add", "scatter_add")
def _index_add(c: Call) -> Arr:
    dim, index, source = c.dim(), c.tensor("index"), c.tensor("src")
    scale = c.arg("alpha", 1)
    if scale != 1:
        source = c.ctx.binary("mul", source, scale)
    index = _one_index(c, index, source, dim)
    added = _scattered(c, source, index, dim, "sum")
    return c.ctx.binary("add", c.x, added)


def _scattered(
    c: Call, source: Arr, index: Arr, dim: int, kind: str, zero_ties: bool = False
) -> Arr:
    """A reduction into the rows of the tensor that the call edits."""
    return _reduced(c, source, index, c.x.dims[dim], dim, kind, zero_ties)


def _reduced(
    c: Call, source: Arr, index: Arr, target: Dim, dim: int, kind: str, zero_ties: bool = False
) -> Arr:
    """A reduction into the rows of a dimension."""
    if isinstance(target, Set):
        return c.ctx.segment(source, index, dim, target.find().expr, kind, zero_ties)
    if not isinstance(target, int) or c.x.axis is not None:
        raise NoRule("a reduction into a column dimension")
    # into a dimension of constant size: over a set of that size, and back to columns
    over, i = c.ctx.group(index, source, dim)
    rows = c.ctx.sizes.set_of(sympy.Integer(target))
    v = c.ctx.values.reduce(kind, source.v, over, i, rows, zero_ties)
    v = c.ctx.values.as_unit(v, rows, target)
    order = list(range(1, len(v.shape)))
    order.insert(dim, 0)
    v = c.ctx.values.transpose(v, order)
    return Arr(list(v.shape), v)


def _one_index(c: Call, index: Arr, source: Arr, dim: int) -> Arr:
    """A full index that repeats one number along the columns, as 1-d."""
    if _others(c.x, dim) != _others(source, dim):
        raise NoRule("numbers that are placed into a part of the columns")
    if index.rank == 1:
        return index
    if numbers(index.dims) != numbers(source.dims):
        raise NoRule("an index that is narrower than the numbers it places")
    v = index.v
    while v.op in ("broadcast", "reshape") and v.args[0].set is not None:
        v = v.args[0]
    if index.axis != dim or v.shape not in ((), (1,) * len(v.shape)):
        raise NoRule("an index that differs from column to column")
    return Arr([index.home], c.ctx.values.reshape(v, ()))


def _others(x: Arr, dim: int) -> list[int]:
    """The columns of a tensor beside a dimension."""
    return [d for k, d in enumerate(x.dims) if k != dim and isinstance(d, int)]


@rule("index_put")
def _index_put(c: Call) -> Arr:
    """`x[i] = y`, or with `accumulate` x[i] += y where a number may come again."""
    indices, value = c.arg("indices"), c.ctx.cast(c.tensor("values"), c.x.elem)
    if len(indices) != 1 or not isinstance(indices[0], Arr):
        raise NoRule("an assignment by several index tensors")
    (index,) = indices
    if not c.arg("accumulate"):
        return _assigned(c, c.x, index, value)
    if index.elem == "i1":
        raise NoRule("sums into the rows of a mask")
    if index.home is not None and value.home is not None:
        c.ctx.sizes.unify(index.home, value.home)
    source = c.ctx.expand(value, [*index.dims, *c.x.dims[1:]])
    return c.ctx.binary("add", c.x, _scattered(c, source, index, 0, "sum"))


@rule("index_copy", "index_fill")
def _index_copy(c: Call) -> Arr:
    """Rows in the places of others, of which an index gives the numbers."""
    dim, index = c.dim(), c.tensor("index")
    value = c.arg("src" if c.op == "index_copy" else "value")
    if dim != 0:
        raise NoRule("columns copied to places that an index tells")
    return _assigned(c, c.x, index, c.ctx.cast(c.ctx.lift(value), c.x.elem))


@rule("bincount")
def _bincount(c: Call) -> Arr:
    """How often each number occurs, or the sum of its weights."""
    size = size_expr(c.arg("minlength"))
    if not c.ctx.sizes.is_rows(size):
        raise NoRule("bincount without the number of rows as minlength")
    # numbers beyond it would make the result longer; they are refused like any such index
    c.ctx.sizes.rename(expression(c.out.shape[0]), size)
    weights = c.optional("weights")
    if weights is None:
        weights = Arr(c.x.dims, c.ctx.values.const(1, "i64"))
    weights = c.ctx.cast(weights, elem_of(c.out.dtype))
    still = Arr(weights.dims, c.ctx.values.stop(weights.v))  # torch has no derivative of it
    return c.ctx.segment(still, c.x, 0, size, "sum")


@rule("scatter_reduce", "index_reduce")
def _scatter_reduce(c: Call) -> Arr:
    dim, index, source = c.dim(), c.tensor("index"), c.tensor("src")
    kind, include = c.arg("reduce"), c.arg("include_self")
    index = _one_index(c, index, source, dim)
    start = c.x.v.attrs.get("value") if c.x.v.op == "const" else None
    kind = {"sum": "sum", "prod": "mul", "mean": "mean", "amax": "max", "amin": "min"}.get(kind)
    if kind == "sum" and include:
        return c.ctx.binary("add", c.x, _scattered(c, source, index, dim, "sum"))
    if kind == "mul" and include and start == 1:
        return _scattered(c, source, index, dim, "mul")
    if kind in ("mean", "sum") and not include and start == 0:
        return _scattered(c, source, index, dim, kind)
    if kind in ("max", "min") and start is not None and c.x.elem in FLOATS:
        return _extremum(c, source, index, dim, kind, start)
    raise NoRule("scatter_reduce that takes the old values in")


def _extremum(c: Call, source: Arr, index: Arr, dim: int, kind: str, start: float) -> Arr:
    """The largest or smallest of each group, where all groups start from one number."""
    ctx, include = c.ctx, c.arg("include_self")
    beyond = "lt" if kind == "max" else "gt"
    if start == 0:
        best = _scattered(c, source, index, dim, kind, zero_ties=True)
        if not include:
            return best
        return ctx.where(ctx.compare(beyond, best, 0), 0.0, best, elem=best.elem)
    if (start if kind == "min" else -start) < torch.finfo(DTYPES[c.x.elem]).max:
        # a row may be as large, and would share its gradient with it
        raise NoRule(f"scatter_reduce that starts from {start}, neither 0 nor the extreme number")
    if dim:
        raise NoRule("scatter_reduce into columns that starts from another number than 0")
    best = _scattered(c, source, index, dim, kind)
    untouched = ctx.compare("eq", _counts(c, index, best), 0)
    if include:
        untouched = ctx.binary("add", untouched, ctx.compare(beyond, best, start))
    return ctx.where(untouched, start, best, elem=best.elem)


def _counts(c: Call, index: Arr, like: Arr) -> Arr:
    """How often the index names each row of `like`, to be compared with it."""
    ones = Arr([index.home], c.ctx.values.const(1.0, "f32"))
    rows = _reduced(c, ones, index, like.dims[0], 0, "sum")
    for k in range(1, like.rank):
        rows = c.ctx.unsqueeze(rows, k)
    return rows


@rule("setitem")
def _setitem(c: Call) -> None:
    base, index = c.arg("input"), c.arg("index")
    if not isinstance(base, Arr):
        raise NoRule("an assignment to an item of a value that is no tensor")
    value = c.ctx.cast(c.ctx.lift(c.arg("value")), base.elem)
    c.edits.append((c.form.arguments["input"], _assigned(c, base, index, value)))


def _assigned(c: Call, base: Arr, index: Any, value: Arr) -> Arr:
    if isinstance(index, Arr) and index.elem == "i1":
        return _assigned_mask(c, base, index, value)
    if isinstance(index, Arr) and isinstance(base.dims[0], Set) and index.rank == 1:
        return _assigned_rows(c, base, index, value)
    parts = index if isinstance(index, tuple) else (index,)
    for dim, i in enumerate(parts):
        whole = isinstance(i, slice) and i == slice(None, None, None)
        if whole:
            continue
        if not all(j == slice(None, None, None) for j in parts[dim + 1 :]):
            break
        return _assigned_columns(c, base, dim, i, value)
    else:
        return c.ctx.expand(value, base.dims)
    raise NoRule("an assignment to these items")


def _assigned_mask(c: Call, base: Arr, mask: Arr, value: Arr) -> Arr:
    if mask.rank > base.rank:
        raise NoRule("a mask with more dimensions than the tensor")
    full, columns = mask, base.rank - mask.rank
    for _ in range(columns):
        full = c.ctx.unsqueeze(full, full.rank)
    if value.home is None:  # the same for all rows
        if any(d != 1 for d in value.dims[: max(value.rank - columns, 0)]):
            raise NoRule("as many numbers as a mask chooses")
        return c.ctx.where(full, value, base)
    home = value.home
    if home is None or not isinstance(home.origin, Filter) or home.origin.mask is not mask.v:
        raise NoRule("an assignment of rows that were not chosen by the same mask")
    v = c.ctx.values
    put = v.make("scatter_parent", [value.v], base.home, value.v.shape, value.elem, subset=home)
    return c.ctx.where(full, Arr(base.dims, put), base)


def _assigned_rows(c: Call, base: Arr, index: Arr, value: Arr) -> Arr:
    """Rows by their numbers, as nonzero gives those of a mask: each once, so that a sum of what is
    written there is what is written last."""
    home = index.home
    if home is None or index.v.op != "parent" or index.v.args[0].op != "iota":
        raise NoRule("an assignment to rows of a set by numbers that nonzero has not given")
    assert isinstance(home.origin, Filter)
    if home.origin.set.find() is base.home:
        return _assigned_mask(c, base, Arr([base.home], home.origin.mask), value)
    value = c.ctx.expand(value, [home, *base.dims[1:]])
    put = _reduced(c, value, index, base.dims[0], 0, "sum")
    return c.ctx.where(c.ctx.compare("gt", _counts(c, index, put), 0), put, base)


def _assigned_columns(c: Call, base: Arr, dim: int, i: Any, value: Arr) -> Arr:
    size = base.dims[dim]
    if not isinstance(size, int):
        raise NoRule("an assignment to rows of a set by their number")
    if isinstance(i, int) and not isinstance(i, bool):
        i = i + size if i < 0 else i
        lo, hi = i, i + 1
        shape = [*base.dims[:dim], *base.dims[dim + 1 :]]
        piece = c.ctx.unsqueeze(c.ctx.expand(value, shape), dim)
    elif isinstance(i, slice) and i.step in (None, 1) and _is_constant(i):
        lo, hi, _ = i.indices(size)
        hi = max(lo, hi)
        if lo == hi:
            return base
        piece = c.ctx.expand(value, [*base.dims[:dim], hi - lo, *base.dims[dim + 1 :]])
    else:
        raise NoRule("an assignment to these columns")
    pieces = [piece]
    if lo > 0:
        pieces.insert(0, c.ctx.narrow(base, dim, 0, lo))
    if hi < size:
        pieces.append(c.ctx.narrow(base, dim, hi, size))
    return c.ctx.concat(pieces, dim)


def _is_constant(i: slice) -> bool:
    return all(b is None or isinstance(b, int) for b in (i.start, i.stop))
