"""What reductions over rows of ranks become: over each part, and then over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.reduce import CountOp, OverAlong, ReduceOp, SoftmaxOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import Dom
from .far_reductions import FarReduction, brought_home, is_far
from .sets import Cut


class Values(Protocol):
    """The rows of old values on new sets."""

    def on(self, v: SSAValue, name: str) -> SSAValue:
        """The rows of a value as a new set has them."""
        ...

    def join(self, s: str, op: ValueOp, keys: Sequence[str]) -> str:
        """The one set that has all rows of an old set, for an op that groups them by `keys`."""
        ...


@dataclass
class Reductions:
    """Reductions, softmax and counts over old sets; `old` has the sets before."""

    b: Builder
    cut: Cut
    old: SetEnv
    values: Values

    def made(self, op: OverAlong) -> list[SSAValue]:
        """The result: of one that has a row for each row of its set those of each part.

        Raises:
            PassFailedException: it has no form over parts.
        """
        s, along = op.over.set, op.along_keys
        parts = self.cut.parts[s]
        if self._lies_with_groups(op):
            ends = [(p, self.b.env.codomain(p, along[0])) for p in parts]
            found = [self._once(op, Dom(part), groups) for part, groups in ends]
            reached, of_groups = {g for _, g in ends}, self.old.codomain(s, along[0])
            without = [p for p in self.cut.parts[of_groups] if p not in reached]
            return [*found, *(self._empty(op, part) for part in without)]
        sums = isinstance(op, CountOp) or (
            isinstance(op, ReduceOp) and op.kind.data in ("sum", "mean")
        )
        if len(parts) > 1 and sums and not op.over.keys and len(along) < 2:
            return [self._of_parts(op, parts)]
        if isinstance(op, ReduceOp) and op.kind.data == "last" and parts != (s,):
            # edges of one rank have the order of the whole graph, and the loops of a node are there
            if not self.cut.loops.issuperset(parts):
                raise PassFailedException(
                    f"partition: reduce last over {s}: its rows have no order across ranks"
                )
        if is_far(self.b, self.cut, op):
            assert isinstance(op, ReduceOp | SoftmaxOp)
            x = {p: self.values.on(op.x, p) for p in parts}
            return FarReduction(self.b, self.cut, op, x).made()
        over = Dom(self.values.join(s, op, (*op.over.keys, *along)), op.over.keys)
        groups = op.type.dom.set
        if len(parts) == 1 and len(along) == 1 and not op.over.keys:
            groups = self.b.env.codomain(over.set, along[0])
        return [self._once(op, over, groups)]

    def _lies_with_groups(self, op: OverAlong) -> bool:
        """Whether each part of the reduced set leads to one of the groups' set: a filter's edges by
        `parent` to the edges that it is of."""
        if op.over.keys or len(op.along_keys) != 1:
            return False
        return len(self.cut.parts[self.old.codomain(op.over.set, op.along_keys[0])]) > 1

    def _empty(self, op: OverAlong, groups: str) -> SSAValue:
        """The result for groups without a row, as remote edges have none where loops are chosen."""
        b, t = self.b, op.type
        if isinstance(op, ReduceOp) and op.otherwise is not None:
            return b.widen(self.values.on(op.otherwise, groups), Dom(groups))
        value = float(isinstance(op, ReduceOp) and op.kind.data == "mul")
        return b.widen(b.const(value, t.dims, t.elem), Dom(groups))

    def _once(self, op: OverAlong, over: Dom, groups: str) -> SSAValue:
        along, on = op.along_keys, self.values.on
        if isinstance(op, CountOp):
            return self.b.count(over, along, op.type.elem)
        if isinstance(op, SoftmaxOp):
            return self.b.softmax(on(op.x, over.set), over, along)
        assert isinstance(op, ReduceOp)
        return self.b.reduce(
            op.kind.data,
            on(op.x, over.set),
            over,
            along,
            None if op.otherwise is None else on(op.otherwise, groups),
            op.zero_ties is not None,
            op.every is not None,
        )

    def _of_parts(self, op: OverAlong, parts: Sequence[str]) -> SSAValue:
        """A sum, count or mean over local and remote edges."""
        b, elem = self.b, op.type.elem
        counts = [self._home(b.count(p, op.along_keys, elem)) for p in parts]
        if isinstance(op, CountOp):
            return added(b, counts)
        assert isinstance(op, ReduceOp)
        each = [b.reduce("sum", self.values.on(op.x, p), p, op.along_keys) for p in parts]
        total = added(b, [self._home(v) for v in each])
        if op.kind.data == "sum":
            return total
        divisor = b.pointwise("maximum", added(b, counts), b.const(1.0, (), elem))
        return b.div(total, b.reshape(divisor, (1,) * len(op.type.dims)))

    def _home(self, v: SSAValue) -> SSAValue:
        return brought_home(self.b, self.cut, v, "sum")


def added(b: Builder, values: Sequence[SSAValue]) -> SSAValue:
    """The sum of some values on one domain."""
    total, *others = values
    for v in others:
        total = b.add(total, v)
    return total
