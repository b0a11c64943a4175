"""What `gnnc plan` predicts against what is measured: steps of one rank and of two; steps of more
ranks, which are threads, in virtual time; and the bytes of these."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ..frontend.plan import constants as constants_file
from ..frontend.plan import cost, simulate
from ..frontend.plan.constants import BadConstants, Constants
from ..frontend.plan.layers import model as model_of
from ..frontend.plan.loads import Loads, of_partition
from ..frontend.tools.children import Child, Message, Refused
from ..frontend.tools.report import seconds_text, table
from ..runtime.partition.edges import in_memory
from . import calibration, plan_graphs
from .calibration import Seconds, Task
from .ranks import launched

MODELS = ("gcn", "sage", "gin", "gat")
SIZES = ((25_000, 250_000), (100_000, 800_000))
"""Nodes and edges; none is one of the calibration."""
RANKS = (1, 2)
COUNTED: Message = {"widths": (24, 16, 8), "nodes": 2_000, "edges": 12_000}
"""What bytes are counted on: a drawn graph."""
COUNTS = ("bytes", "messages")
VIRTUAL = (64_000, 512_000)
"""Nodes and edges of what ranks have together that train in virtual time. They take turns on one
core, so the rows of all should be as near as those of one would be."""
VIRTUAL_STEPS = 5
"""In each turn of a rank."""
TINY = 32
"""Nodes and edges of a rank whose step takes what every step takes."""
TITLES = {
    "steps": "steps planned and measured",
    "virtual": "steps planned and measured, in virtual time: each rank has a machine",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--constants", metavar="FILE", help="of gnnc plan --calibrate (None: measured now)"
    )
    parser.add_argument("--across", type=float, default=0.1, help="share of edges between ranks")
    parser.add_argument("--features", type=int, default=48)
    parser.add_argument("--hidden", type=int, default=32, help="features between layers")
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=1.0, help="of steps of each measurement")
    parser.add_argument(
        "--counted", nargs="*", type=int, default=[4, 16], help="ranks whose bytes are counted"
    )
    parser.add_argument(
        "--virtual", nargs="*", type=int, default=[4, 8, 16], help="ranks that have virtual time"
    )


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """All steps as one result, those in virtual time as another, then the bytes.

    Raises:
        Refused: the constants cannot be read.
        ChildFailed: ranks failed.
    """
    widths = (args.features, args.hidden, args.classes)
    tasks = [Task(m, widths, *size, args.across) for m in args.models for size in SIZES]
    constants, seconds = _measured(args, tasks)
    pairs = [(r, *pair) for r in RANKS for pair in zip(tasks, seconds[r], strict=True)]
    points = [_point(task, r, measured, constants) for r, task, measured in pairs]
    yield {"study": "steps", "constants": asdict(constants), "points": points}
    if args.virtual:
        of_models = [Task(m, widths, *VIRTUAL, args.across) for m in args.models]
        points = [_virtual(t, r, constants) for t in of_models for r in args.virtual]
        yield {"study": "virtual", "points": points}
    if args.counted:
        yield {"study": "bytes", "points": [_counted(m, r) for m in MODELS for r in args.counted]}


def _measured(args: argparse.Namespace, tasks: Sequence[Task]) -> tuple[Constants, Seconds]:
    """The constants, and what a step of each task takes."""
    if args.constants is None:
        return calibration.beside(tasks, args.seconds)
    try:
        constants = constants_file.load(Path(args.constants))
    except (OSError, BadConstants) as error:
        raise Refused(f"--constants: {error}") from error
    question = calibration.question([calibration.TASKS[0], *tasks], (), args.seconds)
    answers = {r: launched(calibration.SCRIPT, question, r, 1)["seconds"] for r in RANKS}
    return constants, {r: seconds[1:] for r, seconds in answers.items()}


def _point(task: Task, ranks: int, measured: float, constants: Constants) -> Message:
    """A task on so many ranks, beside what is predicted."""
    found = cost.predict(task.layers(), _loads(task, ranks), constants)
    predicted = {"predicted": found.seconds, "simulated": found.simulated}
    return {**asdict(task), "ranks": ranks, "measured": measured, **predicted}


def _loads(task: Task, ranks: int) -> Loads:
    """Those of the graph that is trained on."""
    src, dst = plan_graphs.halves(task.nodes, task.edges, task.across)
    owner = plan_graphs.owners_of_halves(task.nodes, ranks)
    return of_partition(in_memory(src, dst, task.nodes), owner, ranks)


def _counted(model: str, ranks: int) -> Message:
    """Bytes and messages by rank, as they are counted and as they are planned."""
    question = {"model": model, **COUNTED, "ranks": ranks}
    with Child("gnnc.bench.plan_count_child") as child:
        answer = child.ask(question)
    index, owner = plan_graphs.scattered(COUNTED["nodes"], COUNTED["edges"], ranks)
    loads = of_partition(in_memory(index[0], index[1], COUNTED["nodes"]), owner, ranks)
    layers = model_of(model, COUNTED["widths"], loads.nodes, loads.edges)
    size, messages = cost.sent(layers, loads)
    planned = {"bytes": size.tolist(), "messages": messages.tolist()}
    seconds = cost.predict(layers, loads, Constants()).simulated
    return {**question, "counted": answer, "planned": planned, "simulated": seconds}


def _virtual(task: Task, ranks: int, constants: Constants) -> Message:
    """A step of ranks that have a machine each: what they are measured to do between messages, with
    the link of the constants between them; and as it is simulated, on a machine as fast as it was
    meanwhile. What any step of the model takes in Python, of ranks that are threads, is measured on
    a graph that is tiny."""
    stages, pace = _stages(task, ranks, constants)
    apart = replace(constants, shared=1.0, shared_caches=1.0, exchange=0.0, fixed=0.0)
    tiny = replace(task, nodes=TINY * ranks, edges=TINY * ranks)
    planned = cost.predict(tiny.layers(), _planted(tiny, ranks), apart, simulated=0).work_seconds
    spent, tiny_pace = _stages(tiny, ranks, constants)
    work = simulate.simulate(spent, simulate.Link(0.0, np.inf)).seconds
    fixed = max(0.0, work / tiny_pace - planned) * pace
    apart = replace(apart.at(pace), fixed=fixed)
    found = cost.predict(task.layers(), _planted(task, ranks), apart, simulated=ranks)
    link = simulate.Link(constants.alpha, constants.bandwidth)
    measured = simulate.simulate(stages, link).seconds
    predicted = {"predicted": found.seconds, "simulated": found.simulated}
    return {**asdict(task), "ranks": ranks, "measured": measured, **predicted}


def _planted(task: Task, ranks: int) -> Loads:
    """Those of the graph that ranks train on in virtual time."""
    src, dst = plan_graphs.planted(task.nodes, task.edges, task.across, ranks)
    owner = plan_graphs.owners_of_parts(task.nodes, ranks)
    return of_partition(in_memory(src, dst, task.nodes), owner, ranks)


def _stages(task: Task, ranks: int, constants: Constants) -> tuple[list[simulate.Stage], float]:
    """What ranks are measured to do in a step, and the machine's pace meanwhile."""
    pace = [asdict(t) for t in calibration.paced()]
    question = {**asdict(task), "ranks": ranks, "steps": VIRTUAL_STEPS, "pace": pace}
    with Child("gnnc.bench.plan_stages_child") as child:
        answer = child.ask(question)
    stages = [_stage(one) for one in answer["stages"]]
    return stages, calibration.pace(constants, answer["paced"])


def _stage(found: Message) -> simulate.Stage:
    before, beside = np.array(found["before"]), np.array(found["beside"])
    size = np.array(found["bytes"])
    return simulate.Stage(before, beside, np.zeros(len(before)), size, (1.0,))


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a measurement."""
    if result["study"] == "bytes":
        return _report_bytes(result["points"], markdown)
    rows = [["ranks", "measured", "predicted", "simulated", "off by"]]
    off: list[float] = []
    for p in result["points"]:
        name = f"{p['model']}, {p['nodes']:,} nodes, {p['edges']:,} edges: {p['ranks']}"
        cells = (seconds_text(p[k]) for k in ("measured", "predicted", "simulated"))
        off.append(p["simulated"] / p["measured"] - 1)
        rows.append([name, *cells, f"{off[-1]:+.1%}"])
    mean = sum(map(abs, off)) / len(off)
    most = f"off by {max(map(abs, off)):.1%} at most, {mean:.1%} on average"
    title = TITLES[result["study"]]
    return f"{title}\n\n{table(rows, markdown=markdown)}\n\n{most}"


def _report_bytes(points: Sequence[Message], markdown: bool) -> str:
    rows = [["ranks", "bytes counted", "planned", "messages counted", "planned", "simulated"]]
    for p in points:
        cells = [f"{sum(p[a][b]):,.0f}" for b in COUNTS for a in ("counted", "planned")]
        rows.append([f"{p['model']}: {p['ranks']}", *cells, seconds_text(p["simulated"])])
    return f"what all ranks send in a step\n\n{table(rows, markdown=markdown)}"


def failed(results: Sequence[Message]) -> bool:
    """Whether ranks sent anything else than was planned."""
    points = [p for r in results if r["study"] == "bytes" for p in r["points"]]
    return any(p["counted"][k] != p["planned"][k] for p in points for k in COUNTS)
