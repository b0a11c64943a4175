"""Rules that add to, or reduce into, the places that an index tells."""

import torch

from ..errors import NoRule
from ..values.elements import FLOATS
from ..values.indexed_columns import column_numbers
from ..values.sizes import expression
from ..values.tensors import DTYPES, Arr, elem_of, numbers
from .indexing import of_each_row, one_by_one
from .registry import Call, rule, size_expr


@rule("scatter")
def _scatter(c: Call) -> Arr:
    """`x.scatter(dim, i, value)` of one column a row, as one-hot code does, or of one number."""
    dim, i = c.dim(), c.tensor("index")
    value = c.arg("src") if "src" in c.arguments else c.arg("value")
    if isinstance(value, Arr) and value.rank and numbers(value.dims) != numbers(i.dims):
        raise NoRule("numbers of another shape than the index that places them")
    x, places = c.x, one_by_one(c, i, dim)
    if len(places) > 1 and isinstance(value, Arr):
        raise NoRule("several numbers placed in each row (which of two at one place is undefined)")
    for one in places:
        columns = column_numbers(c.ctx, x, dim, one)
        c.ctx.require_below(one, x.dims[dim])
        x = c.ctx.where(c.ctx.compare("eq", one, columns), value, x, elem=x.elem)
    return x


@rule("index_add", "scatter_add")
def _index_add(c: Call) -> Arr:
    dim, index, source = c.dim(), c.tensor("index"), c.tensor("src")
    scale = c.arg("alpha", 1)
    if 0 in index.dims:
        return c.x
    if scale != 1:
        source = c.ctx.binary("mul", source, scale)
    index = _one_index(c, index, source, dim)
    added = c.ctx.scattered(c.x, source, index, dim, "sum")
    return c.ctx.binary("add", c.x, added)


def _one_index(c: Call, index: Arr, source: Arr, dim: int) -> Arr:
    """A full index that repeats one number along the columns, as 1-d."""
    if _others(c.x, dim) != _others(source, dim):
        raise NoRule("numbers that are placed into a part of the columns")
    if index.rank == 1:
        return index
    if numbers(index.dims) != numbers(source.dims):
        raise NoRule("an index that is narrower than the numbers it places")
    one = of_each_row(c, index, dim)
    if one is None:
        raise NoRule("an index that differs from column to column")
    return one


def _others(x: Arr, dim: int) -> list[int]:
    """The columns of a tensor beside a dimension."""
    return [d for k, d in enumerate(x.dims) if k != dim and isinstance(d, int)]


@rule("bincount", counts="minlength")
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
    still = c.ctx.flat(weights)  # torch has no derivative of it
    return c.ctx.segment(still, c.x, 0, size, "sum")


@rule("scatter_reduce", "index_reduce")
def _scatter_reduce(c: Call) -> Arr:
    dim, index, source = c.dim(), c.tensor("index"), c.tensor("src")
    kind, include = c.arg("reduce"), c.arg("include_self")
    index = _one_index(c, index, source, dim)
    start = c.x.v.attrs.get("value") if c.x.v.op == "const" else None
    kind = {"sum": "sum", "prod": "mul", "mean": "mean", "amax": "max", "amin": "min"}.get(kind)
    if kind == "sum" and include:
        return c.ctx.binary("add", c.x, c.ctx.scattered(c.x, source, index, dim, "sum"))
    if kind == "mul" and include and start == 1:
        return c.ctx.scattered(c.x, source, index, dim, "mul")
    if kind in ("mean", "sum") and not include and start == 0:
        return c.ctx.scattered(c.x, source, index, dim, kind)
    if kind == "mean" and include and dim == 0 and c.x.elem in FLOATS:
        total = c.ctx.binary("add", c.x, c.ctx.scattered(c.x, source, index, dim, "sum"))
        return c.ctx.binary("div", total, c.ctx.binary("add", c.ctx.counts(index, c.x), 1.0))
    of_rows = start == 0 and not include  # of integers too
    if kind in ("max", "min") and start is not None and (c.x.elem in FLOATS or of_rows):
        return _extremum(c, source, index, dim, kind, start)
    raise NoRule("scatter_reduce that takes the old values in")


def _extremum(c: Call, source: Arr, index: Arr, dim: int, kind: str, start: float) -> Arr:
    """The largest or smallest of each group, where all groups start from one number."""
    ctx, include = c.ctx, c.arg("include_self")
    beyond = "lt" if kind == "max" else "gt"
    if start == 0:
        best = c.ctx.scattered(c.x, source, index, dim, kind, zero_ties=True)
        if not include:
            return best
        return ctx.where(ctx.compare(beyond, best, 0), 0.0, best, elem=best.elem)
    if (start if kind == "min" else -start) < torch.finfo(DTYPES[c.x.elem]).max:
        # a row may be as large, and would share its gradient with it
        raise NoRule(f"scatter_reduce that starts from {start}, neither 0 nor the extreme number")
    if dim:
        raise NoRule("scatter_reduce into columns that starts from another number than 0")
    best = c.ctx.scattered(c.x, source, index, dim, kind)
    untouched = ctx.compare("eq", c.ctx.counts(index, best), 0)
    if include:
        untouched = ctx.binary("add", untouched, ctx.compare(beyond, best, start))
    return ctx.where(untouched, start, best, elem=best.elem)
