"""Rows of other ranks: moves, which start and are awaited, and reductions over ranks."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ...dialects.inter import ranks, reduce
from ...dialects.inter.types import Dom, rows, set_name
from ...dialects.intra import exchange
from ...dialects.intra.bindings import AllocOp
from .context import Lowering


def lower_move(low: Lowering, op: ranks.MoveOp) -> None:
    """Awaited at once; overlap-exchanges puts between what can be done meanwhile."""
    source, target = Dom(set_name(op.source)), Dom(set_name(op.target))
    sent = low.buffer(op.x) if rows(op.x).dom == source else low.copied(op.x, source)
    t, plan = op.type, StringAttr(op.plan)
    received = low.host.buffer(target, t.dims, t.elem)
    low.host.steps += [
        exchange.MoveStartOp.make([sent, received], [], plan=plan),
        exchange.MoveWaitOp.make([received], [], plan=plan),
    ]
    low.alias(op, received)


def lower_all_reduce(low: Lowering, op: ranks.AllReduceOp) -> None:
    t = op.type
    buffer = low.buffer(op.x) if is_free(low, op.x) else low.copied(op.x, t.dom)
    low.host.steps.append(exchange.AllReduceOp.make([buffer], [], kind=op.kind))
    low.alias(op, buffer)


def is_free(low: Lowering, x: SSAValue) -> bool:
    """Whether a value has memory of its own that nobody else reads."""
    made = isinstance(x.owner, reduce.ReduceOp | reduce.CountOp) and x.has_one_use()
    return made and isinstance(low.buffer(x).owner, AllocOp)
