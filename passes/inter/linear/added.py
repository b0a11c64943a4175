"""reorder-linear, added: products of one value that are added up are one product.

`x W1 + y + x W2` is `x (W1 + W2) + y`: the layers of a heterogeneous model each add a product of
the node itself, one for every relation that ends there. Single rows, the biases, are added up first
for the same reason: theirs is the work of one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.types import is_float, rows
from .function import LinearFunction, is_product, is_unit


@dataclass(frozen=True)
class Term:
    """A value that is added, or subtracted."""

    value: SSAValue
    negative: bool


Key = tuple[object, ...]


def join_products(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites the sum that ends in `op`; says whether it did."""
    if not _is_sum(op) or is_unit(op.results[0]) or _goes_on(op):
        return False
    terms = _terms(op)
    groups: dict[Key, list[Term]] = {}
    for i, t in enumerate(terms):
        groups.setdefault(_key(t.value) or ("other", i), []).append(t)
    if len(groups) == len(terms):
        return False
    b = fn.before(op)
    joined = [_joined(b, key, group) for key, group in groups.items()]
    fn.replace(op.results[0], _total(b, joined).value)
    return True


def _is_sum(op: object) -> bool:
    """Whether `op` adds or subtracts rows of one shape."""
    if not isinstance(op, PointwiseOp) or op.SPEC.signs is None:
        return False
    return is_float(op.type.elem) and all(rows(x).dims == op.type.dims for x in op.operands)


def _goes_on(op: ValueOp) -> bool:
    """Whether the sum is a term of another one, which will see to it."""
    uses = list(op.results[0].uses)
    return len(uses) == 1 and _is_sum(uses[0].operation)


def _terms(op: ValueOp) -> list[Term]:
    """What is added, in order, through sums that nobody else needs."""
    out: list[Term] = []
    todo = [Term(op.results[0], False)]
    while todo:
        t = todo.pop()
        owner = t.value.owner
        inner = isinstance(owner, PointwiseOp) and _is_sum(owner) and not is_unit(t.value)
        if inner and (owner is op or t.value.has_one_use()):
            assert isinstance(owner, PointwiseOp) and owner.SPEC.signs is not None
            pairs = list(zip(owner.operands, owner.SPEC.signs, strict=True))
            todo += [Term(x, t.negative != (sign < 0)) for x, sign in reversed(pairs)]
        else:
            out.append(t)
    return out


def _key(v: SSAValue) -> Key | None:
    """Equal for terms that become one: products of one value alike, single rows."""
    if is_unit(v):
        return ("unit",)
    owner = v.owner
    if isinstance(owner, ContractOp) and is_product(owner) and v.has_one_use():
        weights = [i for i, x in enumerate(owner.operands) if is_unit(x)]
        if len(weights) == 1:
            return ("product", owner.operands[1 - weights[0]], owner.spec, weights[0])
    return None


def _joined(b: Builder, key: Key, group: list[Term]) -> Term:
    if len(group) == 1:
        return group[0]
    if key[0] == "unit":
        return _total(b, group)
    first = group[0].value.owner
    assert isinstance(first, ContractOp)
    w = key[-1]
    assert isinstance(w, int)
    weights: list[Term] = []
    for t in group:
        assert isinstance(t.value.owner, ContractOp)
        weights.append(Term(t.value.owner.operands[w], t.negative))
    weight = _total(b, weights)
    operands = list(first.operands)
    operands[w] = weight.value
    return Term(b.contract(first.spec.data, *operands), False)


def _total(b: Builder, terms: list[Term]) -> Term:
    """The sum of the terms, from left to right."""
    first, *others = terms
    total = b.neg(first.value) if first.negative else first.value
    for t in others:
        total = b.sub(total, t.value) if t.negative else b.add(total, t.value)
    return Term(total, False)
