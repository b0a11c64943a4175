"""Rules that read by index."""

from typing import Any

from ..errors import NoRule
from ..values.elements import INTEGERS
from ..values.indexed_columns import column_numbers, pick
from ..values.nodes import Set
from ..values.sizes import expression
from ..values.tensors import Arr, Sym, numbers
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
    if all(i.v.op == "table" and i.rank == 1 for _, i in tensors) and len(tensors) == 2:
        return _picked(c, x, index, tensors)
    if len(tensors) != 2 or not all(isinstance(i, Arr | slice) for i in index):
        raise NoRule("two index tensors beside other indices than slices, or more than two")
    for dim, i in enumerate(index):
        if isinstance(i, slice):
            x = _slice(c, x, dim, i)
    return pick(c.ctx, x, *tensors)


def _picked(c: Call, x: Arr, index: tuple[Any, ...], tensors: list[tuple[int, Arr]]) -> Arr:
    """`x[:, [0, 1], [2, 0]]`: columns at places that are known now."""
    (p, i), (q, j) = tensors
    places = list(zip(*(t.v.attrs["data"] for t in (i, j)), strict=False))
    whole = all(isinstance(k, Arr) or k == slice(None) for k in index)
    if not whole or q != p + 1 or not places or i.dims != j.dims:
        raise NoRule("two index tensors of constant size that are not beside each other")
    if not (isinstance(x.dims[p], int) and isinstance(x.dims[q], int)):
        raise NoRule("rows of a set at constant places")
    found = [c.ctx.select(c.ctx.select(x, p, a), p, b) for a, b in places]
    return c.ctx.concat([c.ctx.unsqueeze(y, p) for y in found], p)


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
    pad = c.ctx.compare("eq", c.ctx.unsqueeze(c.x, c.x.rank), padding)
    return c.ctx.where(pad, still, out)


@rule("gather", "take_along_dim")
def _gather(c: Call) -> Arr:
    """`x.gather(dim, i)`: whole rows where the index repeats one number along the columns; else,
    for each number that it has along the dimension, a sum of the columns chosen by comparison."""
    dim, i = c.arg("dim"), c.tensor("indices" if c.op == "take_along_dim" else "index")
    if dim is None:
        raise NoRule("numbers of a tensor made flat")
    dim = c.x.wrap(dim)
    if c.op == "take_along_dim" and _sizes_beside(i, dim) != _sizes_beside(c.x, dim):
        raise NoRule("take_along_dim of tensors that are broadcast")
    row = of_each_row(c, i, dim) if c.op == "gather" else None
    if row is not None and numbers(i.dims) == _sizes_beside(c.x, dim):
        return c.ctx.gather(c.x, dim, row)
    if c.x.elem == "i1":
        raise NoRule("booleans chosen by column")
    found = []
    for one in one_by_one(c, i, dim):
        columns = column_numbers(c.ctx, c.x, dim, one)
        if c.op == "gather":
            c.ctx.require_below(one, c.x.dims[dim])
        else:  # which begins anew behind the last, and in front of the first
            one = c.ctx.raw("mod", [one, c.ctx.lift(c.x.dims[dim], one.elem)], one.elem)
        chosen = c.ctx.where(c.ctx.compare("eq", one, columns), c.x, 0, elem=c.x.elem)
        found.append(c.ctx.total("sum", chosen, dim, True))
    return c.ctx.concat(found, dim)


def _sizes_beside(x: Arr, dim: int) -> list[Any]:
    return [d if isinstance(d, int) else None for k, d in enumerate(x.dims) if k != dim]


def of_each_row(c: Call, index: Arr, dim: int) -> Arr | None:
    """The one number of each row that an index along the rows repeats for all columns."""
    v = index.v
    if v.op == "const":
        v = c.ctx.values.const(v.attrs["value"], v.elem)
    while v.op in ("broadcast", "reshape") and v.args[0].set is not None:
        v = v.args[0]
    if index.axis != dim or index.merged or v.shape not in ((), (1,) * len(v.shape)):
        return None
    return Arr([index.home], c.ctx.values.reshape(v, ()))


_ONE_BY_ONE = 16
"""So many numbers of an index are compared with columns, one after the other."""


def one_by_one(c: Call, i: Arr, dim: int) -> list[Arr]:
    """An index of several columns for each row, as indices of one."""
    count = i.dims[dim] if i.rank == c.x.rank else 1
    if not isinstance(count, int) or count == 1:
        return [i]
    if not 0 < count <= _ONE_BY_ONE:
        raise NoRule(f"{count} columns chosen for each row")
    return [c.ctx.narrow(i, dim, k, k + 1) for k in range(count)]
