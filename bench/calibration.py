"""The constants of `gnnc plan`, measured: steps of one rank and of two, and messages between them.

The time of a step is linear in the constants of work, so those are fitted to steps of models and
graphs of several shapes, by least squares of relative errors, none below what the machine can do at
most (ceilings.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from ..frontend.plan import cost
from ..frontend.plan.constants import Constants
from ..frontend.plan.layers import NUMBER_BYTES, Layer, model
from ..frontend.plan.loads import Loads, Numbers, alone
from ..frontend.plan.stages import step_stages
from ..frontend.tools.children import ChildFailed, Message
from . import ceilings
from .ranks import launched

SCRIPT = str(Path(__file__).with_name("plan_child.py"))
RANKS = 2
WORK = ("edge_number", "far_number", "node_number", "multiply_add", "score", "fixed")
"""The constants of work."""
SECONDS = 0.5
"""Of steps of each task."""
MESSAGES = (1 << 9, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Bytes of the messages that are timed."""
READ = tuple(size * ceilings.MIB for size in (1, 2, 4, 8, 16, 32, 64, 150))
"""Working sets whose bandwidth is measured; the first is near, the last far. Caches are as large as
one of them."""


@dataclass(frozen=True)
class Task:
    """A training that is timed: the numbers of a node before, between and after the layers, and a
    graph of two halves, a share of whose edges is `across`."""

    model: str
    widths: tuple[int, ...]
    nodes: int
    edges: int
    across: float = 0.0

    def layers(self) -> tuple[Layer, ...]:
        """The model's."""
        return model(self.model, self.widths, self.nodes, self.edges)

    def apart(self) -> Loads:
        """The loads of the two halves as ranks."""
        return Numbers(self.nodes, self.edges, across=self.across).loads(RANKS)


TASKS = (
    Task("gcn", (64, 32, 16), 500, 2_000),
    Task("gcn", (64, 32, 16), 60_000, 600_000),
    Task("gcn", (16, 64, 32), 40_000, 200_000),
    Task("sage", (64, 32, 16), 40_000, 300_000),
    Task("sage", (16, 48, 16), 30_000, 450_000),
    Task("gin", (64, 32, 16), 50_000, 400_000),
    Task("gin", (16, 64, 32), 40_000, 200_000),
    Task("gcn", (32, 16, 16), 150_000, 1_500_000),
    Task("gcn", (16, 32, 32), 200_000, 1_200_000),
    Task("gcn", (8, 32, 32), 600_000, 4_000_000),
    Task("gat", (64, 32, 16), 20_000, 160_000),
    Task("gcn", (32, 48, 16), 6_000, 40_000),
    Task("sage", (32, 48, 16), 10_000, 70_000),
    Task("gin", (32, 48, 16), 8_000, 80_000),
)
"""The first is so small that its step takes what every step takes; the rows that the largest reads
are in no cache, and those of the two before it in part. The last three are as small as what one of
many ranks has: a step there takes longer than the first and the others together would tell."""


def calibrate() -> Constants:
    """Measures for a minute, on two cores.

    Raises:
        ChildFailed: ranks could not be launched, or failed.
        NoCompiler, CompileError: from the tool chain.
    """
    one, two = (question(TASKS, messages=MESSAGES if r > 1 else ()) for r in (1, RANKS))
    alone_ = launched(SCRIPT, one, 1, 1)
    both = launched(SCRIPT, two, RANKS, 1)
    return fitted(alone_, both, least(ceilings.measure(1, READ)))


def question(
    tasks: Sequence[Task], *, messages: Sequence[int] = (), seconds: float = SECONDS
) -> Message:
    """What plan_child.py is asked."""
    plain = [asdict(t) for t in tasks]
    return {"tasks": plain, "seconds": seconds, "messages": list(messages)}


def least(found: ceilings.Ceilings) -> Constants:
    """Lower bounds of the constants of work: rows from caches or memory, products by all vector
    units."""
    near, far = (NUMBER_BYTES / rate for _, rate in (found.read[0], found.read[-1]))
    bounds = {"edge_number": near, "far_number": far, "node_number": far}
    return Constants(**{**dict.fromkeys(WORK, 0.0), **bounds, "multiply_add": 2 / found.flops})


def fitted(one: Message, two: Message, least: Constants) -> Constants:
    """The constants of answers by one rank and by two to the same tasks (plan_child.py).

    Raises:
        ChildFailed: an answer has times that are no times.
    """
    if min(*one["seconds"], *two["seconds"], *two["messages"]) <= 0:
        raise ChildFailed("the clock did not move between two of its readings")
    found = _work(one["seconds"], least)
    alpha, byte = _fit([[1.0, size] for size in MESSAGES], two["messages"], [0.0, 1e-12])
    found = replace(found, shared=1.0, exchange=0.0, alpha=alpha, bandwidth=1 / byte, overlap=0.0)
    found = replace(found, exchange=_exchange(two["seconds"][0], found))
    return replace(found, shared=_shared(two["seconds"], found), **_memory(one, found))


def _work(seconds: Sequence[float], least: Constants) -> Constants:
    """The constants of work. How many rows are in the caches is told by what fits best: reading in
    order is as fast from the last of them as from memory, where reading anywhere is not."""
    found = (_work_with(seconds, replace(least, cache_bytes=float(size))) for size in READ)
    return min(found, key=lambda fit: fit[0])[1]


def _work_with(seconds: Sequence[float], least: Constants) -> tuple[float, Constants]:
    """The constants with caches of this size, behind the mean square of their relative errors."""
    columns = [[_work_seconds(task, name, least) for name in WORK] for task in TASKS]
    found = _fit(columns, seconds, [getattr(least, name) for name in WORK])
    error = np.array(columns) @ found / np.array(seconds) - 1
    return float(error @ error), replace(least, **dict(zip(WORK, found, strict=True)))


def _work_seconds(task: Task, name: str, least: Constants) -> float:
    """A step of one rank where one constant is 1 and the others of work are 0."""
    unit = replace(least, **{**dict.fromkeys(WORK, 0.0), name: 1.0})
    loads = alone(task.nodes, task.edges)
    return cost.predict(task.layers(), loads, unit, simulated=0).seconds


def _fit(
    columns: Sequence[Sequence[float]], seconds: Sequence[float], least: Sequence[float]
) -> list[float]:
    """Factors of columns, of at least so much, with which they add up to the seconds. Columns are
    scaled, for their numbers are of many orders."""
    relative = np.array(columns) / np.array(seconds)[:, None]
    scale = np.maximum(relative.max(axis=0), 1e-300)
    solver: Any = optimize
    bounds = (np.array(least) * scale, np.inf)
    found = solver.lsq_linear(relative / scale, np.ones(len(seconds)), bounds=bounds)
    return [float(x) for x in found.x / scale]


def _exchange(seconds: float, found: Constants) -> float:
    """Seconds of an exchange: what the smallest task takes longer than without, on two ranks."""
    layers, loads = TASKS[0].layers(), TASKS[0].apart()
    exchanges = sum(bool(s.row_bytes) for s in step_stages(layers, loads, found))
    predicted = cost.predict(layers, loads, found, simulated=0).seconds
    return max(0.0, seconds - predicted) / exchanges


def _shared(seconds: Sequence[float], found: Constants) -> float:
    """How much longer work takes where both cores do it, of the larger tasks: each rank has half of
    it, and besides what every step takes."""
    ratios: list[float] = []
    idle = replace(found, **dict.fromkeys(WORK[:-1], 0.0))
    for task, both in list(zip(TASKS, seconds, strict=True))[1:]:
        whole, rest = (
            cost.predict(task.layers(), task.apart(), c, simulated=0).seconds for c in (found, idle)
        )
        ratios.append((both - rest) / (whole - rest))
    return max(1.0, statistics.median(ratios))


def _memory(one: Message, found: Constants) -> dict[str, float]:
    """Bytes of a process, and of an edge: what the second task took that is not rows of nodes."""
    task = TASKS[1]
    plain = replace(found, fixed_bytes=0.0, edge_bytes=0.0)
    rows = float(cost.memory(task.layers(), alone(task.nodes, task.edges), plain).max())
    edge = max(0.0, one["graph_bytes"] - rows) / task.edges
    return {"fixed_bytes": float(one["fixed_bytes"]), "edge_bytes": edge}
