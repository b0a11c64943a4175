"""A value as a product of factors, each with its place among the dimensions of the whole."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import BroadcastOp, ContractOp, ReshapeOp
from ....dialects.inter.types import rows
from ....dialects.inter.unit_dims import only_ones
from ....dialects.inter.values import ConstOp

Place = tuple[int | None, ...]
"""For each dimension of a factor its dimension of the whole, None for a dimension of 1."""


@dataclass(frozen=True)
class Factor:
    """`value`, its dimensions at `place` in the whole; `inverse`: the whole is divided by it."""

    value: SSAValue
    place: Place
    inverse: bool = False

    def dims(self, rank: int) -> tuple[int, ...]:
        """The factor's shape among `rank` dimensions, without leading ones."""
        out = [1] * rank
        for n, p in zip(rows(self.value).dims, self.place, strict=True):
            if p is not None:
                out[p] = n
        first = next((i for i, n in enumerate(out) if n != 1), rank)
        return tuple(out[first:])

    def places(self) -> set[int]:
        """The dimensions of the whole in which the factor is not 1."""
        return {p for p in self.place if p is not None}

    def of(self, value: SSAValue) -> Factor:
        """The same place for another value of this shape."""
        return Factor(value, self.place, self.inverse)


@dataclass
class Product:
    """factors, the sign, and the shape of the whole."""

    factors: list[Factor]
    negative: bool
    dims: tuple[int, ...]


def factorise(x: SSAValue) -> Product:
    """`x` through products, quotients, signs, and reshapes that only add or drop ones."""
    dims = rows(x).dims
    out = Product([], False, dims)
    _collect(x, tuple(None if n == 1 else i for i, n in enumerate(dims)), False, out)
    return out


def _collect(v: SSAValue, place: Place, inverse: bool, out: Product) -> None:
    owner = v.owner
    if isinstance(owner, PointwiseOp) and owner.SPEC.name in ("mul", "div", "neg"):
        for i, x in enumerate(owner.operands):
            below = owner.SPEC.name == "div" and i == 1
            _collect(x, aligned(rows(x).dims, place), inverse != below, out)
        out.negative ^= owner.SPEC.name == "neg"
    elif isinstance(owner, ReshapeOp) and only_ones(owner):
        _collect(owner.x, through_ones(owner, place), inverse, out)
    elif isinstance(owner, ContractOp) and _no_sum(owner):
        *terms, whole = owner.letters()
        for x, letters in zip(owner.operands, terms, strict=True):
            _collect(x, tuple(place[whole.index(c)] for c in letters), inverse, out)
    elif isinstance(owner, BroadcastOp):
        _collect(owner.x, aligned(rows(owner.x).dims, place), inverse, out)
    elif not (isinstance(owner, ConstOp) and owner.number == 1):
        out.factors.append(Factor(v, place, inverse))


def aligned(dims: Sequence[int], place: Place) -> Place:
    """The place of an operand that broadcasts, aligned right, into something at `place`."""
    tail = place[len(place) - len(dims) :]
    return tuple(None if n == 1 else p for n, p in zip(dims, tail, strict=True))


def through_ones(op: ReshapeOp, place: Place) -> Place:
    """The place of the operand of a reshape that only adds or drops ones, and is at `place`."""
    filled = iter([p for p in place if p is not None])
    return tuple(None if n == 1 else next(filled) for n in rows(op.x).dims)


def _no_sum(op: ContractOp) -> bool:
    """Whether a contraction only multiplies: all letters are in its result."""
    left, right, out = op.letters()
    return {*left, *right} <= {*out}


def without_ones(v: SSAValue) -> SSAValue:
    """What `v` is a reshape of, where that only added or dropped ones."""
    while isinstance(v.owner, ReshapeOp) and only_ones(v.owner):
        v = v.owner.x
    return v


def placed(value: SSAValue, rank: int) -> Factor:
    """A value, aligned right, as a factor of a whole of `rank` dimensions."""
    dims = rows(value).dims
    first = rank - len(dims)
    return Factor(value, tuple(None if n == 1 else first + i for i, n in enumerate(dims)))


def multiply(b: Builder, factors: Iterable[Factor], rank: int) -> SSAValue | None:
    """The product of factors among `rank` dimensions, small ones first; None for no factor. Of an
    outer product each side is multiplied with what belongs to it before."""
    factors = list(factors)
    two = sides(factors)
    if len(two) != 2:
        return _in_turn(b, factors, rank)
    of_first = [f for f in factors if f.places() <= two[0]]
    of_second = [f for f in factors if not f.places() <= two[0]]
    first, second = _in_turn(b, of_first, rank), _in_turn(b, of_second, rank)
    assert first is not None and second is not None
    return _outer(b, first, second)


def sides(factors: Iterable[Factor]) -> list[set[int]]:
    """The places of the factors that have all dimensions of the others between them, a shorter one
    first; none where a divisor has a dimension that none of them has."""
    factors = sorted(factors, key=lambda f: math.prod(rows(f.value).dims))
    given = [f.places() for f in factors if not f.inverse]
    found: list[set[int]] = []
    for p in given:
        if p not in found and not any(p < q for q in given):
            found.append(p)
    divisors = [f.places() for f in factors if f.inverse]
    return found if all(any(d <= p for p in found) for d in divisors) else []


def _in_turn(b: Builder, factors: Iterable[Factor], rank: int) -> SSAValue | None:
    total: SSAValue | None = None
    for f in _small_first(factors):
        x = b.reshape(_in_order(b, f), f.dims(rank))
        if total is None:
            total = b.div(b.const(1.0, (), rows(x).elem), x) if f.inverse else x
        elif f.inverse:
            total = b.div(total, x)
        elif is_outer(total, x):
            total = _outer(b, total, x)
        else:
            total = b.mul(total, x)
    return total


def _small_first(factors: Iterable[Factor]) -> list[Factor]:
    """Factors by the length of their rows; divisors after those that they do not widen, and in
    front of longer ones."""
    by_size = sorted(factors, key=lambda f: math.prod(rows(f.value).dims))
    divisors = [f for f in by_size if f.inverse]
    out: list[Factor] = []
    seen: set[int] = set()
    for f in (f for f in by_size if not f.inverse):
        if out and not f.places() <= seen:
            out += [d for d in divisors if d.places() <= seen]
            divisors = [d for d in divisors if not d.places() <= seen]
        out.append(f)
        seen |= f.places()
    return out + divisors


def _in_order(b: Builder, f: Factor) -> SSAValue:
    """A factor's dimensions in the order of their places in the whole."""
    places = [p for p in f.place if p is not None]
    if places == sorted(places):
        return f.value
    wide = [n for n, p in zip(rows(f.value).dims, f.place, strict=True) if p is not None]
    order = sorted(range(len(places)), key=lambda k: places[k])
    return b.transpose(b.reshape(f.value, tuple(wide)), order)


def is_outer_product(v: SSAValue) -> bool:
    """Whether a contraction only multiplies, and each of its rows has a letter of its own."""
    if not isinstance(v.owner, ContractOp) or not _no_sum(v.owner):
        return False
    left, right, _ = v.owner.letters()
    return bool({*left} - {*right} and {*right} - {*left})


def is_outer(left: SSAValue, right: SSAValue) -> bool:
    """Whether each of two values has a wide dimension in which the other broadcasts."""
    ours, theirs = (_wide(rows(v).dims) for v in (left, right))
    return bool(ours.keys() - theirs.keys() and theirs.keys() - ours.keys())


def _wide(dims: Sequence[int]) -> dict[int, int]:
    """The dimensions that are not 1, counted from the right, from the left one on."""
    return {len(dims) - i: n for i, n in enumerate(dims) if n != 1}


def _outer(b: Builder, left: SSAValue, right: SSAValue) -> SSAValue:
    """Their product as a contraction: sums of those are products of matrices."""
    terms = [_wide(rows(v).dims) for v in (left, right)]
    whole = dict(sorted({**terms[0], **terms[1]}.items(), reverse=True))
    letters = dict(zip(whole, string.ascii_lowercase, strict=False))
    spec = ["".join(letters[d] for d in t) for t in (*terms, whole)]
    operands = [b.reshape(v, tuple(t.values())) for v, t in zip((left, right), terms, strict=True)]
    product = b.contract(f"{spec[0]},{spec[1]}->{spec[2]}", *operands)
    return b.reshape(product, tuple(whole.get(d, 1) for d in range(next(iter(whole)), 0, -1)))
