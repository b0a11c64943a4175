"""reorder-linear, masks: dropout of a product per edge is its mask times the product.

`dropout(exp / sum)`, the attention that is dropped, and `dropout(G . z)`, its gradient, are
products with the same numbers: 0 or 1 / (1 - p), which the key, the site and the edge alone decide.
As a factor beside others the mask lets these leave the sums that they are in: the sum of a softmax,
and the inner product with the gradient of the destination (linear/inner.py).

Only of finite products: what is dropped is 0, whatever it was.
"""

from __future__ import annotations

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import DropoutOp
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.types import rows
from .factors import without_ones
from .function import LinearFunction, is_unit

PRODUCTS = ("mul", "div", "neg")


def set_mask_apart(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites one dropout; says whether it did."""
    if not isinstance(op, DropoutOp) or op.set is None or is_unit(op.x):
        return False
    owner = without_ones(op.x).owner
    product = isinstance(owner, PointwiseOp) and owner.SPEC.name in PRODUCTS
    if not (product or isinstance(owner, ContractOp)):
        return False
    if not fn.sizes.is_edges(op.type.dom) or not fn.facts.finite(op.x):
        return False
    b = fn.before(op)
    ones = b.const(1.0, op.type.dims, rows(op.x).elem)
    p, site = op.probability, op.site_number
    mask = b.dropout(ones, op.key, op.set, p, site, op.numbers, op.column)
    fn.replace(op.results[0], b.mul(mask, op.x))
    return True
