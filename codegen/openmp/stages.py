"""Cut the body of a nest into stages that run over a block of rows one after the other.

Row-wise ops between two products form one stage; a product over a block of rows is a stage of its
own, so that its matrix tile is used for many rows. What one stage computes for another lies in a
block-local buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.intra import rows


@dataclass
class Stage:
    """Row-wise `ops`, then the `products` whose operands they computed."""

    ops: list[Operation] = field(default_factory=list[Operation])
    products: list[rows.MatmulOp | rows.OuterOp] = field(
        default_factory=list[rows.MatmulOp | rows.OuterOp]
    )


REMADE = (rows.LookupOp, rows.LoadOp, rows.FirstOp, rows.ConstOp, rows.LengthOp, rows.PositionOp)
"""Ops repeated in every stage that uses them: cheaper than a block-local copy."""


POINTWISE = (
    rows.ApplyOp,
    rows.BroadcastOp,
    rows.CastOp,
    rows.ConstOp,
    rows.ReshapeOp,
    rows.SliceOp,
)
"""Ops that wait until somebody needs them where all they read is looked up: nothing of them has to
be kept until then."""


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


def split_stages(nest: rows.TraverseOp) -> list[Stage]:
    """The stages of a nest in order; every op is in one, look-ups in each that needs them."""
    block = nest.body.block
    level: dict[Operation, int] = {}
    for op in block.ops:
        level[op] = max((_ready(x, op, level) for x in _inputs(op)), default=0)
    wait(list(block.ops), level)
    stages = [Stage() for _ in range(max(level.values(), default=0) + 1)]
    for op in block.ops:
        if isinstance(op, rows.MatmulOp | rows.OuterOp):
            stages[level[op]].products.append(op)
        elif not is_remade(op):
            stages[level[op]].ops.append(op)
    for stage in stages:
        stage.ops = with_lookups(stage.ops)
    return stages


def wait(ops: list[Operation], level: dict[Operation, int]) -> None:
    """Moves pointwise ops on what is looked up to the first stage that uses them."""
    waiting: set[Operation] = set()
    for op in ops:
        makers = [x.op for x in _inputs(op) if isinstance(x, OpResult) and x.op in level]
        if isinstance(op, POINTWISE) and all(m in waiting or is_remade(m) for m in makers):
            waiting.add(op)
    for op in reversed(ops):
        tops = [_top(u.operation) for r in op.results for u in r.uses]
        users = [level[top] for top in tops if top in level]  # a fusion may leave uses behind
        if op in waiting and users:
            level[op] = max(level[op], min(users))


def _inputs(op: Operation) -> list[SSAValue]:
    """What the op and the ops in its regions read from outside them."""
    inner = {id(r) for o in op.walk() if o is not op for r in o.results}
    inner |= {id(a) for region in op.regions for b in region.blocks for a in b.args}
    return [x for o in op.walk() for x in o.operands if id(x) not in inner]


def _ready(x: SSAValue, user: Operation, level: dict[Operation, int]) -> int:
    if not isinstance(x, OpResult) or x.op not in level:
        return 0
    return level[x.op] + isinstance(x.op, rows.MatmulOp)


def depends_on_row(op: Operation, row: SSAValue) -> bool:
    """Whether what the body of a segment reads from outside it belongs to the nest's row."""
    todo = [x for x in _inputs(op) if x is not row]
    inner = [x for o in op.walk() if o is not op for x in o.operands]
    if any(x is row for x in inner):
        return True
    while todo:
        x = todo.pop()
        if x is row:
            return True
        if isinstance(x, OpResult) and x.op.parent is op.parent:
            if not is_remade(x.op):
                return True
            todo += _inputs(x.op)
    return False


def with_lookups(ops: list[Operation]) -> list[Operation]:
    """Put the look-ups that `ops` read in front of them."""
    out: list[Operation] = []
    seen: set[Operation] = set()

    def visit(op: Operation) -> None:
        if op in seen:
            return
        seen.add(op)
        for x in _inputs(op):
            if isinstance(x, OpResult) and x.op.parent is op.parent and is_remade(x.op):
                visit(x.op)
        out.append(op)

    for op in ops:
        visit(op)
    return out


def crossing(stages: list[Stage]) -> list[OpResult]:
    """Values that need a block-local buffer: read by a later stage, or by a product, and not a
    plain load.
    """
    out: list[OpResult] = []
    for k, stage in enumerate(stages):
        members = set(stage.ops)
        for op in (*stage.ops, *stage.products):
            for r in op.results:
                if not is_remade(op) and any(
                    _leaves(u.operation, members, stage, k, stages) for u in r.uses
                ):
                    out.append(r)
    return out


def _leaves(
    user: Operation, members: set[Operation], stage: Stage, k: int, stages: list[Stage]
) -> bool:
    top = _top(user)
    return top not in members or isinstance(top, rows.MatmulOp | rows.OuterOp)


def _top(op: Operation) -> Operation:
    """The op of the nest itself that `op` is, or is inside of."""
    while (up := op.parent_op()) is not None and not isinstance(up, rows.TraverseOp):
        op = up
    return op
