"""cut-stages: the body of a nest becomes stages and products, done one after the other for a block
of rows.

Row-wise ops between two products form one stage, so that the matrix of a product is used for many
rows. What one stage computes for another lies in memory of the block: it is yielded. Look-ups are
repeated in each stage that needs them. A product reads the nest's own rows where they lie, if it
may, and writes the buffer itself if its result is only stored.

Before: `traverse { load, apply, matmul, apply, store }`. After: `traverse { stage { load, apply,
yield }, matmul, stage { apply, store, yield } }`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra.bindings import root
from ...dialects.intra.loops import StageOp, YieldOp, is_remade, outer_inputs
from ...dialects.intra.remote import is_remote
from ...dialects.intra.rows import (
    ApplyOp,
    BroadcastOp,
    CastOp,
    ConstOp,
    DotOp,
    FoldOp,
    LoadOp,
    MatmulOp,
    OuterOp,
    ReshapeOp,
    SegmentOp,
    SliceOp,
    StoreOp,
    TraverseOp,
    nests,
)
from ...dialects.intra.steps import phases
from ...dialects.intra.syntax import element, element_bytes, length, row_bytes, row_dims
from .own_rows import users

Product = MatmulOp | OuterOp

WAITING = (ApplyOp, BroadcastOp, CastOp, ConstOp, ReshapeOp, SliceOp)
"""Ops that wait until somebody needs them where all they read is looked up: nothing of them has to
be kept until then."""


@dataclass(frozen=True)
class CutStagesPass(ModulePass):
    """Cut the bodies of scheduled nests into stages and products."""

    name = "cut-stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            for nest in uncut(func, self.name):
                if nest.schedule is None:
                    raise PassFailedException(
                        "cut-stages: a nest has no schedule: run `schedule` before"
                    )
                share_long_groups(nest)
                Cutter(nest).run()


def uncut(func: FuncOp, pass_name: str) -> list[TraverseOp]:
    """The nests of a phase, none of which is cut. Raises PassFailedException where one is."""
    found = nests(func)
    if any(isinstance(op, StageOp) for nest in found for op in nest.body.block.ops):
        raise PassFailedException(
            f"{pass_name}: a nest of @{func.sym_name.data} is cut: this comes before `cut-stages`"
        )
    return found


def share_long_groups(nest: TraverseOp) -> None:
    """Mark the group of the nest's row that may be reduced in pieces, where no pipeline does."""
    if nest.pipeline is not None:
        return
    segment = next((op for op in nest.body.block.ops if isinstance(op, SegmentOp)), None)
    if segment is not None and segment.row is nest.row and not segment.reads_row():
        segment.in_pieces = UnitAttr()


# ---------------------------------------------------------------- which stage


@dataclass
class Stage:
    """Row-wise `ops`, then the `products` whose operands they computed."""

    ops: list[Operation] = field(default_factory=list[Operation])
    products: list[Product] = field(default_factory=list[Product])


def split_stages(nest: TraverseOp) -> list[Stage]:
    """The stages of a nest in order; every op is in one, look-ups in each that needs them."""
    block = nest.body.block
    level: dict[Operation, int] = {}
    ends = {op for op in block.ops if isinstance(op, MatmulOp) or is_awaited(op, nest)}
    for op in block.ops:
        level[op] = max((_ready(x, level, ends) for x in outer_inputs(op)), default=0)
    wait(list(block.ops), level)
    store_behind_reads(list(block.ops), level)
    stages = [Stage() for _ in range(max(level.values(), default=0) + 1)]
    for op in block.ops:
        if isinstance(op, Product):
            stages[level[op]].products.append(op)
        elif not is_remade(op):
            stages[level[op]].ops.append(op)
    for stage in stages:
        stage.ops = with_lookups(stage.ops)
    return stages


def _ready(x: SSAValue, level: dict[Operation, int], ends: set[Operation]) -> int:
    if not isinstance(x, OpResult) or x.op not in level:
        return 0
    return level[x.op] + (x.op in ends)


def is_awaited(op: Operation, nest: TraverseOp) -> bool:
    """Whether a row waits for a number that is made of all of it, which is slow to arrive: that of
    other rows can be made meanwhile."""
    if not isinstance(op, FoldOp | DotOp) or length(op.result) > 1:
        return False
    assert nest.schedule is not None
    whole = max(row_bytes(x) for x in op.operands)
    return nest.schedule.pauses(whole) and reaches_row(op.result)


def reaches_row(v: SSAValue) -> bool:
    """Whether several numbers are made of one, directly or by way of single ones."""
    todo, seen = [v], set[SSAValue]()
    while todo:
        for use in todo.pop().uses:
            for r in use.operation.results:
                if isinstance(r.type, IndexType) or r in seen:
                    continue
                if length(r) > 1:
                    return True
                seen.add(r)
                todo.append(r)
    return False


def wait(ops: list[Operation], level: dict[Operation, int]) -> None:
    """Moves pointwise ops on what is looked up to the first stage that uses them."""
    waiting: set[Operation] = set()
    for op in ops:
        makers = [x.op for x in outer_inputs(op) if isinstance(x, OpResult) and x.op in level]
        if isinstance(op, WAITING) and all(m in waiting or is_remade(m) for m in makers):
            waiting.add(op)
    for op in reversed(ops):
        tops = [_top(u.operation) for r in op.results for u in r.uses]
        users = [level[top] for top in tops if top in level]  # a fusion may leave uses behind
        if op in waiting and users:
            level[op] = max(level[op], min(users))


def store_behind_reads(ops: list[Operation], level: dict[Operation, int]) -> None:
    """Moves what is stored over a row of the nest to the last stage that reads the old one: a
    look-up is made again in each."""
    loads = [op for op in ops if isinstance(op, LoadOp)]
    for store in ops:
        if isinstance(store, StoreOp):
            old = (op for op in loads if root(op.buffer) is root(store.buffer))
            tops = (_top(user) for op in old for user in users(op))
            last = max((level[top] for top in tops if top in level), default=0)
            level[store] = max(level[store], last)


def with_lookups(ops: list[Operation]) -> list[Operation]:
    """The ops with the look-ups that they read in front of them."""
    out: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in out:
            return
        for x in outer_inputs(op):
            if isinstance(x, OpResult) and x.op.parent is op.parent and is_remade(x.op):
                visit(x.op)
        out[op] = None

    for op in ops:
        visit(op)
    return list(out)


def _top(op: Operation) -> Operation:
    """The op of the nest itself that `op` is, or is inside of."""
    while (up := op.parent_op()) is not None and not isinstance(up, TraverseOp):
        op = up
    return op


# ---------------------------------------------------------------- cutting


class Cutter:
    """Builds the body of one nest anew."""

    def __init__(self, nest: TraverseOp) -> None:
        self.nest = nest
        assert nest.schedule is not None
        self.schedule = nest.schedule
        self.stages = split_stages(nest)
        self.block = Block(arg_types=[nest.row.type])
        self.block.args[0].name_hint = nest.row.name_hint
        self.here: dict[SSAValue, SSAValue] = {nest.row: self.block.args[0]}
        self.lying: dict[SSAValue, SSAValue] = {}
        self.read_here = {root(op.buffer) for op in nest.body.block.ops if isinstance(op, LoadOp)}
        self.copied = {
            v
            for stage in self.stages
            for op in stage.products
            for v in operands(op)
            if not self.lies_ready(v, padded=isinstance(op, OuterOp) and v is op.b)
        }

    def run(self) -> None:
        """Replace the body of the nest."""
        for stage in self.stages:
            self.stage(stage)
            for op in stage.products:
                self.product(op)
        old = self.nest.body.detach_block(0)
        self.nest.body.add_block(self.block)
        old.erase(safe_erase=False)  # a fusion may leave uses behind

    def stage(self, stage: Stage) -> None:
        """The row-wise ops of a stage, and copies of rows that its products cannot read."""
        loads = [v for op in stage.products for v in operands(op) if v in self.copied]
        loads = [v for v in loads if v not in self.here]
        copies = [v.op for v in loads if isinstance(v, OpResult) and is_remade(v.op)]
        ops = [op for op in stage.ops if not self.is_written_by_product(op)]
        ops = with_lookups([*ops, *copies])
        if not ops:
            return
        inside, body = dict(self.here), Block()
        for op in ops:
            body.add_op(op.clone(inside))
        kept = [v for op in ops for v in op.results if v not in self.here and self.is_kept(v, ops)]
        body.add_op(YieldOp.make([inside[v] for v in kept]))
        cut = StageOp.build_op([v.type for v in kept], body)
        self.block.add_op(cut)
        for v, result in zip(kept, cut.results, strict=True):
            result.name_hint = v.name_hint
            self.here[v] = result

    def product(self, op: Product) -> None:
        """A product, behind what it reads where it lies, before the store of its result."""
        values = dict(self.here)
        for v in op.operands:
            if v not in self.here and isinstance(v, OpResult) and v.op.parent is op.parent:
                values[v] = self.read(v.op)
        new = op.clone(values)
        if isinstance(new, MatmulOp) and self.packs(new):
            new.packed = UnitAttr()
        self.block.add_op(new)
        if isinstance(op, OuterOp):
            return
        self.here[op.result] = values[op.result]
        if (store := self.only_store(op.result)) is not None:
            self.block.add_op(store.clone(self.here))

    def read(self, op: Operation) -> SSAValue:
        """The look-up of an index, or the load of a row that a product reads where it lies."""
        (v,) = op.results
        if v not in self.lying:
            self.block.add_op(op.clone(values := dict(self.here)))
            self.lying[v] = values[v]
        return self.lying[v]

    # ------------------------------------------------------------ places

    def is_kept(self, v: SSAValue, ops: list[Operation]) -> bool:
        """Whether a value is read behind its stage: by a product, or, if to make it again is more
        than a look-up, by another stage.
        """
        if v in self.copied:
            return True
        if isinstance(v, OpResult) and is_remade(v.op):
            return False
        tops = (_top(u.operation) for u in v.uses)
        return any(top.parent is self.nest.body.block and top not in ops for top in tops)

    def lies_ready(self, v: SSAValue, padded: bool) -> bool:
        """Whether rows lie in a buffer as a product reads them; a `padded` operand is read in whole
        vectors, of which the last one would leave the buffer.
        """
        if not isinstance(v, OpResult) or not isinstance(v.op, LoadOp):
            return False
        columns = (row_dims(v.type) or (1,))[-1]
        plain = v.op.row is self.nest.row and v.op.otherwise is None
        plain = plain and not is_remote(v.op.buffer)
        return plain and not (padded and columns % self.lanes(v))

    def lanes(self, v: SSAValue) -> int:
        return self.schedule.numbers_in_vector(element_bytes(element(v.type)))

    def packs(self, op: MatmulOp) -> bool:
        """Whether the matrix is copied into panels of whole vectors before it is used."""
        n, size = op.sizes(), element_bytes(element(op.x.type))
        letters = [c for c in op.spec.data.split("->")[0].split(",")[1] if n[c] > 1]
        in_order = letters == [c for c in "bkf" if n[c] > 1]
        return self.schedule.packs(in_order, n["f"], size)

    def only_store(self, v: SSAValue) -> StoreOp | None:
        """The store of a product's result at the nest's row, where nothing else reads it."""
        store = v.get_user_of_unique_use()
        if not isinstance(store, StoreOp) or store.row is not self.nest.row:
            return None
        return None if root(store.buffer) in self.read_here else store

    def is_written_by_product(self, op: Operation) -> bool:
        if not isinstance(op, StoreOp) or not isinstance(op.value.owner, MatmulOp):
            return False
        return self.only_store(op.value) is op


def operands(op: Product) -> tuple[SSAValue, ...]:
    """The rows that a product reads."""
    return (op.x,) if isinstance(op, MatmulOp) else (op.a, op.b)
