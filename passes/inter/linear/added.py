"""reorder-linear, added: products of one value that are added up are one product.

`x W1 + y + x W2` is `x (W1 + W2) + y`: the layers of a heterogeneous model each add a product of
the node itself, one for every relation that ends there. So is `f * a + f * b`, and the same
of inner products. Single rows, the biases, are added up first for the same reason: theirs is the
work of one row. Constants stay where they are: the 1e-15 of `log(1 - p + 1e-15)` is there for a p
that rounding has made 1, and 1 + 1e-15 is 1.
"""

from __future__ import annotations

import string
from collections import Counter

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.rewrite import constant
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.types import is_float, rows
from .function import LinearFunction, is_unit, signed_sum, weight_of

Term = tuple[SSAValue, bool]
"""A value that is added, or where it is marked, subtracted."""

Key = tuple[object, ...]
UNIT, PRODUCT, FACTOR = "single rows", "product", "factor"


def join_products(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites the sum that ends in `op`; says whether it did."""
    if not _is_sum(op) or is_unit(op.results[0]) or _goes_on(op):
        return False
    terms = _terms(op)
    shared = [_shared(value) for value, _ in terms]
    often = Counter(key for keys in shared for key in keys)
    groups: dict[Key, list[Term]] = {}
    for i, (term, keys) in enumerate(zip(terms, shared, strict=True)):
        groups.setdefault(max(keys, key=often.__getitem__, default=("other", i)), []).append(term)
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


def _shared(v: SSAValue) -> dict[Key, SSAValue]:
    """Terms with an equal key become one term: products of one value alike, and single rows. With
    each key comes what the term has beside what it shares."""
    owner = v.owner
    if is_unit(v):
        return {} if constant(v) is not None else {(UNIT,): v}
    if not v.has_one_use():
        return {}
    if isinstance(owner, ContractOp):
        w = weight_of(owner)
        return {_of_contract(owner, i): owner.operands[i] for i in ((0, 1) if w is None else (w,))}
    if isinstance(owner, PointwiseOp) and owner.SPEC.name == "mul":
        x, y = owner.operands
        return {(FACTOR, a, rows(b).dims): b for a, b in ((x, y), (y, x))}
    return {}


def _of_contract(op: ContractOp, i: int) -> Key:
    """A product with another operand `i`, which it has last."""
    *terms, whole = op.letters()
    names = dict.fromkeys((*terms[1 - i], *terms[i]))
    letter = dict(zip(names, string.ascii_letters, strict=False))
    kept, other, out = ("".join(letter[c] for c in of) for of in (terms[1 - i], terms[i], whole))
    return (PRODUCT, op.operands[1 - i], f"{kept},{other}->{out}")


def _contract_with(b: Builder, op: object, key: Key, others: SSAValue) -> SSAValue:
    """The product `op`, but with `others` in place of what it does not share."""
    assert isinstance(op, ContractOp)
    operands = list(op.operands)
    operands[next(i for i in (0, 1) if _of_contract(op, i) == key)] = others
    return b.contract(op.spec.data, *operands)


def _joined(b: Builder, key: Key, group: list[Term]) -> Term:
    if len(group) == 1:
        return group[0]
    others = signed_sum(b, [(_shared(x)[key], negative) for x, negative in group])
    match key:
        case (kind, SSAValue() as kept, _) if kind == FACTOR:
            return b.mul(kept, others), False
        case (kind, _, _) if kind == PRODUCT:
            return _contract_with(b, group[0][0].owner, key, others), False
        case _:
            return others, False
