"""Rules that read and write by index."""

from typing import Any

import sympy

from ..errors import NoRule
from ..sizes import expression
from ..tensors import Arr, Sym
from ..values import Filter, Set, Union
from .registry import Call, rule


@rule("getitem")
def _getitem(c: Call) -> Any:
    x, index = c.args
    if isinstance(x, tuple | list):
        return x[index]
    if not isinstance(x, Arr):
        raise NoRule("an item of a value that is no tensor")
    return getitem(c, x, index if isinstance(index, tuple) else (index,))


def getitem(c: Call, x: Arr, index: tuple[Any, ...]) -> Arr:
    dim = 0
    for i in index:
        if i is None:
            x = c.ctx.unsqueeze(x, dim)
            dim += 1
        elif i is Ellipsis:
            dim = x.rank - sum(j is not None for j in index[index.index(Ellipsis) + 1 :])
        elif isinstance(i, slice):
            x = _slice(c, x, dim, i)
            dim += 1
        elif isinstance(i, int) and not isinstance(i, bool):
            x = c.ctx.select(x, dim, i)
        elif isinstance(i, Arr):
            if sum(isinstance(j, Arr | int) for j in index) > 1:
                x = _paired(c, x, dim, i, index)
                return x
            x = _by_tensor(c, x, dim, i)
            dim += 1
        elif isinstance(i, list | tuple) and all(isinstance(j, int) for j in i):
            literal = Arr([len(i)], c.ctx.values.literal(tuple(i), (len(i),), "i64"))
            x = c.ctx.gather(x, dim, literal)
            dim += 1
        else:
            raise NoRule(f"an index of type {type(i).__name__}")
    return x


def _paired(c: Call, x: Arr, dim: int, i: Arr, index: tuple[Any, ...]) -> Arr:
    """`x[i, 0]`: an index tensor beside constants, which name one column each."""
    rest = index[index.index(i) + 1 :]
    if dim != 0 or i.elem == "i1" or not all(isinstance(j, int) for j in rest):
        raise NoRule("several index tensors at once")
    for j in reversed(range(len(rest))):
        x = c.ctx.select(x, 1 + j, rest[j])
    return _by_tensor(c, x, 0, i)


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
    return part(c, x, dim, _bound(s.start, sympy.Integer(0)), _bound(s.stop, size.find().expr))


def part(c: Call, x: Arr, dim: int, lo: sympy.Expr, hi: sympy.Expr) -> Arr:
    """The rows lo .. hi - 1 of a tensor whose dimension `dim` is a set: one part of a union of
    sets, or all rows."""
    canonical = c.ctx.sizes.canonical
    union = c.ctx.rows_of(x, dim)[1]
    if isinstance(union.origin, Union):
        start = sympy.Integer(0)
        for k, part in enumerate(union.origin.parts):
            end = start + part.find().expr
            if _equal(canonical(start), canonical(lo)) and _equal(canonical(end), canonical(hi)):
                v = c.ctx.values.part(x.v, union, k)
                return Arr([*x.dims[:dim], part.find(), *x.dims[dim + 1 :]], v)
            start = end
    if _equal(canonical(lo), sympy.Integer(0)) and _equal(canonical(hi), canonical(union.expr)):
        return x
    raise NoRule("a slice of the rows of a set that is not one of the parts it was joined from")


def _bound(b: Any, default: sympy.Expr) -> sympy.Expr:
    if b is None:
        return default
    return b.expr if isinstance(b, Sym) else sympy.Integer(b)


def _equal(a: sympy.Expr, b: sympy.Expr) -> bool:
    return a == b or sympy.simplify(a - b) == 0


@rule("index_select", "_new_index_select")  # the second is PyG's own torch.index_select
def _index_select(c: Call) -> Arr:
    return c.ctx.gather(c.x, c.arg(1, "dim"), c.tensor(2, "index"))


@rule("nonzero", "argwhere")
def _nonzero(c: Call) -> Any:
    """The numbers of the rows where a mask is true: with `as_tuple` alone, else as a column."""
    rows = c.ctx.unsqueeze(row_numbers(c, c.example), 1)
    return (c.ctx.select(rows, 1, 0),) if isinstance(c.example, tuple | list) else rows


def row_numbers(c: Call, example: Any) -> Arr:
    """The numbers, in order, of the rows where the call's first argument is true."""
    mask = c.x if c.x.elem == "i1" else c.ctx.compare("ne", c.x, 0)
    if mask.rank != 1 or mask.home is None:
        raise NoRule("the positions in a tensor that is not one number a row")
    size = (example[0] if isinstance(example, tuple | list) else example).shape[0]
    numbers = Arr([mask.home], c.ctx.values.make("iota", [], mask.home, (), "i64"))
    return c.ctx.keep(numbers, mask, expression(size))


@rule("embedding")
def _embedding(c: Call) -> Arr:
    c.refuse("max_norm")
    if c.arg(3, "max_norm", None) is not None:
        raise NoRule("max_norm, which edits the weight")
    if c.arg(5, "scale_grad_by_freq", False):
        raise NoRule("scale_grad_by_freq")
    table = c.tensor(1, "weight")
    padding = c.arg(2, "padding_idx", None)
    out = c.ctx.gather(table, 0, c.x)
    if padding is None or padding < 0:
        return out
    # the padding row gets no gradient
    still = Arr(out.dims, c.ctx.values.stop(out.v))
    pad = c.ctx.compare("eq", c.ctx.unsqueeze(c.x, 1), padding)
    return c.ctx.where(pad, still, out)


@rule("gather")
def _gather(c: Call) -> Arr:
    """`x.gather(dim, i)` with one index a row: a sum of the columns chosen by comparison."""
    dim, i = c.x.wrap(c.arg(1, "dim")), c.tensor(2, "index")
    columns = _column_numbers(c, c.x, dim, i)
    c.ctx.require_below(i, c.x.dims[dim])
    chosen = c.ctx.where(c.ctx.compare("eq", i, columns), c.x, 0, elem=c.x.elem)
    return c.ctx.total("sum", chosen, dim, True)


def _column_numbers(c: Call, x: Arr, dim: int, i: Arr) -> Arr:
    size = x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("an index tensor with as many dimensions as the tensor it reads")
    if i.rank != x.rank or i.dims[dim] != 1:
        raise NoRule("several columns chosen for each row")
    shape = [1] * x.rank
    shape[dim] = size
    values = c.ctx.values
    return Arr(list(shape), values.reshape(values.count_up(size, i.elem), shape))


@rule("scatter")
def _scatter(c: Call) -> Arr:
    """`x.scatter(dim, i, value)` of one column a row, as one-hot code does."""
    c.refuse("reduce")
    dim, i = c.x.wrap(c.arg(1, "dim")), c.tensor(2, "index")
    value = c.arg(3, "value") if "src" not in c.kwargs else c.kwargs["src"]
    if isinstance(value, Arr) and value.rank and value.dims[dim] != 1:
        raise NoRule("several columns written for each row")
    columns = _column_numbers(c, c.x, dim, i)
    c.ctx.require_below(i, c.x.dims[dim])
    return c.ctx.where(c.ctx.compare("eq", i, columns), value, c.x, elem=c.x.elem)


@rule("index_add", "scatter_add")
def _index_add(c: Call) -> Arr:
    dim, index = c.x.wrap(c.arg(1, "dim")), c.tensor(2, "index")
    source = c.tensor(3, "source" if c.name.startswith("index") else "src")
    scale = c.kwargs.get("alpha", 1)
    if scale != 1:
        source = c.ctx.binary("mul", source, scale)
    index = _one_index(c, index, dim)
    added = _scattered(c, source, index, dim, "sum")
    return c.ctx.binary("add", c.x, added)


def _scattered(
    c: Call, source: Arr, index: Arr, dim: int, kind: str, zero_ties: bool = False
) -> Arr:
    """A reduction into the rows of the tensor that the call edits."""
    target = c.x.dims[dim]
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


def _one_index(c: Call, index: Arr, dim: int) -> Arr:
    """A full index that repeats one number along the columns, as 1-d."""
    if index.rank == 1:
        return index
    v = index.v
    while v.op in ("broadcast", "reshape") and v.args[0].set is not None:
        v = v.args[0]
    if index.axis != dim or v.shape not in ((), (1,) * len(v.shape)):
        raise NoRule("an index that differs from column to column")
    return Arr([index.home], c.ctx.values.reshape(v, ()))


@rule("scatter_reduce", "index_reduce")
def _scatter_reduce(c: Call) -> Arr:
    dim, index = c.x.wrap(c.arg(1, "dim")), c.tensor(2, "index")
    source, kind = c.tensor(3, "src"), c.arg(4, "reduce")
    include = c.arg(5, "include_self", True)
    index = _one_index(c, index, dim)
    start = c.x.v.attrs.get("value") if c.x.v.op == "const" else None
    kind = {"sum": "sum", "prod": "mul", "mean": "mean", "amax": "max", "amin": "min"}.get(kind)
    if kind == "sum" and include:
        return c.ctx.binary("add", c.x, _scattered(c, source, index, dim, "sum"))
    if kind == "mul" and include and start == 1:
        return _scattered(c, source, index, dim, "mul")
    if kind in ("max", "min", "mean", "sum") and not include and start == 0:
        ties = kind in ("max", "min")
        return _scattered(c, source, index, dim, kind, zero_ties=ties)
    raise NoRule("scatter_reduce that takes the old values in")


@rule("setitem")
def _setitem(c: Call) -> None:
    base, index, value = c.args
    if not isinstance(base, Arr):
        raise NoRule("an assignment to an item of a value that is no tensor")
    value = c.ctx.cast(c.ctx.lift(value), base.elem)
    c.edits.append((c.node.args[0], _assigned(c, base, index, value)))


def _assigned(c: Call, base: Arr, index: Any, value: Arr) -> Arr:
    if isinstance(index, Arr) and index.elem == "i1":
        return _assigned_mask(c, base, index, value)
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
    full = mask
    for _ in range(base.rank - mask.rank):
        full = c.ctx.unsqueeze(full, full.rank)
    if value.rank == 0:
        return c.ctx.where(full, value, base)
    home = value.home
    if home is None or not isinstance(home.origin, Filter) or home.origin.mask is not mask.v:
        raise NoRule("an assignment of rows that were not chosen by the same mask")
    v = c.ctx.values
    put = v.make("scatter_parent", [value.v], base.home, value.v.shape, value.elem, subset=home)
    return c.ctx.where(full, Arr(base.dims, put), base)


def _assigned_columns(c: Call, base: Arr, dim: int, i: Any, value: Arr) -> Arr:
    size = base.dims[dim]
    if not isinstance(size, int):
        raise NoRule("an assignment to rows of a set by their number")
    if isinstance(i, int):
        i = i + size if i < 0 else i
        lo, hi = i, i + 1
        shape = [*base.dims[:dim], *base.dims[dim + 1 :]]
        piece = c.ctx.unsqueeze(c.ctx.expand(value, shape), dim)
    elif isinstance(i, slice) and i.step in (None, 1):
        lo, hi, _ = i.indices(size)
        piece = c.ctx.expand(value, [*base.dims[:dim], hi - lo, *base.dims[dim + 1 :]])
    else:
        raise NoRule("an assignment to these columns")
    pieces = [piece]
    if lo > 0:
        pieces.insert(0, c.ctx.narrow(base, dim, 0, lo))
    if hi < size:
        pieces.append(c.ctx.narrow(base, dim, hi, size))
    return c.ctx.concat(pieces, dim)
