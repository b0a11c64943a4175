"""Products of tensors: einsum on rows, with sums over them, and torch's matrix products."""

from __future__ import annotations

import string

from ..errors import NoRule
from .context import Context
from .nodes import Set
from .tensors import Arr, Dim, numbers


def einsum(ctx: Context, spec: str, a: Arr, b: Arr) -> Arr:
    """A product of two tensors; a contracted row axis becomes a sum over the set."""
    left, out = spec.split("->")
    p, q = left.split(",")
    elem = ctx.promote(a, b)
    a, b = ctx.lift(a, elem), ctx.lift(b, elem)
    letter: str | None = None
    home: Set | None = None
    if a.merged or b.merged:
        return _of_grouped(ctx, p, q, out, a, b)
    sizes = dict(zip(p, a.dims, strict=True))
    if any(sizes.get(c, d) != d and 1 in (sizes[c], d) for c, d in zip(q, b.dims, strict=True)):
        raise NoRule("a dimension of size 1 that broadcasts in einsum")
    for x, s in ((a, p), (b, q)):
        if len(set(s)) != len(s):
            raise NoRule("a diagonal in einsum")
        for c, d in zip(s, x.dims, strict=True):
            if isinstance(d, Set):
                if letter not in (None, c):
                    raise NoRule("a product over the rows of two sets")
                home = d.find() if letter is None else ctx.sizes.meet(home, d)
                letter = c
    if letter is None:
        v = ctx.values.contract(spec, a.v, b.v)
        return Arr(list(v.shape), v)
    a, b = (_on_rows(ctx, x, s, letter, home) for x, s in ((a, p), (b, q)))
    v = ctx.values.contract(spec.replace(letter, ""), a.v, b.v)
    if letter not in out:
        v = ctx.values.reduce("sum", v, home, None, None)
        return Arr(list(v.shape), v)
    dims: list[Dim] = list(v.shape)
    dims.insert(out.index(letter), home)
    return Arr(dims, v)


def _of_grouped(ctx: Context, p: str, q: str, out: str, a: Arr, b: Arr) -> Arr:
    """A product of grouped rows: of rows and columns, which are grouped again."""
    letters = [s[x.axis] if x.merged else None for s, x in ((p, a), (q, b)) if x.axis is not None]
    letter = next(c for c in letters if c is not None)
    within = next(x.grouping[1] for x in (a, b) if x.grouping is not None)
    both = letter in p and letter in q
    if letters.count(letter) < len(letters) or both and a.grouping != b.grouping:
        raise NoRule("a product of grouped rows and of others")
    column = next(c for c in string.ascii_letters if c not in p + q)
    pair = letter + column if within else column + letter
    p, q, apart = (s.replace(letter, pair) for s in (p, q, out))
    y = einsum(ctx, f"{p},{q}->{apart}", a.apart, b.apart)
    return y.joined(out.index(letter), within) if letter in out else y


def _on_rows(ctx: Context, x: Arr, letters: str, row: str, home: Set | None) -> Arr:
    """An operand whose dimension of constant size is the rows of a set of that size, where the
    other has these rows."""
    if row not in letters or x.axis is not None:
        return x
    dim = letters.index(row)
    if home is None or home.expr != x.dims[dim]:
        raise NoRule("a dimension of constant size meets the rows of a set in a product")
    return ctx.as_set(x, dim)


def _same_type(a: Arr, b: Arr) -> None:
    """Matrix products do not convert: such a call is left to torch, which refuses it."""
    if a.v.elem != b.v.elem:
        raise NoRule(f"a matrix product of {a.v.elem} and {b.v.elem} values")


def linear(ctx: Context, x: Arr, w: Arr, b: Arr | None = None) -> Arr:
    _same_type(x, w)
    lead = string.ascii_lowercase[: x.rank - 1]
    y = einsum(ctx, f"{lead}y,zy->{lead}z", x, w)
    return y if b is None else ctx.binary("add", y, b)


def matmul(ctx: Context, a: Arr, b: Arr) -> Arr:
    _same_type(a, b)
    lead = string.ascii_lowercase[: max(a.rank, b.rank) - 1]
    if b.rank == 1:
        return einsum(ctx, f"{lead[: a.rank - 1]}y,y->{lead[: a.rank - 1]}", a, b)
    if a.rank == 1 and b.rank == 2:
        return einsum(ctx, "y,yz->z", a, b)
    if b.rank == 2:
        return einsum(ctx, f"{lead}y,yz->{lead}z", a, b)
    if a.rank > 1:
        batch = lead[:-1]
        (a, p), (b, q) = _batched(ctx, a, b, batch), _batched(ctx, b, a, batch)
        return einsum(ctx, f"{p}xy,{q}yz->{batch}xz", a, b)
    raise NoRule(f"a product of tensors with {a.rank} and {b.rank} dimensions")


def _batched(ctx: Context, x: Arr, other: Arr, batch: str) -> tuple[Arr, str]:
    """A stack of matrices without the dimensions of size 1 that broadcast, and the letters of
    those before its matrices, out of those of the result."""
    theirs = [1] * x.rank + other.dims
    kept = [k for k in range(x.rank - 2) if x.dims[k] != 1 or theirs[k - x.rank] == 1]
    dims = [*(x.dims[k] for k in kept), *x.dims[-2:]]
    letters = "".join(batch[k - (x.rank - 2)] for k in kept)
    return Arr(dims, ctx.values.reshape(x.v, numbers(dims))), letters
