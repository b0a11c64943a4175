"""What `gnnc plan` predicts against what is measured: steps of one rank and of two, and the bytes
of more ranks, which are threads."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from ..frontend.plan import constants as constants_file
from ..frontend.plan import cost
from ..frontend.plan.constants import BadConstants, Constants
from ..frontend.plan.layers import model as model_of
from ..frontend.plan.loads import Loads, of_partition
from ..frontend.tools.children import Child, Message, Refused
from ..frontend.tools.report import seconds_text, table
from ..runtime.partition.edges import in_memory
from . import calibration, plan_graphs
from .calibration import Task
from .ranks import launched

MODELS = ("gcn", "sage", "gin")
SIZES = ((25_000, 250_000), (100_000, 800_000))
"""Nodes and edges; none is one of the calibration."""
RANKS = (1, 2)
COUNTED: Message = {"widths": (24, 16, 8), "nodes": 2_000, "edges": 12_000}
"""What bytes are counted on: a drawn graph."""
COUNTS = ("bytes", "messages")


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


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """All steps as one result, then the bytes as another.

    Raises:
        Refused: the constants cannot be read.
        ChildFailed: ranks failed.
    """
    constants = _constants(args.constants)
    widths = (args.features, args.hidden, args.classes)
    tasks = [Task(m, widths, *size, args.across) for m in args.models for size in SIZES]
    yield {
        "study": "steps",
        "constants": asdict(constants),
        "points": _steps(args, constants, tasks),
    }
    if args.counted:
        yield {"study": "bytes", "points": [_counted(m, r) for m in MODELS for r in args.counted]}


def _constants(file: str | None) -> Constants:
    if file is None:
        return calibration.calibrate()
    try:
        return constants_file.load(Path(file))
    except (OSError, BadConstants) as error:
        raise Refused(f"--constants: {error}") from error


def _steps(args: argparse.Namespace, constants: Constants, tasks: Sequence[Task]) -> list[Message]:
    """A point a task and number of ranks."""
    points: list[Message] = []
    for ranks in RANKS:
        question = calibration.question([calibration.TASKS[0], *tasks], seconds=args.seconds)
        _, *seconds = launched(calibration.SCRIPT, question, ranks, 1)["seconds"]
        for task, measured in zip(tasks, seconds, strict=True):
            found = cost.predict(task.layers(), _loads(task, ranks), constants)
            predicted = {"predicted": found.seconds, "simulated": found.simulated}
            points.append({**asdict(task), "ranks": ranks, "measured": measured, **predicted})
    return points


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


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a measurement."""
    if result["study"] == "bytes":
        return _report_bytes(result["points"], markdown)
    rows = [["ranks", "measured", "predicted", "simulated", "off by"]]
    for p in result["points"]:
        name = f"{p['model']}, {p['nodes']:,} nodes, {p['edges']:,} edges: {p['ranks']}"
        cells = (seconds_text(p[k]) for k in ("measured", "predicted", "simulated"))
        rows.append([name, *cells, f"{p['predicted'] / p['measured'] - 1:+.1%}"])
    off = [abs(p["predicted"] / p["measured"] - 1) for p in result["points"]]
    most = f"off by {max(off):.1%} at most, {sum(off) / len(off):.1%} on average"
    return f"steps planned and measured\n\n{table(rows, markdown=markdown)}\n\n{most}"


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
