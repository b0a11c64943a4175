"""reorder-linear, added: products of one value that are added up are one product.

`x W1 + y + x W2` is `x (W1 + W2) + y`: the layers of a heterogeneous model each add a product of
the node itself, one for every relation that ends there. Single rows, the biases, are added up first
for the same reason: theirs is the work of one row.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.types import is_float, rows
from .function import LinearFunction, is_unit, signed_sum, weight_of

Term = tuple[SSAValue, bool]
"""A value that is added, or where it is marked, subtracted."""

Key = tuple[object, ...]


def join_products(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites the sum that ends in `op`; says whether it did."""
    if not _is_sum(op) or is_unit(op.results[0]) or _goes_on(op):
        return False
    terms = _terms(op)
    groups: dict[Key, list[Term]] = {}
    for i, (value, negative) in enumerate(terms):
        groups.setdefault(_key(value) or ("other", i), []).append((value, negative))
    if len(groups) == len(terms):
        return False
    b = fn.before(op)
    joined = [_joined(b, key, group) for key, group in groups.items()]
    fn.replace(op.results[0], signed_sum(b, joined))
    return True


def _is_sum(op: object) -> bool:
    """Whether `op` adds or subtracts rows of one shape."""
    if not isinstance(op, PointwiseOp) or op.SPEC.signs is None:
        return False
    return is_float(op.type.elem) and all(rows(x).dims == op.type.dims for x in op.operands)


def _goes_on(op: ValueOp) -> bool:
    """Whether the sum is a term of another one, which will see to it."""
    return _is_sum(op.results[0].get_user_of_unique_use())


def _terms(op: ValueOp) -> list[Term]:
    """What is added, in order, through sums that nobody else needs."""
    out: list[Term] = []
    todo = [(op.results[0], False)]
    while todo:
        value, negative = todo.pop()
        owner = value.owner
        inner = isinstance(owner, PointwiseOp) and _is_sum(owner) and not is_unit(value)
        if inner and (owner is op or value.has_one_use()):
            assert isinstance(owner, PointwiseOp) and owner.SPEC.signs is not None
            pairs = list(zip(owner.operands, owner.SPEC.signs, strict=True))
            todo += [(x, negative != (sign < 0)) for x, sign in reversed(pairs)]
        else:
            out.append((value, negative))
    return out


def _key(v: SSAValue) -> Key | None:
    """Equal for terms that become one: products of one value alike, single rows."""
    if is_unit(v):
        return ("unit",)
    owner = v.owner
    if isinstance(owner, ContractOp) and v.has_one_use() and (w := weight_of(owner)) is not None:
        return ("product", owner.operands[1 - w], owner.spec, w)
    return None


def _joined(b: Builder, key: Key, group: list[Term]) -> Term:
    if len(group) == 1:
        return group[0]
    if key[0] == "unit":
        return signed_sum(b, group), False
    products = [(x.owner, negative) for x, negative in group]
    first, w = products[0][0], key[-1]
    assert isinstance(first, ContractOp) and isinstance(w, int)
    weights = [(op.operands[w], neg) for op, neg in products if isinstance(op, ContractOp)]
    operands = list(first.operands)
    operands[w] = signed_sum(b, weights)
    return b.contract(first.spec.data, *operands), False
