"""Training on two ranks of one thread against one process with two threads, and against PyG's
layers on the same parts with torch.distributed's gloo. Contestants take turns."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..frontend.tools.children import ChildFailed, Message
from ..frontend.tools.report import seconds_text, table

SCRIPT = str(Path(__file__).with_name("ranks_child.py"))
"""What is launched. It imports torch, which `gnnc` does without."""
MODELS = ("gcn", "sage", "gin", "gat")
GRAPHS = {"planted": 0.05, "random": 1.0}
"""By name, the share of the nodes of a half that the other half reads."""
CONTESTANTS = {"one": ("gnnc", 1, 2), "two": ("gnnc", 2, 1), "pyg": ("pyg", 2, 1)}
"""Whose step it is, on how many ranks, of how many threads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--graphs", nargs="+", choices=list(GRAPHS), default=list(GRAPHS))
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=32, help="features between layers")
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=15, help="that are timed in each turn")
    parser.add_argument("--turns", type=int, default=3, help="of each contestant")


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A model on a graph at a time."""
    names = ("nodes", "edges", "features", "hidden", "classes")
    shape = {k: getattr(args, k) for k in names}
    for model in args.models:
        for graph in args.graphs:
            task = {"model": model, "halo": GRAPHS[graph], **shape}
            yield {"model": model, "graph": graph, **shape} | _raced(task, args)


def _raced(task: Message, args: argparse.Namespace) -> Message:
    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    losses: dict[str, float] = {}
    for _ in range(args.turns):
        for name, (whose, ranks, threads) in CONTESTANTS.items():
            question = {"contestant": whose, **task, "steps": args.steps}
            answer = launched(SCRIPT, question, ranks, threads)
            seconds[name] += answer["seconds"]
            losses[name] = answer["losses"][0]
    return {"seconds": {k: statistics.median(s) for k, s in seconds.items()}, "losses": losses}


def launched(script: str, question: Message, ranks: int, threads: int) -> Message:
    """What ranks that are launched for it say: a script writes its answer to the question, which is
    its first argument, into the file that the second one names.

    Raises:
        ChildFailed: they failed.
    """
    with tempfile.TemporaryDirectory(prefix="gnnc-bench-") as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "gnnc.frontend.cli", "launch", "-n", str(ranks)]
        work = [script, json.dumps(question), str(answer)]
        subprocess.run([*command, "--threads", str(threads), *work], check=False)
        if not answer.exists():
            raise ChildFailed(f"{Path(script).name} on {ranks} ranks failed")
        return json.loads(answer.read_text())


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a contestant; the ratios are those to two ranks of gnnc."""
    two = result["seconds"]["two"]
    rows = [["", "step", "of two ranks"]]
    for name, (whose, ranks, threads) in CONTESTANTS.items():
        seconds = result["seconds"][name]
        rows.append(
            [f"{whose}, {ranks} x {threads}", seconds_text(seconds), f"{seconds / two:.2f}"]
        )
    title = (
        f"{result['model']}, {result['graph']}, ranks x threads: {result['nodes']:,} nodes, "
        f"{result['edges']:,} edges; {result['features']}, {result['hidden']}, "
        f"{result['classes']} features"
    )
    return f"{title}\n\n{table(rows, markdown=markdown)}"
