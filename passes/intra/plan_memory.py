"""plan-memory: notes when each buffer is in use, so that others may lie there before and after.

Gives inputs, outputs and temporaries their first and their last step. Where they lie is decided
once the sizes of a graph are known (runtime/layout.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.intra.bindings import InputOp, Lives, Living, OutputOp
from ...dialects.intra.steps import Step, phases, steps


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Note which steps of a phase each buffer is in use at."""

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            plan(func)


def plan(func: FuncOp) -> None:
    """Notes the lives of all buffers."""
    order = steps(func)
    used = lives_of(order)
    end = max(len(order) - 1, 0)
    for op in func.body.block.ops:
        if not isinstance(op, Living):
            continue
        match op:
            case InputOp():  # there from the start
                op.lives = Lives(0, used[op.result].last if op.result in used else 0)
            case OutputOp():  # there after the end
                op.lives = Lives(used[op.result].first if op.result in used else end, end)
            case _:
                op.lives = used.get(op.result, Lives(0, 0))


def lives_of(order: Sequence[Step]) -> dict[SSAValue, Lives]:
    """When each buffer is read or written. Linear in what the steps read and write."""
    used: dict[SSAValue, Lives] = {}
    for k, step in enumerate(order):
        for buffer in step.reads() | step.writes():
            used[buffer] = Lives(used[buffer].first if buffer in used else k, k)
    return used
