"""Loops: a nest over the stored rows of a domain, and the reduction of one group in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, IsTerminator, NoTerminator, Pure

from ..assembly import KNOWN, op_definition
from ..walks import ops_within
from .arithmetic import ConstOp
from .bindings import (
    INDEX64,
    BindingOp,
    GroupOp,
    IndexMapOp,
    MembersOp,
    MemoryOp,
    OffsetsOp,
    PairIndexOp,
    SizeOp,
    domain_text,
    known_domain,
    root,
)
from .indices import FirstOp, LengthOp, LookupOp, PositionOp
from .memory import LoadOp, StoreOp, TotalOp, in_order, need_number
from .products import MatmulOp, OuterOp
from .remote import IssueOp
from .schedule import GridAttr, PipelineAttr, ScheduleAttr
from .steps import Step, steps
from .syntax import IntraOp, inside, need

REDUCTIONS = ("sum", "max", "min", "mul", "last")
WRITERS = (StoreOp, TotalOp, OuterOp)
"""Ops of a nest that write to a buffer: they stand in the nest itself, never in a segment."""


@op_definition
class YieldOp(IntraOp):
    """What a segment reduces, or a stage hands on."""

    name = "intra.yield"
    values = var_operand_def()
    assembly_format = f"$values {KNOWN} attr-dict"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(SegmentOp, StageOp)))


class Yielding(IntraOp):
    """An op whose body ends in what it gives."""

    results_ = var_result_def()
    body = region_def("single_block")

    @property
    def yielded(self) -> YieldOp:
        """The end of the body."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last


@op_definition
class SegmentOp(Yielding):
    """Reduce the rows of one group.

    ```
    %s, %m = intra.segment %p in %offsets[%i] ["sum", "max"] { ..  intra.yield %a, %b } : T, T
    ```
    `%p` runs over the positions of group `%i`, which `members` and `member_map` of the same groups
    turn into rows; an empty group gives 0 (`mul`: 1), `last` takes the last row's value.

    With `in_pieces` in front of the body a group that is too long for one thread is reduced in
    pieces by several, whose results are combined in order (`cut-stages`). With `in_strips` single
    numbers of several members are computed together, as lanes of one vector
    (dialects/intra/strips.py, `schedule`).
    """

    name = "intra.segment"
    offsets = operand_def(INDEX64)
    row = operand_def(IndexType)
    kinds = prop_def(ArrayAttr[StringAttr])
    in_pieces = opt_prop_def(UnitAttr)
    in_strips = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Loop>(custom<Group>($offsets, $row, $kinds, $in_pieces, $in_strips), $body) "
        f"{KNOWN} attr-dict `:` type($results_)"
    )

    @classmethod
    def build_op(
        cls,
        offsets: SSAValue,
        row: SSAValue,
        kinds: Sequence[str],
        types: Sequence[Attribute],
        body: Block,
    ) -> Self:
        """A segment around a finished body."""
        return cls.build(
            operands=[offsets, row],
            result_types=[types],
            properties={"kinds": ArrayAttr(StringAttr(k) for k in kinds)},
            regions=[Region(body)],
        )

    @property
    def position(self) -> SSAValue:
        """The position in the table of members."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        args = self.body.block.args
        one = len(args) == 1 and isinstance(args[0].type, IndexType)
        need(one, "the body of a segment takes one index, the position")
        y = self.body.block.last_op
        if not isinstance(y, YieldOp):
            need(False, "a segment ends in intra.yield with a value for each reduction")
            return
        counts = (len(y.values), len(self.results), len(self.kinds))
        need(
            counts[0] == counts[1] == counts[2] > 0,
            "a segment has one kind and one result for each yielded value, "
            f"here are {counts[2]} kinds, {counts[1]} results and {counts[0]} values",
        )
        for v, r, k in zip(y.values, self.results, self.kinds, strict=True):
            need(k.data in REDUCTIONS, f"kind {k.data!r} is none of {', '.join(REDUCTIONS)}")
            need(v.type == r.type, f"yields {v.type} for a result {r.type}")
            if k.data != "last":
                need_number(v)
        self.check_positions()

    def check_positions(self) -> None:
        """Raises VerifyException where a position is used as a row, or with another group."""
        offsets = self.offsets.owner
        for use in self.position.uses:
            op = use.operation
            if isinstance(op, LoadOp) and (rows := in_order(op.buffer)) is not None:
                ordered = isinstance(offsets, OffsetsOp) and rows.is_in_order_of(offsets)
                need(ordered, f"the rows of {rows.buffer} lie in the order of other groups")
                continue
            if not isinstance(op, LookupOp):
                need(False, f"{op.name} reads a position: look it up in intra.members first")
                return
            table = op.table.owner
            if isinstance(table, GroupOp) and isinstance(offsets, OffsetsOp):
                need(
                    table.same_group(offsets),
                    f"positions of {offsets.group_text()} are looked up in the members of "
                    f"{table.group_text()}: use the table of the same groups",
                )
            need(
                not isinstance(table, IndexMapOp | PairIndexOp),
                "a table of rows takes no position: use intra.members or intra.member_map",
            )

    def reads_row(self) -> bool:
        """Whether what the body computes belongs to the row of the nest, not to the group alone:
        it reads the row, or what no look-up of a group gives.
        """
        todo = [x for x in outer_inputs(self) if x is not self.row]
        if any(x is self.row for op in self.body.walk() for x in op.operands):
            return True
        while todo:
            x = todo.pop()
            if x is self.row:
                return True
            if isinstance(x, OpResult) and x.op.parent is self.parent:
                if not is_remade(x.op):
                    return True
                todo += x.op.operands
        return False


REMADE = (LookupOp, LoadOp, FirstOp, ConstOp, LengthOp, PositionOp)
"""Ops that every stage repeats for itself: cheaper than to hand on what they give."""


def is_remade(op: Operation) -> bool:
    """Whether the op and all it reads are look-ups of the row: nothing to keep from stage to
    stage.
    """
    if not isinstance(op, REMADE):
        return False
    return all(
        not isinstance(x, OpResult) or x.op.parent is not op.parent or is_remade(x.op)
        for x in op.operands
    )


def outer_inputs(op: Operation) -> list[SSAValue]:
    """What the op and the ops in its regions read from outside them."""
    inner = {id(r) for o in op.walk() if o is not op for r in o.results}
    inner |= {id(a) for region in op.regions for b in region.blocks for a in b.args}
    return [x for o in op.walk() for x in o.operands if id(x) not in inner]


@op_definition
class StageOp(Yielding):
    """Part of a nest that runs over a block of rows before the next part does.

    ```
    %h, %s = intra.stage { ..  intra.yield %a, %b } : T, T
    %y = intra.matmul %h, %W {spec = "k,kf->f"}
    ```
    A nest that is cut (`cut-stages`) holds stages and products only: what a stage yields and what a
    product gives lie in memory of the block, for later stages and products. A load in the nest
    itself is read by products where it lies, and a store there is written by the product whose
    result it stores.
    """

    name = "intra.stage"
    traits = lazy_traits_def(lambda: (HasParent(TraverseOp),))
    assembly_format = "$body attr-dict (`:` type($results_)^)?"

    @classmethod
    def build_op(cls, types: Sequence[Attribute], body: Block) -> Self:
        """A stage around a finished body."""
        return cls.build(result_types=[types], regions=[Region(body)])

    def verify_(self) -> None:
        y = self.body.block.last_op
        ends = isinstance(y, YieldOp) and not self.body.block.args
        need(ends, "a stage takes nothing and ends in intra.yield")
        have = [v.type for v in y.operands] if y is not None else []
        want = [r.type for r in self.results]
        need(have == want, "a stage has one result of its type for each yielded value")
        nest = self.parent_op()
        assert isinstance(nest, TraverseOp)
        nest.check_cut()


@op_definition
class TraverseOp(IntraOp, Step):
    """A parallel loop over the stored rows of a domain.

    ```
    intra.traverse %i in %n { .. } {schedule = ..}
    ```
    Each row is computed by one thread; a row may read any row of a buffer that an earlier nest
    wrote, and of the buffers that this nest writes only its own.
    """

    name = "intra.traverse"
    size = operand_def(IndexType)
    schedule = opt_prop_def(GridAttr | ScheduleAttr)
    pipeline = opt_prop_def(PipelineAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = (
        f"custom<Loop>($size, $body) {KNOWN} custom<Schedule>($schedule, $pipeline) attr-dict"
    )

    @classmethod
    def build_op(cls, size: SSAValue, body: Block) -> Self:
        """A nest around a body that is finished or will grow."""
        return cls.build(operands=[size], regions=[Region(body)])

    @property
    def row(self) -> SSAValue:
        """The row that the body computes."""
        return self.body.block.args[0]

    @property
    def may_move(self) -> bool:
        return True

    def reads(self) -> set[SSAValue]:
        return buffers_read(ops_within(self))

    def writes(self) -> set[SSAValue]:
        return buffers_written(ops_within(self))

    def verify_(self) -> None:
        args = self.body.block.args
        one = len(args) == 1 and isinstance(args[0].type, IndexType)
        need(one, "the body of a nest takes one index, the row")
        for op in ops_within(self):
            need(not isinstance(op, TraverseOp), "nests do not nest: use intra.segment inside")
            need(
                not isinstance(op, BindingOp | MemoryOp | Step),
                f"{op.name} stands in a nest: move it to the phase, above the nest",
            )
            if isinstance(op, WRITERS):
                need(
                    inside(op, SegmentOp) is None,
                    f"{op.name} stands in the nest itself: move it out of the segment",
                )
            if isinstance(op, MatmulOp) and op.index is not None:
                need(
                    inside(op, SegmentOp) is None,
                    "in a segment all members are multiplied with one matrix: move the product "
                    "with a matrix of its own for each out of it",
                )
            need(
                not isinstance(op, IssueOp) or inside(op, SegmentOp) is not None,
                "rows of other ranks are issued at the members of a group: load them elsewhere",
            )
            if isinstance(op, StoreOp):
                need(
                    op.row is self.row or self.is_member(op.row),
                    "a nest stores its own row only, or each of the rows it groups once",
                )
        if isinstance(self.size.owner, SizeOp):
            self.check_domain(self.size.owner)

    def check_cut(self) -> None:
        """Raises VerifyException where the nest is not cut into stages and products."""
        for op in self.body.block.ops:
            match op:
                case StageOp() | MatmulOp() | OuterOp():
                    good = True
                case LookupOp() | LoadOp():
                    plain = not isinstance(op, LoadOp) or op.otherwise is None
                    good = op.row is self.row and plain
                case StoreOp():
                    good = op.row is self.row and isinstance(op.value.owner, MatmulOp)
                    good = good and op.value.has_one_use()
                case _:
                    good = False
            need(
                good,
                f"{op.name} stands in no stage: a nest that is cut holds stages, products, what "
                "these read where it lies, and stores of what they give (run `cut-stages`)",
            )
        self.check_pieces()

    def in_pieces(self) -> list[SegmentOp]:
        """The groups that are reduced in pieces."""
        segments = (op for op in self.body.walk() if isinstance(op, SegmentOp))
        return [op for op in segments if op.in_pieces is not None]

    def check_pieces(self) -> None:
        """Raises VerifyException where other groups are reduced in pieces than may be."""
        pieces = self.in_pieces()
        good = all(op.row is self.row and not op.reads_row() for op in pieces)
        if self.pipeline is None:
            need(
                good and len(pieces) < 2,
                "one group of a nest at most is reduced in pieces, its own, whose body does not "
                "depend on the row",
            )
            return
        remote = [op for op in pieces if any(isinstance(o, IssueOp) for o in op.body.walk())]
        need(
            good and len(remote) == 1 and len(pieces) < 3,
            "a pipeline reduces in pieces a group whose rows are issued, and at most one of rows "
            "that lie here, both the nest's own, whose bodies do not depend on the row",
        )

    def is_member(self, row: SSAValue) -> bool:
        """Whether a row is found in the members of groups of the nest's domain: in a nest that
        visits the rows in the order of groups, each is one.
        """
        lookup, size = row.owner, self.size.owner
        if not isinstance(lookup, LookupOp) or not isinstance(size, SizeOp):
            return False
        members = lookup.table.owner
        mine = isinstance(members, MembersOp) and members.domain == size.domain
        return mine and lookup.row is self.row

    def check_domain(self, size: SizeOp) -> None:
        """Raises VerifyException where the nest's row is used with rows of another domain."""
        here = domain_text(size.domain)
        for use in self.row.uses:
            op = use.operation
            if isinstance(op, LoadOp | StoreOp | IssueOp):
                at = known_domain(op.buffer)
                there = domain_text(at[0]) if at is not None else here
                need(
                    at is None or at[0] == size.domain,
                    f"the rows of {here} are not those of the buffer, {there}: find the row with "
                    "intra.lookup or intra.first",
                )
            table = op.table.owner if isinstance(op, LookupOp) else None
            if isinstance(table, IndexMapOp | PairIndexOp):
                need(
                    isinstance(table, PairIndexOp) or table.domain == size.domain,
                    f"{table.name} is of {table.domain}, the nest runs over {here}",
                )


def buffers_read(ops: Iterable[Operation]) -> set[SSAValue]:
    """What the ops of a nest read: allocations, inputs and outputs, not views of them."""
    out: set[SSAValue] = set()
    for op in ops:
        if isinstance(op, LoadOp | IssueOp):
            out.add(root(op.buffer))
        elif isinstance(op, MatmulOp):
            out.add(root(op.weight))
    return out


def buffers_written(ops: Iterable[Operation]) -> set[SSAValue]:
    """What they write."""
    return {root(op.buffer) for op in ops if isinstance(op, WRITERS)}


def nests(func: FuncOp) -> list[TraverseOp]:
    """The steps of a phase that are nests, in order."""
    return [step for step in steps(func) if isinstance(step, TraverseOp)]
