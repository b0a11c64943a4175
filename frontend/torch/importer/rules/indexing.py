"""Rules that read by index."""

from typing import Any

from ..errors import NoRule
from ..values.elements import INTEGERS
from ..values.indexed_columns import column_numbers, pick
from ..values.nodes import Set
from ..values.sizes import expression
from ..values.tensors import Arr, Sym
from ..values.views import bounds, part, spelled_out
from .constants import filled
from .registry import Call, rule


@rule("getitem")
def _getitem(c: Call) -> Any:
    x, index = c.arg("input"), c.arg("index")
    if isinstance(x, tuple | list):
        return x[index]
    if not isinstance(x, Arr):
        raise NoRule("an item of a value that is no tensor")
    return getitem(c, x, index if isinstance(index, tuple) else (index,))


def getitem(c: Call, x: Arr, index: tuple[Any, ...]) -> Arr:
    """Numbers first, which leave out their dimension wherever tensors stand, as in torch."""
    index = spelled_out(index, x.rank)
    for k in reversed(range(len(index))):
        if isinstance(index[k], int) and not isinstance(index[k], bool):
            x = c.ctx.select(x, sum(i is not None for i in index[:k]), index[k])
            index = (*index[:k], *index[k + 1 :])
    if sum(isinstance(i, Arr | list | tuple) for i in index) > 1:
        return _paired(c, x, index)
    dim = 0
    for i in index:
        if i is None:
            x = c.ctx.unsqueeze(x, dim)
        elif isinstance(i, slice):
            x = _slice(c, x, dim, i)
        elif isinstance(i, Arr):
            x = _by_tensor(c, x, dim, i)
        elif isinstance(i, list | tuple) and all(type(j) is int for j in i):
            literal = Arr([len(i)], c.ctx.values.literal(tuple(i), (len(i),), "i64"))
            x = c.ctx.gather(x, dim, literal)
        else:
            raise NoRule(f"an index of type {type(i).__name__}")
        dim += 1
    return x


def _paired(c: Call, x: Arr, index: tuple[Any, ...]) -> Arr:
    """`x[i, j]`: two index tensors, which choose one number of two dimensions for each row."""
    tensors = [(dim, i) for dim, i in enumerate(index) if isinstance(i, Arr)]
    if len(tensors) != 2 or not all(isinstance(i, Arr | slice) for i in index):
        raise NoRule("two index tensors beside other indices than slices, or more than two")
    for dim, i in enumerate(index):
        if isinstance(i, slice):
            x = _slice(c, x, dim, i)
    return pick(c.ctx, x, *tensors)


def _by_tensor(c: Call, x: Arr, dim: int, i: Arr) -> Arr:
    if i.elem == "i1":
        if dim != x.axis:
            raise NoRule("a mask over columns (a result of data-dependent width)")
        return c.ctx.keep(x, i, expression(c.out.shape[dim]))
    if i.rank == 0:
        raise NoRule("a 0-d index tensor")
    return c.ctx.gather(x, dim, i)


def _slice(c: Call, x: Arr, dim: int, s: slice) -> Arr:
    size = x.dims[dim]
    if s.start in (None, 0) and s.stop is None and s.step in (None, 1):
        return x
    if isinstance(size, int):
        if any(isinstance(b, Sym | Arr) for b in (s.start, s.stop, s.step)):
            raise NoRule("a slice with symbolic bounds of a constant dimension")
        r = range(*s.indices(size))
        return c.ctx.narrow(x, dim, r.start, r.stop, r.step)
    if not isinstance(size, Set) or s.step not in (None, 1):
        raise NoRule("a slice of grouped rows, or one with a step, of the rows of a set")
    found = expression(c.out.shape[dim])
    c.ctx.sizes.know_least(found)
    return part(c.ctx, x, dim, *bounds(s, size), found)


@rule("index_select")
def _index_select(c: Call) -> Arr:
    index = c.tensor("index")
    if index.dims == [0]:
        c.seen_in_result("dim")
        return filled(c, 0)
    return c.ctx.gather(c.x, c.dim(), index)


@rule("masked_select")
def _masked_select(c: Call) -> Arr:
    """`x[mask]` of one number a row."""
    if c.x.rank != 1 or c.x.axis != 0:
        raise NoRule("a mask over columns (a result of data-dependent width)")
    return c.ctx.keep(c.x, c.tensor("mask"), expression(c.out.shape[0]))


@rule("nonzero", "argwhere")
def _nonzero(c: Call) -> Any:
    """The numbers of the rows where a mask is true: with `as_tuple` alone, else as a column."""
    c.seen_in_result("as_tuple")
    size = (c.example[0] if isinstance(c.example, tuple | list) else c.out).shape[0]
    rows = c.ctx.row_numbers(c.x, expression(size))
    return (rows,) if isinstance(c.example, tuple | list) else c.ctx.unsqueeze(rows, 1)


@rule("embedding")
def _embedding(c: Call) -> Arr:
    table, padding = c.tensor("weight"), c.arg("padding_idx")
    if c.x.elem not in INTEGERS or table.rank != 2:
        raise NoRule("an embedding without integers, or without a table of rows x columns")
    c.seen_in_result("norm_type")  # of max_norm
    out = c.ctx.gather(table, 0, c.x)
    if padding is None:
        return out
    if padding < 0:
        rows = table.dims[0]
        padding = rows + padding if isinstance(rows, int) else Sym(rows.find().expr + padding)
    # the padding row gets no gradient
    still = c.ctx.flat(out)
    pad = c.ctx.compare("eq", c.ctx.unsqueeze(c.x, 1), padding)
    return c.ctx.where(pad, still, out)


@rule("gather")
def _gather(c: Call) -> Arr:
    """`x.gather(dim, i)` with one index a row: a sum of the columns chosen by comparison."""
    dim, i = c.dim(), c.tensor("index")
    columns = column_numbers(c.ctx, c.x, dim, i)
    c.ctx.require_below(i, c.x.dims[dim])
    if c.x.elem == "i1":
        raise NoRule("booleans chosen by column")
    chosen = c.ctx.where(c.ctx.compare("eq", i, columns), c.x, 0, elem=c.x.elem)
    return c.ctx.total("sum", chosen, dim, True)
