"""seed-loss: the gradients of a loss are computed with the loss, for a cotangent of 1.

A function whose only cotangent is that of one number is the whole training step: gradients are
linear in the cotangent, so `gradient(d) = gradient(1) * d`. The pass puts 1 in the cotangent's
place, and multiplies each gradient by the cotangent at the end. The phases then split in front of
that multiplication: forward and backward run in one go, and share what they have at hand (logits
and their gradients stay in a block of rows); only the gradients themselves wait for the caller.

Before: `%g = f(%x, %d)`. After: `%1 = f(%x, 1.0)`, `%g = inter.mul %1, %d`.

The price: the gradients are computed even if the caller never asks for them. Functions with other
differentiable results keep their backward half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects.attributes import GRAD, SEEDED
from ...dialects.inter.builder import Builder
from ...dialects.inter.types import UNIT, rows
from ...dialects.signature import result_attributes, return_of
from ..analysis.costs import element_bytes
from ..analysis.dependence import cotangents
from ..function_pass import FunctionPass
from .verify_sets import verify_sets


def seed_loss(func: FuncOp) -> bool:
    """Seeds `func` where its only cotangent is that of one number; says whether it did."""
    found = cotangents(func)
    if SEEDED in func.attributes or len(found) != 1 or not _is_number(found[0]):
        return False
    (cotangent,) = found
    env, t = verify_sets(func), rows(cotangent)
    seed = Builder(env, InsertPoint.at_start(func.body.block)).const(1.0, t.dims, t.elem)
    cotangent.replace_all_uses_with(seed)
    ret = return_of(func)
    b = Builder(env, InsertPoint.before(ret))
    for i, attrs in enumerate(result_attributes(func)):
        if GRAD in attrs:
            ret.operands[i] = _scaled(b, ret.operands[i], cotangent)
    func.attributes[SEEDED] = UnitAttr()
    return True


def _scaled(b: Builder, gradient: SSAValue, cotangent: SSAValue) -> SSAValue:
    """In the wider of their types: a loss may have another than what it is differentiated by."""
    t = rows(gradient)
    wide = max(t, rows(cotangent), key=element_bytes).elem
    factor = b.cast(b.reshape(cotangent, (1,) * len(t.dims)), wide)
    return b.cast(b.mul(b.cast(gradient, wide), factor), t.elem)


def _is_number(value: SSAValue) -> bool:
    t = rows(value)
    return t.dom.set == UNIT and math.prod(t.dims) == 1


@dataclass(frozen=True)
class SeedLossPass(FunctionPass):
    """Computes the gradients of a loss in the forward half."""

    name = "seed-loss"

    def on(self, func: FuncOp) -> None:
        seed_loss(func)
