"""The constants of `gnnc plan`, measured: steps of one rank and of two, and messages between them.

The time of a step is linear in the constants of work, so those are fitted to steps of models and
graphs of several shapes, by least squares of relative errors, none below what the machine can do at
most (ceilings.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from ..frontend.plan import cost
from ..frontend.plan.constants import PACE, Constants
from ..frontend.plan.layers import NUMBER_BYTES, Layer, model
from ..frontend.plan.loads import Loads, Numbers, alone
from ..frontend.plan.stages import step_stages
from ..frontend.tools.children import ChildFailed, Message
from . import ceilings
from .ranks import launched

SCRIPT = str(Path(__file__).with_name("plan_child.py"))
RANKS = 2
WORK = (*PACE, "fixed")
"""The constants of work."""
SECONDS = 0.5
"""Of steps of each task."""
PACED = 200_000
"""Edges of the largest tasks that tell the machine's pace, which should be told fast."""
MESSAGES = (1 << 9, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Bytes of the messages that are timed."""
Seconds = dict[int, list[float]]
"""Of a step of each task, by the number of ranks."""
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
    Task("gat", (16, 64, 32), 60_000, 400_000),
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
    return beside((), SECONDS)[0]


def beside(tasks: Sequence[Task], seconds: float) -> tuple[Constants, Seconds]:
    """Measures these tasks too, in turns with its own, so that what else the machine does falls on
    both. Their steps take `seconds` of each.

    Raises: as `calibrate`.
    """
    every = [*TASKS, *tasks]
    one, two = (question(every, MESSAGES if r > 1 else (), seconds) for r in (1, RANKS))
    alone_ = launched(SCRIPT, one, 1, 1)
    both = launched(SCRIPT, two, RANKS, 1)
    constants = fitted(_own(alone_), _own(both), least(ceilings.measure(1, READ)))
    return constants, {r: a["seconds"][len(TASKS) :] for r, a in ((1, alone_), (RANKS, both))}


def pace(constants: Constants, seconds: Sequence[float]) -> float:
    """How many times as long as by the constants work takes, by the seconds of a step of each of
    the tasks of `paced`: the speed of a machine that others work on changes within minutes."""
    fixed, *rest = seconds
    work = [cost.predict(t.layers(), alone(t.nodes, t.edges), constants) for t in paced()[1:]]
    planned = np.array([w.work_seconds for w in work]) - constants.fixed
    return float(np.median((np.array(rest) - fixed) / planned))


def paced() -> list[Task]:
    """The tasks that tell the machine's pace: the first takes what every step takes."""
    return [t for t in TASKS if t.edges <= PACED]


def _own(answer: Message) -> Message:
    """Of the answer to more tasks that of the calibration's."""
    return {**answer, "seconds": answer["seconds"][: len(TASKS)]}


def question(tasks: Sequence[Task], messages: Sequence[int], seconds: float) -> Message:
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
    return replace(_shared(two["seconds"], found), **_memory(one, found))


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
    scaled, for their numbers are of many orders. One of zeros tells nothing: it has its least."""
    relative = np.array(columns) / np.array(seconds)[:, None]
    told = relative.any(axis=0)
    scale = np.where(told, relative.max(axis=0), 1.0)
    solver: Any = optimize
    bounds = (np.array(least) * scale, np.inf)
    found = solver.lsq_linear(relative / scale, np.ones(len(seconds)), bounds=bounds)
    return [float(x) for x in np.where(told, found.x / scale, least)]


def _exchange(seconds: float, found: Constants) -> float:
    """Seconds of an exchange: what the smallest task takes longer than without, on two ranks."""
    layers, loads = TASKS[0].layers(), TASKS[0].apart()
    exchanges = sum(bool(s.row_bytes) for s in step_stages(layers, loads, found))
    predicted = cost.predict(layers, loads, found, simulated=0).seconds
    return max(0.0, seconds - predicted) / exchanges


def _shared(seconds: Sequence[float], found: Constants) -> Constants:
    """With what the ranks share where both cores have one: as for one rank, the caches of the size
    that fits best."""
    sizes = [size for size in READ if size <= found.cache_bytes]
    shares = [size / found.cache_bytes for size in sizes] or [1.0]
    every = (_slower(seconds, replace(found, shared_caches=share)) for share in shares)
    return min(every, key=lambda fit: fit[0])[1]


def _slower(seconds: Sequence[float], found: Constants) -> tuple[float, Constants]:
    """How much longer work takes where both cores do it, of the larger tasks: each rank has half of
    it, and besides what every step takes. Behind the mean of what its steps are off by."""
    idle = replace(found, **dict.fromkeys(PACE, 0.0))
    whole, rest = (
        np.array([cost.predict(t.layers(), t.apart(), c, simulated=0).seconds for t in TASKS[1:]])
        for c in (found, idle)
    )
    both = np.array(seconds[1:])
    shared = max(1.0, float(np.median((both - rest) / (whole - rest))))
    error = np.abs((rest + shared * (whole - rest)) / both - 1)
    return float(error.mean()), replace(found, shared=shared)


def _memory(one: Message, found: Constants) -> dict[str, float]:
    """Bytes of a process, and of an edge: what the second task took that is not rows of nodes."""
    task = TASKS[1]
    plain = replace(found, fixed_bytes=0.0, edge_bytes=0.0)
    rows = float(cost.memory(task.layers(), alone(task.nodes, task.edges), plain).max())
    edge = max(0.0, one["graph_bytes"] - rows) / task.edges
    return {"fixed_bytes": float(one["fixed_bytes"]), "edge_bytes": edge}
