"""Rules that only move numbers: views, permutations, joins and splits."""

import math
from typing import Any

import sympy
import torch

from ..errors import NoRule
from ..sizes import example, expression
from ..tensors import Arr, Dim, Merge, Sym, elem_of, numbers
from .indexing import part
from .registry import Call, rule


@rule("size")
def _size(c: Call) -> tuple[int | Sym, ...]:
    """All dimensions as one value; Dynamo makes those that are asked for one by one numbers."""
    sizes = [expression(d) for d in c.example]
    return tuple(int(e) if e.is_Integer else Sym(e) for e in sizes)


@rule("view", "reshape", "flatten", "squeeze", "unflatten", "view_as", "reshape_as")
def _view(c: Call) -> Arr:
    if c.name == "view" and c.args[1:] and isinstance(c.args[1], torch.dtype):
        raise NoRule("a view as another dtype")
    return view(c, c.x, c.out)


def view(c: Call, x: Arr, like: torch.Tensor) -> Arr:
    """x in the shape of `like`. Legal when the numbers before the row axis stay as many; a
    dimension of k times the set keeps k apart (a merge)."""
    home, values = x.home, c.ctx.values
    if home is None:
        dims = c.ctx.sizes.dims(like)
        shape = [d for d in dims if isinstance(d, int)]
        if len(shape) != len(dims):
            raise NoRule("a constant size viewed as the rows of a set")
        return Arr(list(dims), values.reshape(x.v, shape))
    wanted, position, k = _row_position(c, home.expr, like)
    axis = x.axis
    before = math.prod(numbers(x.dims[: axis + 1]))  # a merge counts its k
    left, right = wanted[:position], wanted[position + 1 :]
    if math.prod(left) * k != before:
        raise NoRule("a view that mixes the rows of a set with columns")
    dims: list[Dim] = [*left, home if k == 1 else Merge(k, home), *right]
    return Arr(dims, values.reshape(x.v, numbers(dims)))


def _row_position(c: Call, rows: sympy.Expr, like: torch.Tensor) -> tuple[list[int], int, int]:
    """The wanted shape (the row axis as -1), where the row axis is, and its factor."""
    sizes = c.ctx.sizes
    wanted: list[int] = []
    found: list[tuple[int, int]] = []
    rows = sizes.canonical(rows)
    for i, d in enumerate(like.shape):
        e = sizes.canonical(expression(d))
        ratio = sympy.simplify(e / rows) if e.free_symbols else None
        if ratio is not None and ratio.is_Integer:
            found.append((i, int(ratio)))
            wanted.append(-1)
        elif e.free_symbols and sizes.is_rows(e):
            raise NoRule(f"a view: {e} is no multiple of the {rows} rows")
        else:
            wanted.append(int(d))
    if len(found) != 1:
        raise NoRule("a view that merges the rows of a set with columns")
    return wanted, *found[0]


@rule("unsqueeze")
def _unsqueeze(c: Call) -> Arr:
    if c.x.merged:
        return view(c, c.x, c.out)
    dim = c.arg(1, "dim")
    return c.ctx.unsqueeze(c.x, dim % (c.x.rank + 1))


@rule("transpose", "swapaxes", "swapdims")
def _transpose(c: Call) -> Arr:
    order = list(range(c.x.rank))
    i, j = c.x.wrap(c.arg(1, "dim0")), c.x.wrap(c.arg(2, "dim1"))
    order[i], order[j] = order[j], order[i]
    return c.ctx.permute(c.x, order)


@rule("t", "T", "mT")
def _t(c: Call) -> Arr:
    return c.x if c.x.rank < 2 else c.ctx.permute(c.x, _swapped(c.x.rank))


def _swapped(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


@rule("getattr")
def _getattr(c: Call) -> Any:
    name = c.args[1]
    if name in ("T", "mT"):
        return _t(c)
    if name == "shape":
        return _size(c)
    raise NoRule(f"the attribute .{name}")


@rule("permute")
def _permute(c: Call) -> Arr:
    return c.ctx.permute(c.x, c.dims_from(1, "dims"))


@rule("movedim", "moveaxis")
def _movedim(c: Call) -> Arr:
    source, target = c.arg(1, "source"), c.arg(2, "destination")
    if not isinstance(source, int):
        raise NoRule("several dimensions moved at once")
    order = [i for i in range(c.x.rank) if i != c.x.wrap(source)]
    order.insert(c.x.wrap(target), c.x.wrap(source))
    return c.ctx.permute(c.x, order)


@rule("expand", "expand_as", "broadcast_to")
def _expand(c: Call) -> Arr:
    return c.ctx.expand(c.x, c.ctx.sizes.dims(c.out))


@rule("repeat", "tile")
def _repeat(c: Call) -> Arr:
    return c.ctx.expand(c.x, c.ctx.sizes.dims(c.out), tile=True)


@rule("cat", "concat", "concatenate")
def _cat(c: Call) -> Arr:
    # torch ignores empty 1-d tensors here, whatever the rank of the others
    xs = [x for x in c.arg(0, "tensors") if not (x.rank == 1 and x.dims[0] == 0)]
    dim = xs[0].wrap(c.arg(1, "dim", 0))
    filled = [x for x in xs if x.dims[dim] != 0]
    return c.ctx.cast(c.ctx.concat(filled or xs, dim), elem_of(c.out.dtype))


@rule("stack")
def _stack(c: Call) -> Arr:
    xs = c.arg(0, "tensors")
    dim = c.arg(1, "dim", 0) % (xs[0].rank + 1)
    return c.ctx.concat([c.ctx.unsqueeze(x, dim) for x in xs], dim)


@rule("tensor_split", "chunk", "split", "split_with_sizes", "unsafe_chunk")
def _split(c: Call) -> tuple[Arr, ...]:
    dim = c.x.wrap(c.arg(2, "dim", 0))
    out, start = [], sympy.Integer(0)
    for piece in c.example:
        end = start + expression(piece.shape[dim])
        out.append(_between(c, dim, start, end))
        start = end
    return tuple(out)


def _between(c: Call, dim: int, lo: sympy.Expr, hi: sympy.Expr) -> Arr:
    """Positions lo .. hi - 1 of a dimension of the first argument."""
    if not isinstance(c.x.dims[dim], int):
        return part(c, c.x, dim, lo, hi)
    if not (lo.is_Integer and hi.is_Integer):
        raise NoRule("columns from or to a symbolic position")
    return c.ctx.narrow(c.x, dim, int(lo), int(hi))


@rule("unbind")
def _unbind(c: Call) -> tuple[Arr, ...]:
    dim = c.x.wrap(c.arg(1, "dim", 0))
    size = c.x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("the rows of a set one by one")
    return tuple(c.ctx.select(c.x, dim, k) for k in range(size))


@rule("select")
def _select(c: Call) -> Arr:
    dim, k = c.arg(1, "dim"), c.arg(2, "index")
    if not isinstance(k, int):
        raise NoRule("select at a symbolic position")
    return c.ctx.select(c.x, dim, k)


@rule("narrow")
def _narrow(c: Call) -> Arr:
    dim, start = c.x.wrap(c.arg(1, "dim")), c.arg(2, "start")
    if isinstance(start, Arr):
        raise NoRule("a start that is a tensor")
    lo = start.expr if isinstance(start, Sym) else sympy.Integer(start)
    if lo.is_negative:
        lo += expression(example(c.node.args[0]).shape[dim])
    return _between(c, dim, lo, lo + expression(c.out.shape[dim]))


@rule("flip")
def _flip(c: Call) -> Arr:
    x = c.x
    for d in c.dims_from(1, "dims"):
        d = x.wrap(d)
        if not isinstance(x.dims[d], int):
            raise NoRule("the rows of a set in reverse")
        column = x.column(d)
        vs = [c.ctx.values.slice(x.v, column, j, j + 1) for j in reversed(range(x.v.shape[column]))]
        x = Arr(x.dims, c.ctx.values.concat(vs, column))
    return x


@rule("roll")
def _roll(c: Call) -> Arr:
    x, shift, dim = c.x, c.arg(1, "shifts"), c.arg(2, "dims", None)
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
