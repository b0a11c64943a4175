"""gang-small: nests over the single row that follow each other run in one launch.

A loss, its gradient, counts of steps and updates of short parameters are nests of one row each: a
launch takes longer than they do. One block computes them one after the other, with a barrier in
between. What sums over rows, and what goes through a group of rows, stays a launch of its own.

Before: nests with `#intra.grid<threads = 32, lanes = 32, ..>` and with `#intra.grid<threads = 64,
lanes = 64, ..>`. After: both have 64 threads, and the second has `joins = 1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.intra.bindings import SizeOp
from ...dialects.intra.rows import OuterOp, SegmentOp, TotalOp, TraverseOp
from ...dialects.intra.schedule import GridAttr
from ...dialects.intra.steps import Step, phases, steps


@dataclass(frozen=True)
class GangSmallPass(ModulePass):
    """Let nests of a single row share launches."""

    name = "gang-small"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            for gang in gangs(steps(func)):
                join(gang)


def gangs(found: Sequence[Step]) -> list[list[TraverseOp]]:
    """The runs of small nests, of two or more."""
    out: list[list[TraverseOp]] = [[]]
    for step in found:
        if isinstance(step, TraverseOp) and is_small(step):
            out[-1].append(step)
        else:
            out.append([])
    return [run for run in out if len(run) > 1]


def is_small(nest: TraverseOp) -> bool:
    """Whether one block computes the nest, and nothing else is launched for it."""
    size = nest.size.owner
    if not isinstance(size, SizeOp) or size.domain is not None:
        return False
    alone = (OuterOp, SegmentOp, TotalOp)
    return isinstance(nest.schedule, GridAttr) and not any(
        isinstance(o, alone) for o in nest.walk()
    )


def join(gang: Sequence[TraverseOp]) -> None:
    """Give the nests of a gang one launch, with the threads that the longest row asks for."""
    schedules = [nest.schedule for nest in gang]
    grids = [s.numbers() for s in schedules if isinstance(s, GridAttr)]
    threads = max(g["threads"] for g in grids)
    resident = min(g["resident"] for g in grids)
    for k, (nest, grid) in enumerate(zip(gang, grids, strict=True)):
        grid |= {"threads": threads, "lanes": threads, "resident": resident, "joins": int(k > 0)}
        nest.properties["schedule"] = GridAttr.of(**grid)
