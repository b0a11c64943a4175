"""plan-memory: temporaries whose lives do not overlap share a slot of the arena.

Gives every `intra.alloc` a `slot`; buffers in one slot are over the same domain, so the slot's size
is known from the set's. Row widths may differ: the slot is as wide as its widest buffer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.intra.bindings import AllocOp
from ...dialects.intra.steps import phases, steps


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Let temporaries share arena slots."""

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            plan(func)


@dataclass
class Slot:
    """One place of the arena: its domain, and until which step it is taken."""

    domain: object
    busy_until: int
    index: int = field(default=0)


def plan(func: FuncOp) -> None:
    """Assign slots by a sweep over the steps."""
    used: defaultdict[SSAValue, list[int]] = defaultdict(list)
    for k, step in enumerate(steps(func)):
        for buffer in step.reads() | step.writes():
            used[buffer].append(k)
    lives: list[tuple[int, int, AllocOp]] = []
    for op in func.body.block.ops:
        if isinstance(op, AllocOp):
            at = used[op.result]
            lives.append((min(at, default=0), max(at, default=0), op))
    slots: list[Slot] = []
    for first, last, op in sorted(lives, key=lambda x: (x[0], x[1])):
        fitting = [s for s in slots if s.domain == op.domain and s.busy_until < first]
        slot = fitting[0] if fitting else Slot(op.domain, -1, len(slots))
        if not fitting:
            slots.append(slot)
        slot.busy_until = last
        op.properties["slot"] = IntAttr(slot.index)
