"""reorder-linear, scaled: an outer product takes the factor on the side that has it already.

`x (s t)'` is `(s x) t'`. Where the rows `s x` lie in memory, because a gather reads them (the
degree normalisation of GCN), x itself need not be kept for the gradient of the weight.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.values import AtOp
from .aggregation import scalar_product
from .function import LinearFunction, is_product


def share_scaled(fn: LinearFunction, op: ValueOp) -> bool:
    """Moves a factor of an outer product to its other operand; says whether it did."""
    if not fn.joint or not isinstance(op, ContractOp) or is_product(op):
        return False
    for side in (0, 1):
        product = scalar_product(op.operands[side])
        if product is None or _is_gathered(op.operands[side]):  # in memory as it is
            continue
        scaled = _gathered_multiple(op.operands[1 - side], product[0])
        if scaled is not None:
            _put_before(scaled, op)
            operands = list(op.operands)
            operands[side], operands[1 - side] = product[1], scaled
            fn.replace(op.results[0], fn.before(op).contract(op.spec.data, *operands))
            return True
    return False


def _put_before(multiple: SSAValue, op: ValueOp) -> None:
    """The multiple may stand further down; what it is computed from, `op` has as well."""
    owner = multiple.owner
    assert isinstance(owner, ValueOp)
    block = op.parent
    assert block is not None
    if op.is_before_in_block(owner):
        owner.detach()
        block.insert_op_before(owner, op)


def _gathered_multiple(x: SSAValue, scalar: SSAValue) -> SSAValue | None:
    """`scalar * x`, where the function has it and reads it through a map."""
    for use in x.uses:
        if not isinstance(use.operation, ValueOp):
            continue
        value = use.operation.results[0]
        if scalar_product(value) == (scalar, x):
            if _is_gathered(value):
                return value
    return None


def _is_gathered(x: SSAValue) -> bool:
    """Whether a map reads the rows of `x`."""
    return any(isinstance(use.operation, AtOp) for use in x.uses)
