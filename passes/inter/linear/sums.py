"""reorder-linear, sums: factors of what is summed go where they belong.

In `reduce sum (or mean) of a product over g along dst`, a factor that is the same for all rows of a
group (read `at dst`, or a single row) leaves the sum and multiplies its result; factors read
through one map (`at src dis * at src h`) become one read of their product, unless a number that
each edge has anyhow can take the narrow one; what is left per edge stays. GCN without edge weights
ends as `dis * sum(at src (dis * h))`: no number per edge is left. Where all factors leave, the sum
is a count. What is left of factors that broadcast against each other is an outer product, whose sum
is a product of matrices; one with a single number is a multiple of a row. The same goes for the
sums of the backward half, along src and along ().

A factor leaves, or is multiplied with others before a read, only where it is known to be finite on
every row (value_facts.py), and a divisor not to be 0: the inverse of a degree of 0 times the 0 of
an empty group would be no number. One that a gradient is taken of leaves only where the cotangent
of the sum is finite as well (slopes.py). The result is a reassociation, exact up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.reduce import ReduceOp
from ....dialects.inter.shapes import ContractOp, ReshapeOp
from ....dialects.inter.types import rows, set_name
from ....dialects.inter.values import AtOp
from .factors import (
    Factor,
    Product,
    factorise,
    is_outer,
    is_outer_product,
    multiply,
    placed,
    sides,
    without_ones,
)
from .function import (
    LinearFunction,
    is_product,
    is_unit,
    linear_reduce,
    moves_before_read,
    plain_at,
    pointwise,
    width,
)


@dataclass
class Sorted:
    """The factors of a sum by where they belong."""

    outside: list[Factor] = field(default_factory=list[Factor])
    """To multiply the result with, as values there."""
    reads: dict[str, list[Factor]] = field(default_factory=dict[str, list[Factor]])
    """By path, two or more: read through one map, as values on its codomain."""
    rest: list[Factor] = field(default_factory=list[Factor])

    def changes(self) -> bool:
        """Whether the sum gets better by it."""
        return bool(self.outside or self.reads)


def regroup_sum(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites one reduction; says whether it did."""
    reduce = linear_reduce(op.results[0])
    if reduce is None:
        return False
    product = factorise(reduce.x)
    b = fn.before(op)
    parts = sort_factors(fn, b, reduce, product.factors)
    settled = not (_is_outer(reduce.x, product) or (reduce.along_keys and _is_thin(reduce.x)))
    if settled and not parts.changes() and not product.negative:
        return False
    fn.replace(op.results[0], _rebuild(b, reduce, product, parts))
    return True


def sort_factors(fn: LinearFunction, b: Builder, reduce: ReduceOp, factors: list[Factor]) -> Sorted:
    """Where the factors of what `reduce` sums belong."""
    out = Sorted()
    reads: dict[str, list[Factor]] = {}
    for f in factors:
        if not _safe(fn, f):
            out.rest.append(f)
        elif (y := _outside(fn, b, reduce, f.value)) is not None:
            out.outside.append(f.of(y))
        elif (path := _movable_read(fn, f.value)) is not None:
            reads.setdefault(path, []).append(f)
        else:
            out.rest.append(f)
    for path, fs in reads.items():
        alone = [f for f in fs if _stays(f, fs, out.rest)]
        if len(fs) - len(alone) < 2:
            out.rest += fs
            continue
        out.rest += alone
        together = [f for f in fs if f not in alone]
        out.reads[path] = [f.of(a.x) for f in together if (a := plain_at(f.value)) is not None]
    return out


def _outside(fn: LinearFunction, b: Builder, reduce: ReduceOp, v: SSAValue) -> SSAValue | None:
    """A factor as a value to multiply the sum with, where it may leave."""
    y = v if is_unit(v) else constant_in_groups(fn, b, reduce, v)
    return y if y is None or fn.may_leave([y], reduce, reduce.results[0]) else None


def _stays(f: Factor, group: list[Factor], rest: list[Factor]) -> bool:
    """Whether a factor that is read with a wider one multiplies a narrow number of the rows that
    are summed, as the weight of an edge: the wide rows are stored anyhow, and a multiple of them
    would be stored and gathered besides."""
    widest = max(group, key=lambda g: width(g.value))
    if width(f.value) == width(widest.value) or not _lives(widest.value):
        return False
    return any(
        width(r.value) < width(widest.value) and f.places() <= r.places()
        for r in rest
        if not r.inverse
    )


def _lives(v: SSAValue) -> bool:
    """Whether rows that are read through a map are an argument, or are of use to more than one
    op."""
    while isinstance(v.owner, ReshapeOp | AtOp):
        v = v.owner.x
    return not isinstance(v.owner, Operation) or len(_users(v)) > 1


def _users(v: SSAValue) -> set[Operation]:
    """What computes with a value, as it is, reshaped or read through a map."""
    out: set[Operation] = set()
    for use in v.uses:
        op = use.operation
        out |= _users(op.results[0]) if isinstance(op, ReshapeOp | AtOp) else {op}
    return out


def _is_outer(v: SSAValue, product: Product) -> bool:
    """Whether `v`, which is this product, is an outer one that is written as a product of values
    that broadcast, or with factors behind it that belong to one of its two sides."""
    top = pointwise(v, "mul")
    if top is not None and is_outer(*top.operands):
        return True
    return len(sides(product.factors)) == 2 and not is_outer_product(without_ones(v))


def _is_thin(v: SSAValue) -> bool:
    """Whether `v` is a multiple of a row, written as an outer product with a single number."""
    owner = v.owner
    if not isinstance(owner, ContractOp) or is_product(owner):
        return False
    return min(width(x) for x in owner.operands) == 1 < width(v)


def _safe(fn: LinearFunction, f: Factor) -> bool:
    """Whether a factor may meet the 0 of an empty group: it is finite, a divisor is not 0."""
    if not fn.facts.finite(f.value):
        return False
    return not f.inverse or fn.facts.positive(f.value)


def _movable_read(fn: LinearFunction, v: SSAValue) -> str | None:
    """The map, where `v` is a read that products may move in front of."""
    read = plain_at(v)
    if read is None or not moves_before_read(fn, read):
        return None
    return fn.env.same(set_name(read.set), read.path.data)[0]


def constant_in_groups(
    fn: LinearFunction, b: Builder, reduce: ReduceOp, v: SSAValue
) -> SSAValue | None:
    """`v` as a value on the groups of `reduce`, where it is the same in each group."""
    env, over, along = fn.env, reduce.over, reduce.along_keys
    if not along:
        return None
    read = plain_at(v)
    if len(along) == 1:
        if read is None or set_name(read.set) != over.set or env.is_partial(over.set, along[0]):
            return None
        rest = env.determines(over.set, along[0], read.path.data)
        if not rest:
            return None if rest is None else read.x
        return b.at(env.codomain(over.set, along[0]), rest, read.x)
    groups = reduce.type.dom
    if read is not None and set_name(read.set) == over.set:
        least = env.at(over.set, read.path.data, rows(read.x).dom)
        if env.le(least, groups):
            return Builder(env, b.point).at(read.set, read.path.data, read.x)
    return v if env.le(rows(v).dom, groups) else None


def _rebuild(b: Builder, reduce: ReduceOp, product: Product, parts: Sorted) -> SSAValue:
    rank = len(product.dims)
    inner = list(parts.rest)
    for path, fs in parts.reads.items():
        together = multiply(b, fs, rank)
        assert together is not None
        inner.append(placed(b.at(reduce.set, path, together), rank))
    x = multiply(b, inner, rank)
    if x is not None:
        total = b.reduce(reduce.kind.data, x, reduce.over, reduce.along_keys)
    else:
        total = _sum_of_ones(b, reduce)
    outside = multiply(b, parts.outside, rank)
    if outside is not None and b.env.le(rows(outside).dom, reduce.type.dom):
        total = b.mul(outside, total)
    elif outside is not None:
        # A quotient on rows that nothing may read is typed on the whole set: divide the sum.
        whole = [placed(total, rank)]
        for inverse in (False, True):
            factors = [f for f in parts.outside if f.inverse == inverse]
            divided = multiply(b, [*whole, *factors], rank)
            assert divided is not None
            whole = [placed(divided, rank)]
        total = whole[0].value
    if product.negative:
        total = b.neg(total)
    return b.broadcast(total, product.dims)


def _sum_of_ones(b: Builder, reduce: ReduceOp) -> SSAValue:
    """What the reduction makes of 1 on every row: the number of rows, or for a mean 1, and 0 for an
    empty group (which a pair of keys that occurs is not)."""
    elem = reduce.type.elem
    one = b.const(1.0, (), elem)
    if reduce.kind.data == "mean" and len(reduce.type.dom.keys) > 1:
        return one
    count = b.count(reduce.over, reduce.along_keys, elem)
    return b.pointwise("minimum", count, one) if reduce.kind.data == "mean" else count
