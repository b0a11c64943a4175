"""How the epoch of a compiled GCN grows with the number of edges, and shrinks with threads. Numbers
of threads take turns, so that a slow spell of the machine meets all of them."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..frontend.tools.children import Child, Message, OutOfMemory
from ..frontend.tools.figures import Figure
from ..frontend.tools.memory import available
from ..frontend.tools.report import bytes_text, seconds_text, table
from .graphs import COMPILED

EDGES = (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7, 10**8)
FIT_FROM = 10**5
"""Below it, what a call costs whatever the graph is a large part of an epoch."""
TURNS = 3
"""Of each number of threads on one graph."""
SHAPE = ("features", "hidden", "classes", "layers")
"""The options that say what is trained."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--edges", nargs="+", type=_count, default=list(EDGES), metavar="E")
    parser.add_argument("--contestant", choices=COMPILED, default="gnnc")
    parser.add_argument("--threads", nargs="+", type=int, default=_powers(cores), metavar="T")
    parser.add_argument("--degree", type=_count, default=10, help="edges a node")
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=16, help="features between layers")
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="of training for each number")


def _count(text: str) -> int:
    """`1e6` and `1000000`."""
    value = float(text)
    if value < 1 or value != int(value):
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(value)


def _powers(cores: int) -> list[int]:
    """1, 2, 4, .. and the number of cores."""
    powers = [2**k for k in range(int(math.log2(cores)) + 1)]
    return sorted({*powers, cores})


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """Trains on ever larger graphs until one does not fit into memory, and fits the slopes."""
    points: list[Message] = []
    stopped: str | None = None
    for edges in sorted(args.edges):
        try:
            points += _points(args, edges)
        except OutOfMemory as error:
            stopped = f"stopped at {edges:,} edges: {error}"
            print(stopped, file=sys.stderr)
            break
    yield {
        "points": points,
        "slopes": {str(t): slope(points, t) for t in args.threads},
        "stopped": stopped,
        **{k: getattr(args, k) for k in ("contestant", "degree", *SHAPE)},
    }


def _points(args: argparse.Namespace, edges: int) -> list[Message]:
    """One graph with each number of threads, in turns."""
    shape = {k: getattr(args, k) for k in ("contestant", *SHAPE)}
    nodes = max(2, edges // args.degree)
    turns: dict[int, list[Message]] = {t: [] for t in args.threads}
    with Child("gnnc.bench.scaling_child", memory_limit=available() * 9 // 10) as child:
        child.ask({"nodes": nodes, "edges": edges, **shape})
        for _ in range(TURNS):
            for threads, answers in turns.items():
                share = {"threads": threads, "seconds": args.seconds / TURNS}
                answers.append(child.ask(share))
    found: list[Message] = []
    for threads, answers in turns.items():
        seconds = [s for a in answers for s in a["seconds"]]
        median = statistics.median(seconds)
        print(f"{edges:,} edges, {_threads(threads)}: {seconds_text(median)}", file=sys.stderr)
        point = {"edges": edges, "nodes": nodes, "threads": threads, "epoch_seconds": median}
        found.append({**answers[0], **point, "seconds": seconds, "memory": answers[-1]["memory"]})
    return found


def slope(points: Sequence[Message], threads: int) -> float | None:
    """The exponent of edges in the epoch's time, by least squares of the logarithms from `FIT_FROM`
    edges on; None for fewer than two points."""
    used = [p for p in points if p["threads"] == threads and p["edges"] >= FIT_FROM]
    if len({p["edges"] for p in used}) < 2:
        return None
    x = np.log([p["edges"] for p in used])
    y = np.log([p["epoch_seconds"] for p in used])
    return float(np.polyfit(x, y, 1)[0])


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a number of edges: the epoch for each number of threads, and of one edge."""
    threads = sorted({p["threads"] for p in result["points"]})
    cells = {(p["edges"], p["threads"]): p for p in result["points"]}
    heading = ["edges", *map(_threads, threads), "an edge", "speed-up", "memory"]
    rows: list[list[str]] = [heading]
    for edges in sorted({p["edges"] for p in result["points"]}):
        line = [cells[edges, t] for t in threads]
        seconds = [p["epoch_seconds"] for p in line]
        rows.append(
            [
                f"{edges:,}",
                *(seconds_text(s) for s in seconds),
                f"{seconds[-1] / edges * 1e9:.1f} ns",
                f"{seconds[0] / seconds[-1]:.2f}",
                bytes_text(line[-1]["memory"]),
            ]
        )
    title = (
        f"{result['contestant']}: gcn, {result['layers']} layers of {result['hidden']}; "
        f"{result['degree']} edges a node, {result['features']} features, "
        f"{result['classes']} classes"
    )
    notes = [
        f"{_threads(int(t))}: epoch ~ edges^{s:.2f} from {FIT_FROM:,} edges on"
        for t, s in result["slopes"].items()
        if s is not None
    ]
    notes += [result["stopped"]] if result["stopped"] else []
    return "\n".join([title, "", table(rows, markdown=markdown), "", "\n\n".join(notes)])


def plot(result: Message, folder: Path) -> str | None:
    """Draws a result into a file of the folder and returns its name; None without matplotlib."""
    name = f"scaling-{result['contestant']}-{result['layers']}x{result['hidden']}.svg"
    try:
        draw(result, folder / name)
    except ImportError as error:
        print(f"no figure: {error}", file=sys.stderr)
        return None
    return name


def draw_all(results: Sequence[Message], path: Path) -> None:
    """`draw` for the one result that a run has; nothing where no graph fitted into memory."""
    for result in results:
        if result["points"]:
            draw(result, path)


def draw(result: Message, path: Path) -> None:
    """Epoch over edges, both logarithmic, a line a number of threads.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = Figure()
    (axes,) = figure.panels
    for threads in sorted({p["threads"] for p in result["points"]}):
        points = [p for p in result["points"] if p["threads"] == threads]
        exponent = result["slopes"].get(str(threads))
        label = _threads(threads) + (f", slope {exponent:.2f}" if exponent else "")
        axes.loglog(
            [p["edges"] for p in points], [p["epoch_seconds"] for p in points], "o-", label=label
        )
    axes.set_xlabel("edges")
    axes.set_ylabel("epoch (s)")
    axes.legend()
    figure.save(path)
