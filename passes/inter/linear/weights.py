"""reorder-linear, weights: matrices that a product of parameters makes are made one by one.

Of `as_rows %R (contract "rb,bio->rio" %comp, %bases)`, the weights of relations as sums of bases
(Schlichtkrull et al., ESWC 2018), `contract "b,bio->io" (as_rows %R %comp), %bases` is the same
with a row a relation: a product of rows with one matrix, which has tiles, threads and a backward
half of its kind. A product on a single row has neither.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.shapes import ContractOp, ReshapeOp
from ....dialects.inter.types import rows
from ....dialects.inter.values import AsRowsOp
from .function import LinearFunction, is_product


def make_by_rows(fn: LinearFunction, op: ValueOp) -> bool:
    """Moves `as_rows` before the product; says whether it did."""
    if not isinstance(op, AsRowsOp):
        return False
    product = _product(op.x)
    if product is None:
        return False
    left, right, out = product.letters()
    leads = [x.startswith(out[0]) and x.count(out[0]) == 1 for x in (left, right)]
    if leads.count(True) != 1 or out[0] in (left, right)[leads.index(False)]:
        return False
    b = fn.before(op)
    side = leads.index(True)
    terms, operands = [left, right], list(product.operands)
    terms[side] = terms[side][1:]
    operands[side] = b.as_rows(op.set, operands[side])
    y = b.contract(f"{','.join(terms)}->{out[1:]}", *operands)
    fn.replace(op.results[0], b.reshape(y, op.type.dims))
    return True


def _product(v: SSAValue) -> ContractOp | None:
    """The product that `v` is, dimensions after the first in another shape or not."""
    while isinstance(v.owner, ReshapeOp) and rows(v.owner.x).dims[:1] == rows(v).dims[:1]:
        v = v.owner.x
    owner = v.owner
    if not isinstance(owner, ContractOp) or not is_product(owner) or not owner.letters()[2]:
        return None
    return owner
