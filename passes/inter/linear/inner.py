"""reorder-linear, inner products: a product over the numbers of a row leaves the sums it ends in.

The gradient of an attention score is `p * (G . z - D)` per edge, with the gradient G of the
destination and the message z of the source, and all that is wanted of it are its sums at either
end. `sum along src (w * (G . z))` is `z . sum along src (w * G)`, and the same along dst with the
roles exchanged: no inner product per edge is left, nor a value per edge that both sums would read.
What is added to the product, as D here, gets a sum of its own; the product may be a multiple, as
that by a mask of dropout is.

The new sums are wider. They cost least where a loop over the edges reads the same rows anyway, as
those of the messages and of their gradients do; so the rule weighs them, and does either all sums
that a product ends in, or none. After autodiff only, as it is gradients that look like this.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import ReduceOp
from ....dialects.inter.shapes import BroadcastOp, ContractOp, ReshapeOp
from ....dialects.inter.types import rows
from ....dialects.inter.unit_dims import only_ones
from ...analysis.costs import element_bytes
from ...analysis.seconds import gather_seconds, stream_seconds
from .factors import (
    Factor,
    Place,
    aligned,
    factorise,
    multiply,
    placed,
    through_ones,
    without_ones,
)
from .function import LinearFunction, at_key, is_product, linear_reduce, plain_at, value_ops, width
from .sums import constant_in_groups

MARGIN = 0.95
"""What the wider sums must cost at most, relative to the product per edge."""


@dataclass(frozen=True)
class Term:
    """An addend of a factor, its dimensions at `place` in what is summed."""

    value: SSAValue
    place: Place
    negative: bool


@dataclass
class Ending:
    """A sum that the product ends in: `reduce` of `rest * (beside * product + others)`."""

    reduce: ReduceOp
    rest: list[Factor]
    product: Term
    beside: list[Factor]
    others: list[Term]
    negative: bool
    dims: tuple[int, ...]
    side: int
    """The operand of the product that stays in the sum."""
    outside: SSAValue
    """The other one, as a value on the groups."""


def take_out_product(fn: LinearFunction, op: ValueOp) -> bool:
    """Takes one product out of all sums that it ends in; says whether it did."""
    if not fn.joint or not isinstance(op, ContractOp) or not is_product(op):
        return False
    if not fn.sizes.is_edges(op.type.dom) or (sums := _sums_of(op)) is None:
        return False
    endings: list[Ending] = []
    for reduce in sums:
        ending = _ending(fn, op, reduce)
        if ending is None:
            return False
        endings.append(ending)
    if not endings or not _pays(fn, op, endings):
        return False
    for ending in endings:
        b = fn.before(ending.reduce)
        fn.replace(ending.reduce.results[0], _build(b, op, ending))
    return True


# ---------------------------------------------------------------- where it ends


def _sums_of(op: ContractOp) -> list[ReduceOp] | None:
    """The sums that all uses of the product lead to, through products and additions."""
    found: dict[ReduceOp, None] = {}
    todo, seen = [op.results[0]], set[SSAValue]()
    while todo:
        v = todo.pop()
        for use in v.uses:
            user = use.operation
            if isinstance(user, ReduceOp) and linear_reduce(user.results[0]) is not None:
                found[user] = None
            elif not _is_linear(user, use.index):
                return None
            elif user.results[0] not in seen:
                seen.add(user.results[0])
                todo.append(user.results[0])
    return list(found)


def _is_linear(user: Operation, index: int) -> bool:
    """Whether factorise, or the terms of a factor, can see through `user` to operand `index`."""
    if isinstance(user, PointwiseOp):
        name = user.SPEC.name
        return user.SPEC.signs is not None or name == "mul" or (name == "div" and index == 0)
    if isinstance(user, ReshapeOp):
        return only_ones(user)
    return isinstance(user, BroadcastOp) or (isinstance(user, ContractOp) and not is_product(user))


def _ending(fn: LinearFunction, op: ContractOp, reduce: ReduceOp) -> Ending | None:
    product = factorise(reduce.x)
    terms = [(f, t) for f in product.factors for t in _terms(f)]
    holders = [(f, t, *found) for f, t in terms if (found := _holds(t, op.results[0]))]
    if len(holders) != 1:
        return None
    (holder, own, term, beside) = holders[0]
    others = [t for t in _terms(holder) if t is not own and t.value is not own.value]
    rest = [f for f in product.factors if f is not holder]
    if holder.inverse:
        return None
    b = fn.before(reduce)
    for side in (0, 1):
        outside = constant_in_groups(fn, b, reduce, op.operands[1 - side])
        if outside is None or not fn.facts.finite(outside):
            continue
        if fn.may_leave([outside], reduce, reduce.results[0]):
            return Ending(
                reduce, rest, term, beside, others, product.negative, product.dims, side, outside
            )
    return None


def _holds(t: Term, v: SSAValue) -> tuple[Term, list[Factor]] | None:
    """`v` as a term, and the factors beside it, where an addend is `v` times these."""
    if t.value is v:
        return t, []
    product = factorise(t.value)

    def within(f: Factor) -> Place:
        return tuple(None if p is None else t.place[p] for p in f.place)

    mine = [f for f in product.factors if f.value is v and not f.inverse]
    if len(mine) != 1:
        return None
    beside = [Factor(f.value, within(f), f.inverse) for f in product.factors if f is not mine[0]]
    return Term(v, within(mine[0]), t.negative != product.negative), beside


def _terms(f: Factor) -> list[Term]:
    """The addends of a factor; itself where it is no sum."""
    return list(_addends(f.value, f.place, False))


def _addends(v: SSAValue, place: Place, negative: bool) -> Iterator[Term]:
    owner = v.owner
    if isinstance(owner, PointwiseOp) and owner.SPEC.signs is not None:
        for x, sign in zip(owner.operands, owner.SPEC.signs, strict=True):
            yield from _addends(x, aligned(rows(x).dims, place), negative != (sign < 0))
    elif isinstance(owner, ReshapeOp) and only_ones(owner):
        yield from _addends(owner.x, through_ones(owner, place), negative)
    else:
        yield Term(v, place, negative)


# ---------------------------------------------------------------- what it costs


def _pays(fn: LinearFunction, op: ContractOp, endings: list[Ending]) -> bool:
    size, edges = element_bytes(op.type), fn.sizes.rows(op.type.dom)

    def gather(n: int) -> float:
        return gather_seconds(fn.target, edges, n * size)

    result = width(op.results[0])
    old = sum(gather(width(x)) for x in op.operands)
    old += stream_seconds(fn.target, edges, result * size)
    new = 0.0
    for ending in endings:
        old += gather(result)
        inner = op.operands[ending.side]
        numbers = _numbers(op, ending)
        if numbers > width(inner) or not _is_read_beside(fn, ending, inner):
            new += gather(numbers)
        groups = fn.sizes.rows(ending.reduce.type.dom)
        # written, fetched for it, read
        new += 3 * stream_seconds(fn.target, groups, numbers * size)
    return new < MARGIN * old


def _numbers(op: ContractOp, e: Ending) -> int:
    """The width of the new sum: what stands beside the product may have dimensions of its own."""
    terms, whole = op.letters()[:2], op.letters()[2]
    dims = zip(terms[e.side], rows(op.operands[e.side]).dims, strict=True)
    summed = math.prod(n for c, n in dims if c not in whole)
    places = {p for f in (*e.rest, *e.beside, e.product) for p in f.place if p is not None}
    return summed * math.prod(e.dims[p] for p in places)


def _is_read_beside(fn: LinearFunction, ending: Ending, inner: SSAValue) -> bool:
    """Whether another sum of the same groups reads these rows, be it times something."""
    read = plain_at(inner)
    if read is None:
        return False
    mine = ending.reduce
    for op in value_ops(fn.func):
        other = linear_reduce(op.results[0])
        if other is None or other is mine or other.over != mine.over or other.along != mine.along:
            continue
        for f in factorise(other.x).factors:
            beside = plain_at(f.value)
            if beside is None or at_key(fn.env, beside) != at_key(fn.env, read):
                continue
            if without_ones(read.x) in {without_ones(g.value) for g in factorise(beside.x).factors}:
                return True
    return False


# ---------------------------------------------------------------- the new sums


def _build(b: Builder, op: ContractOp, e: Ending) -> SSAValue:
    total = _wider_sum(b, op, e)
    if e.product.negative:
        total = b.neg(total)
    for t in e.others:
        value = _summed(b, e, [*e.rest, Factor(t.value, t.place)], len(e.dims))
        total = b.sub(total, value) if t.negative else b.add(total, value)
    return b.neg(total) if e.negative else total


def _summed(b: Builder, e: Ending, factors: list[Factor], rank: int) -> SSAValue:
    x = multiply(b, factors, rank)
    assert x is not None
    value = b.reduce(e.reduce.kind.data, x, e.reduce.over, e.reduce.along_keys)
    return b.broadcast(value, e.dims) if rank == len(e.dims) else value


def _wider_sum(b: Builder, op: ContractOp, e: Ending) -> SSAValue:
    """The product of the outside operand with the sum of the inside one. What is summed has the
    dimensions of before, then those that the product sums over."""
    terms, whole = op.letters()[:2], op.letters()[2]
    inside, outside = terms[e.side], terms[1 - e.side]
    summed = [c for c in inside if c not in whole]
    rank = len(e.dims) + len(summed)
    at = dict(zip(whole, e.product.place, strict=True))
    at |= {c: len(e.dims) + i for i, c in enumerate(summed)}

    def place(letters: str, v: SSAValue) -> Place:
        return tuple(None if n == 1 else at[c] for c, n in zip(letters, rows(v).dims, strict=True))

    inner = op.operands[e.side]
    total = _summed(b, e, [*e.rest, *e.beside, Factor(inner, place(inside, inner))], rank)
    sum_places = [p for p in placed(total, rank).place if p is not None]
    out_places = [p for p in place(outside, e.outside) if p is not None]
    result = [p for p, n in enumerate(e.dims) if n != 1]
    spec = ",".join("".join(string.ascii_letters[p] for p in ps) for ps in (sum_places, out_places))
    spec += "->" + "".join(string.ascii_letters[p] for p in result)
    operands = [b.reshape(v, [n for n in rows(v).dims if n != 1]) for v in (total, e.outside)]
    return b.reshape(b.contract(spec, *operands), e.dims)
