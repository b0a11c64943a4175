"""Rules that only move numbers: views, permutations and splits (joins are in `joins.py`)."""

import itertools
from typing import Any

import sympy

from ..errors import NoRule
from ..values.sizes import example, expression
from ..values.tensors import Arr, Sym
from ..values.views import part, view
from .registry import Call, rule

_DIAGONAL = 64
"""So many numbers of a matrix are picked one by one."""


@rule("size", "shape")
def _size(c: Call) -> tuple[int | Sym, ...]:
    """All dimensions as one value; Dynamo makes those that are asked for one by one numbers."""
    c.seen_in_result("input")
    sizes = [expression(d) for d in c.example]
    return tuple(int(e) if e.is_Integer else Sym(e) for e in sizes)


@rule("view", "reshape", "flatten", "ravel", "squeeze", "unflatten", "view_as", "reshape_as")
def _view(c: Call) -> Arr:
    c.seen_in_result("size", "shape", "start_dim", "end_dim", "dim", "sizes", "other")
    return view(c.ctx, c.x, c.out)


@rule("unsqueeze")
def _unsqueeze(c: Call) -> Arr:
    if c.x.merged:
        c.seen_in_result("dim")
        return view(c.ctx, c.x, c.out)
    dim = c.arg("dim")
    return c.ctx.unsqueeze(c.x, dim % (c.x.rank + 1))


@rule("transpose")
def _transpose(c: Call) -> Arr:
    if c.x.rank == 0:
        c.seen_in_result("dim0", "dim1")
        return c.x
    order = list(range(c.x.rank))
    i, j = c.dim("dim0"), c.dim("dim1")
    order[i], order[j] = order[j], order[i]
    return c.ctx.permute(c.x, order)


@rule("t", "T", "mT")
def _t(c: Call) -> Arr:
    """`T` reverses all dimensions, the others swap the last two."""
    if c.x.rank < 2:
        return c.x
    rest = range(c.x.rank - 2)
    last = [c.x.rank - 1, c.x.rank - 2]
    return c.ctx.permute(c.x, [*last, *reversed(rest)] if c.op == "T" else [*rest, *last])


@rule("permute")
def _permute(c: Call) -> Arr:
    return c.ctx.permute(c.x, c.arg("dims"))


@rule("movedim")
def _movedim(c: Call) -> Arr:
    moves = (c.arg("source"), c.arg("destination"))
    source, target = ([d] if isinstance(d, int) else d for d in moves)
    moved = dict(zip(map(c.x.wrap, target), map(c.x.wrap, source), strict=True))
    rest = (i for i in range(c.x.rank) if i not in moved.values())
    return c.ctx.permute(c.x, [moved[i] if i in moved else next(rest) for i in range(c.x.rank)])


@rule("expand", "expand_as", "broadcast_to", "repeat", "tile")
def _expand(c: Call) -> Arr:
    c.seen_in_result("size", "other", "repeats", "dims")
    return c.ctx.expand(c.x, c.ctx.sizes.dims(c.out), tile=c.op in ("repeat", "tile"))


@rule("tensor_split", "chunk", "split", "split_with_sizes")
def _split(c: Call) -> tuple[Arr, ...]:
    c.seen_in_result("chunks", "sections", "split_size", "split_sizes")
    dim = c.dim()
    sizes = [expression(piece.shape[dim]) for piece in c.example]
    if isinstance(cuts := c.arg("indices", None), tuple | list):
        ends = [x.expr if isinstance(x, Sym) else sympy.Integer(x) for x in cuts]
        ends.append(expression(example(c.form.arguments["input"]).shape[dim]))
    else:
        ends = list(itertools.accumulate(sizes))
    starts = [sympy.Integer(0), *ends]
    return tuple(
        _between(c, dim, lo, hi, size) for lo, hi, size in zip(starts, ends, sizes, strict=False)
    )


def _between(c: Call, dim: int, lo: sympy.Expr, hi: sympy.Expr, size: sympy.Expr) -> Arr:
    """Positions lo .. hi - 1 of a dimension of the first argument, `size` in number."""
    if not isinstance(c.x.dims[dim], int):
        return part(c.ctx, c.x, dim, lo, hi, size)
    if not (lo.is_Integer and hi.is_Integer):
        raise NoRule("columns from or to a symbolic position")
    return c.ctx.narrow(c.x, dim, int(lo), int(hi))


@rule("unbind")
def _unbind(c: Call) -> tuple[Arr, ...]:
    dim = c.dim()
    size = c.x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("the rows of a set one by one")
    return tuple(c.ctx.select(c.x, dim, k) for k in range(size))


@rule("select")
def _select(c: Call) -> Arr:
    dim, k = c.dim(), c.arg("index")
    if not isinstance(k, int):
        raise NoRule("select at a symbolic position")
    return c.ctx.select(c.x, dim, k)


@rule("narrow")
def _narrow(c: Call) -> Arr:
    dim, start = c.dim(), c.arg("start")
    c.seen_in_result("length")
    if isinstance(start, Arr):
        raise NoRule("a start that is a tensor")
    lo = start.expr if isinstance(start, Sym) else sympy.Integer(start)
    if lo.is_negative:
        lo += expression(example(c.form.arguments["input"]).shape[dim])
    size = expression(c.out.shape[dim])
    return _between(c, dim, lo, lo + size, size)


@rule("flip", "fliplr", "flipud")
def _flip(c: Call) -> Arr:
    x = c.x
    for d in {"fliplr": [1], "flipud": [0]}.get(c.op) or c.arg("dims"):
        d = x.wrap(d)
        if not isinstance(x.dims[d], int):
            raise NoRule("the rows of a set in reverse")
        if x.dims[d] == 0:
            continue
        column = x.column(d)
        vs = [c.ctx.values.slice(x.v, column, j, j + 1) for j in reversed(range(x.v.shape[column]))]
        x = Arr(x.dims, c.ctx.values.concat(vs, column))
    return x


@rule("diagonal")
def _diagonal(c: Call) -> Arr:
    """The numbers of each matrix whose column is a given number more than their row."""
    x, offset = c.x, c.arg("offset")
    first, second = (x.wrap(c.arg(n)) for n in ("dim1", "dim2"))
    rest = [i for i in range(x.rank) if i not in (first, second)]
    x = c.ctx.permute(x, [*rest, first, second])
    rows, columns = x.dims[-2:]
    if not (isinstance(rows, int) and isinstance(columns, int) and isinstance(offset, int)):
        raise NoRule("a diagonal of the rows of a set")
    places = [i for i in range(rows) if 0 <= i + offset < columns]
    if not 0 < len(places) <= _DIAGONAL:
        raise NoRule(f"a diagonal of {len(places)} numbers")
    last = len(rest)
    found = [c.ctx.select(c.ctx.select(x, last, i), last, i + offset) for i in places]
    return c.ctx.concat([c.ctx.unsqueeze(y, last) for y in found], last)


def _one(x: Any) -> Any:
    """The number of a list of one."""
    return x[0] if isinstance(x, tuple | list) and len(x) == 1 else x


@rule("roll")
def _roll(c: Call) -> Arr:
    x, shift, dim = c.x, _one(c.arg("shifts")), _one(c.arg("dims"))
    if not (isinstance(shift, int) and isinstance(dim, int)):
        raise NoRule("roll over several dimensions")
    dim = x.wrap(dim)
    size = x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("the rows of a set rolled")
    cut = (-shift) % size
    if cut == 0:
        return x
    return c.ctx.concat([c.ctx.narrow(x, dim, cut, size), c.ctx.narrow(x, dim, 0, cut)], dim)
