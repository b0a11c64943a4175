"""insert-all-reduce: what is reduced over rows of all ranks is reduced on each, then over them.

Before: `inter.reduce sum %x over %N_own along ()`, a sum over the rows of all ranks together.
After: the same, which on one rank is the sum over its own rows, and `inter.all_reduce sum` of that.
Means are sums divided by counts; to a maximum, a rank without rows gives what all others exceed.
Reductions that are added are one.
From here on each op is one that a rank can do with its rows alone, or `inter.move`, or
`inter.all_reduce`; what has no such form is refused.

Comes after autodiff and expand-softmax. A program that is not partitioned stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.pointwise import AddOp
from ...dialects.inter.ranks import AllReduceOp, is_cut, stored_set
from ...dialects.inter.reduce import CountOp, OverAlong, ReduceOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import UNIT, Dom, set_name
from ...dialects.inter.values import AsUnitOp, SizeOp
from ...dialects.signature import body_ops
from ..function_pass import FunctionPass
from .extremes import beyond
from .verify_sets import verify_sets


def insert_all_reduce(func: FuncOp) -> int:
    """Adds the reductions over ranks that `func` needs; returns how many ops have some.

    Raises:
        PassFailedException: an op has no form that ranks can do.
    """
    inserted = Inserted(verify_sets(func))
    done = [inserted.replace(op) for op in body_ops(func) if isinstance(op, ValueOp)]
    for op in body_ops(func):
        if isinstance(op, AddOp):
            _reduce_sum(inserted.env, op)
    return sum(done)


def _reduce_sum(env: SetEnv, op: AddOp) -> None:
    """Sums over ranks that are added, of a weight's gradients of own rows and of ghosts, become one
    of what each rank adds."""
    reduced = [x.owner for x in op.operands]
    both = [r for r in reduced if isinstance(r, AllReduceOp) and r.kind.data == "sum"]
    if len(both) == 2 and all(r.results[0].has_one_use() for r in both):
        b = Builder(env, InsertPoint.before(op))
        Rewriter.replace_op(op, [], [b.all_reduce("sum", b.add(both[0].x, both[1].x))])
        for r in both:
            Rewriter.erase_op(r)


@dataclass
class Inserted:
    """The rewriting of one function."""

    env: SetEnv

    def replace(self, op: ValueOp) -> bool:
        """Replaces an op that reads rows of all ranks; False for others."""
        b = Builder(self.env, InsertPoint.before(op))
        match op:
            case SizeOp() if is_cut(self.env, set_name(op.set)):
                value = b.all_reduce("sum", b.size(op.set))
            case AsUnitOp() if is_cut(self.env, set_name(op.set)):
                raise PassFailedException(
                    f"insert-all-reduce: {op.name} needs all rows of {set_name(op.set)} on one rank"
                )
            case OverAlong() if self._crosses(op):
                value = self._reduced(b, op)
            case _:
                return False
        value.name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, [], [value])
        return True

    # ------------------------------------------------------------ which ops

    def _crosses(self, op: OverAlong) -> bool:
        """Whether the groups of a reduction have rows of several ranks.

        Raises:
            PassFailedException: which rows there are is not known to one rank.
        """
        if not self._differs(op, op.over):
            return False
        groups = self.env.reduced(op.over, op.along_keys)
        return groups.set == UNIT or not self._differs(op, groups)

    def _differs(self, op: ValueOp, d: Dom) -> bool:
        """Whether the stored rows of a domain are other ones on each rank: all together, each is on
        one."""
        if len(d.keys) < 2:
            return is_cut(self.env, stored_set(self.env, d))
        ends = [self.env.codomain(d.set, k) for k in d.keys]
        if any(is_cut(self.env, e) for e in ends):
            return True
        if not is_cut(self.env, d.set):
            return False
        raise PassFailedException(
            f"insert-all-reduce: {op.name} of the pairs {d}, which several ranks may have"
        )

    # ------------------------------------------------------------ what they become

    def _reduced(self, b: Builder, op: OverAlong) -> SSAValue:
        match op:
            case CountOp():
                return self._count(b, op)
            case ReduceOp() if (kind := op.kind.data) in ("sum", "mul"):
                return b.all_reduce(kind, self._here(b, op, kind))
            case ReduceOp() if op.kind.data == "mean":
                total = b.all_reduce("sum", self._here(b, op, "sum"))
                divisor = b.pointwise("maximum", self._count(b, op), b.const(1, (), op.type.elem))
                return b.div(total, self._as_row(b, divisor, op))
            case ReduceOp() if op.kind.data in ("max", "min"):
                return self._extreme(b, op)
            case _:
                what = f"{op.name} {op.kind.data}" if isinstance(op, ReduceOp) else op.name
                raise PassFailedException(
                    f"insert-all-reduce: {what} over {op.over} has no form over ranks"
                )

    @staticmethod
    def _here(b: Builder, op: ReduceOp, kind: str) -> SSAValue:
        """The reduction of the rows of one rank."""
        return b.reduce(kind, op.x, op.over, op.along_keys)

    @staticmethod
    def _count(b: Builder, op: OverAlong) -> SSAValue:
        return b.all_reduce("sum", b.count(op.over, op.along_keys, op.type.elem))

    def _extreme(self, b: Builder, op: ReduceOp) -> SSAValue:
        """A maximum: that of the ranks that have a row, 0 where none has."""
        elem, kind = op.type.elem, op.kind.data
        count, zero = b.count(op.over, op.along_keys, elem), b.const(0, (), elem)
        nothing = self._as_row(b, b.const(beyond(elem, kind), (), elem), op)
        here = self._as_row(b, b.pointwise("gt", count, zero), op)
        most = b.all_reduce(kind, b.where(here, self._here(b, op, kind), nothing))
        there = self._as_row(b, b.pointwise("gt", b.all_reduce("max", count), zero), op)
        return b.where(there, most, self._as_row(b, zero, op))

    @staticmethod
    def _as_row(b: Builder, one: SSAValue, op: OverAlong) -> SSAValue:
        """A number a row, for rows like those of the result of `op`."""
        return b.reshape(one, (1,) * len(op.type.dims))


class InsertAllReducePass(FunctionPass):
    """Adds the reductions over ranks that a program on the rows of ranks needs."""

    name = "insert-all-reduce"

    def on(self, func: FuncOp) -> None:
        insert_all_reduce(func)
