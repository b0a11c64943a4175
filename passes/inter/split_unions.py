"""split-unions: what runs over local and remote edges together runs over each.

Before: `inter.reduce max %e over %all along dst`, with `%all = inter.union %local, %remote` and %e
computed row by row of stacked values. After: the maximum over %local and that over %remote, and
the greater of the two. So nothing is stacked, no value is stored an edge because it is, a row of
the result reads its edges as in the program of one rank, and what local edges need not wait for is
done while rows of other ranks are under way.

A union is split where one part of it leads to rows that arrive by messages and another does not,
and where every op over it has a form over parts: reductions and counts along one map or all rows,
reads, what works row by row, stacks and parts. Groups that are empty in a part are left out of a
maximum.

Comes after expand-softmax, and before reorder-linear, which takes the division out of each sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.ranks import PEER
from ...dialects.inter.reduce import CountOp, DropoutOp, OverAlong, ReduceOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import UnionOp
from ...dialects.inter.types import Dom, SetType, rows, set_name, set_type
from ...dialects.inter.values import AtOp, PartOp, StackOp
from ...dialects.signature import body_ops
from ..function_pass import FunctionPass
from .verify_sets import verify_sets

MERGED = ("sum", "mean", "max", "min", "mul")
"""Reductions of all rows that follow from those of parts."""


def split_unions(func: FuncOp) -> int:
    """Splits the unions of `func` that can be; returns how many. Linear in ops for each."""
    env = verify_sets(func)
    split = 0
    for op in mixed_unions(func, env):
        name = set_name(op.results[0])
        over = [x for x in body_ops(func) if _speaks_of(x, name)]
        if all(_has_parts(x, name) for x in over):
            _Split(env, op).rewrite(over)
            split += 1
    return split


def mixed_unions(func: FuncOp, env: SetEnv) -> list[UnionOp]:
    """The unions of which some parts read rows that arrive, and others do not; but for those that
    join-parts has made one set of, with what they read."""

    def is_mixed(op: UnionOp) -> bool:
        far = [reads_messages(env, set_name(s)) for s in op.sets]
        return any(far) and not all(far) and not op.joined_ends()

    return [op for op in body_ops(func) if isinstance(op, UnionOp) and is_mixed(op)]


def reads_messages(env: SetEnv, name: str) -> bool:
    """Whether maps of a set, or of its parts, lead to rows that arrive by messages."""
    info = env.info(name)
    arrive = any(PEER in env.info(m.codomain).maps for m in info.maps.values())
    return arrive or any(reads_messages(env, p) for p in info.type.part_names)


def _speaks_of(op: Operation, union: str) -> bool:
    """Whether an op is over the rows of a set: makes some, reads some, or takes the set."""
    values = (*op.operands, *op.results)
    if isinstance(op, UnionOp) and set_name(op.results[0]) == union:
        return False
    return any(
        union
        in (v.type.label, *v.type.part_names, *(m.codomain for m in v.type.map_dict().values()))
        if isinstance(v.type, SetType)
        else rows(v).dom.set == union
        for v in values
    )


def _has_parts(op: Operation, union: str) -> bool:
    """Whether an op over a union can be done for its parts."""
    if not isinstance(op, ValueOp) or isinstance(op, DropoutOp):
        return False
    if isinstance(op, OverAlong):
        kind = op.kind.data if isinstance(op, ReduceOp) else "count"
        known = isinstance(op, CountOp) or kind in MERGED
        return known and op.over == Dom(union) and len(op.along_keys) < 2
    if len(op.type.dom.keys) > 1 or op.type.dom.set not in (union, *_parts_of(op)):
        return False
    named = [set_name(x) for x in op.operands if isinstance(x.type, SetType)]
    return not named or isinstance(op, AtOp | StackOp | PartOp)


def _parts_of(op: ValueOp) -> tuple[str, ...]:
    return set_type(op.set).part_names if isinstance(op, PartOp) else ()


@dataclass
class _Split:
    """The rewriting of the ops over one union."""

    env: SetEnv
    union: UnionOp
    values: dict[SSAValue, list[SSAValue]] = field(default_factory=dict[SSAValue, list[SSAValue]])
    """Rows of the union as rows of its parts, which may be stored on fewer."""

    def rewrite(self, ops: Sequence[Operation]) -> None:
        self.name = set_name(self.union.results[0])
        self.parts = [set_name(s) for s in self.union.sets]
        for op in ops:
            assert isinstance(op, ValueOp)
            self._op(op, Builder(self.env, InsertPoint.before(op)))
        for op in reversed(ops):
            if not any(v.uses for v in op.results):
                Rewriter.erase_op(op)

    def _op(self, op: ValueOp, b: Builder) -> None:
        match op:
            case StackOp():
                self.values[op.results[0]] = list(op.xs)
            case PartOp():
                if op.x in self.values:  # else of an argument, the gradient of a result
                    x = self.values[op.x][op.index.data]
                    self._replace(op, b.widen(x, op.type.dom))
            case ReduceOp() | CountOp():
                self._replace(op, self._reduced(op, b))
            case _:
                made = [self._on_part(op, i, part, b) for i, part in enumerate(self.parts)]
                self.values[op.results[0]] = made

    def _replace(self, op: ValueOp, value: SSAValue) -> None:
        value.name_hint = value.name_hint or op.results[0].name_hint
        op.results[0].replace_all_uses_with(value)

    def _on(self, x: SSAValue, i: int, b: Builder) -> SSAValue:
        if rows(x).dom.set != self.name:
            return x
        return self.values[x][i] if x in self.values else b.part(i, self.name, x)

    def _on_part(self, op: ValueOp, i: int, part: str, b: Builder) -> SSAValue:
        """What an op that works row by row gives for one part."""
        new = op.clone()
        new.operands = [
            b.set(part) if isinstance(x.type, SetType) else self._on(x, i, b) for x in op.operands
        ]
        dom = self.env.total(new, Dom(part, op.type.dom.keys))
        Rewriter.replace_value_with_new_type(new.results[0], op.type.on(dom))
        new.verify_()
        return b.insert(new)

    # ------------------------------------------------------------ reductions

    def _reduced(self, op: OverAlong, b: Builder) -> SSAValue:
        if isinstance(op, CountOp):
            return self._added(b, self._counts(op, b))
        assert isinstance(op, ReduceOp)
        kind = op.kind.data
        of_parts = "sum" if kind == "mean" else kind
        each = [
            b.reduce(of_parts, self._on(op.x, i, b), part, op.along_keys)
            for i, part in enumerate(self.parts)
        ]
        match kind:
            case "sum":
                return self._added(b, each)
            case "mul":
                return self._folded(b, "mul", each)
            case "mean":
                count = self._added(b, self._counts(op, b))
                divisor = b.pointwise("maximum", count, b.const(1.0, (), op.type.elem))
                return b.div(self._added(b, each), self._as_row(b, divisor, op))
            case _:
                return self._extreme(op, each, b)

    def _counts(self, op: OverAlong, b: Builder) -> list[SSAValue]:
        return [b.count(p, op.along_keys, op.type.elem) for p in self.parts]

    def _added(self, b: Builder, each: Sequence[SSAValue]) -> SSAValue:
        return self._folded(b, "add", each)

    @staticmethod
    def _folded(b: Builder, name: str, each: Sequence[SSAValue]) -> SSAValue:
        total, *others = each
        for x in others:
            total = b.pointwise(name, total, x)
        return total

    def _extreme(self, op: ReduceOp, each: Sequence[SSAValue], b: Builder) -> SSAValue:
        """The greatest or least of the parts in which a group has rows."""
        name = {"max": "maximum", "min": "minimum"}[op.kind.data]
        found, known = each[0], self._count_unless_all(op, self.parts[0], b)
        for x, part in zip(each[1:], self.parts[1:], strict=True):
            more = self._count_unless_all(op, part, b)
            both = self._where_any(b, more, b.pointwise(name, found, x), found, op)
            found = self._where_any(b, known, both, x, op)
            known = None if known is None or more is None else b.add(known, more)
        return found

    def _count_unless_all(self, op: ReduceOp, part: str, b: Builder) -> SSAValue | None:
        """How many rows of a part each group has; None where every group has some."""
        along = op.along_keys
        if along and "onto" in self.env.flags(part, along[0]):
            return None
        return b.count(part, along, op.type.elem)

    def _where_any(
        self, b: Builder, count: SSAValue | None, some: SSAValue, none: SSAValue, op: ValueOp
    ) -> SSAValue:
        if count is None:
            return some
        there = b.pointwise("gt", count, b.const(0, (), op.type.elem))
        return b.where(self._as_row(b, there, op), some, none)

    @staticmethod
    def _as_row(b: Builder, one: SSAValue, op: ValueOp) -> SSAValue:
        """A number a row, for rows like those of the result of `op`."""
        return b.reshape(one, (1,) * len(op.type.dims))


@dataclass(frozen=True)
class SplitUnionsPass(FunctionPass):
    """Does for local and for remote edges what runs over both together."""

    name = "split-unions"

    def on(self, func: FuncOp) -> None:
        split_unions(func)
