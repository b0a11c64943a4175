"""drop-stops: values without their gradients are the values, where no gradient is taken any more.

Under `no_grad` every value is one of which the gradient stops, and rules on products, sums and
attention would not see through. Before: `contract (stop %x), %w`. After: `contract %x, %w`. Comes
first in programs that only predict, and after autodiff in those that train.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from ...dialects.inter.values import StopOp
from ...dialects.signature import body_ops
from ..function_pass import FunctionPass


class DropStopsPass(FunctionPass):
    """Puts values in the place of those whose gradient is not taken."""

    name = "drop-stops"

    def on(self, func: FuncOp) -> None:
        for op in body_ops(func):
            if isinstance(op, StopOp):
                Rewriter.replace_op(op, [], [op.x])
