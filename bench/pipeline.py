"""MGG's kernel in virtual time: what partitions, interleaving and asynchronous reads bring, and how
the search for its launch does against all launches."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..frontend.plan.pipeline.launches import DEVICES, Int64
from ..frontend.plan.pipeline.play import Task, Way, of_all
from ..frontend.plan.pipeline.search import LAUNCHES, every, search
from ..frontend.plan.simulate import Link
from ..frontend.tools.children import Message
from ..frontend.tools.datasets import power_law_edges
from ..frontend.tools.figures import Figure
from ..frontend.tools.report import seconds_text, table
from ..runtime.partition.edges import Int32

GRAPHS = ("uniform", "power law")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--widths", nargs="+", type=int, default=[16, 64, 256, 602])
    parser.add_argument("--device", choices=list(DEVICES), default="a100")
    parser.add_argument("--bandwidth", type=float, default=3e11, help="bytes a second of the link")
    parser.add_argument("--latency", type=float, default=2e-6, help="seconds of a remote read")


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A graph and a width at a time."""
    device, link = DEVICES[args.device], Link(bandwidth=args.bandwidth, latency=args.latency)
    for graph in args.graphs:
        owner, src, dst = _graph(graph, args.nodes, args.edges, args.ranks)
        for width in args.widths:
            tasks = tasks_of(owner, src, dst, args.ranks, width)
            tries = search(lambda x, tasks=tasks: of_all(tasks, x, device, link))
            best = min(of_all(tasks, x, device, link) for x in every())
            yield {
                "graph": graph,
                "width": width,
                **{k: getattr(args, k) for k in ("nodes", "edges", "ranks", "device")},
                "tries": [asdict(x) | {"seconds": s} for x, s in tries.seconds.items()],
                "launches": tries.launches,
                "best": best,
                "ways": {w.value: of_all(tasks, tries.best, device, link, w) for w in Way},
            }


def _graph(graph: str, nodes: int, edges: int, ranks: int) -> tuple[Int32, Int64, Int64]:
    owner = (np.arange(nodes) * ranks // nodes).astype(np.int32)
    if graph == "uniform":
        src, dst = np.random.default_rng(0).integers(0, nodes, (2, edges))
    else:
        src, dst = power_law_edges(nodes, edges, seed=0)
    return owner, src, dst


def tasks_of(owner: Int32, src: Int64, dst: Int64, ranks: int, width: int) -> list[Task]:
    """What each rank sums up, where a row lies with its owner."""
    near = owner[src] == owner[dst]
    local, remote = (np.bincount(dst[x], minlength=len(owner)) for x in (near, ~near))
    mine = [owner == r for r in range(ranks)]
    return [Task(local[m], remote[m], width) for m in mine]


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a way, for the launch that was found."""
    found = min(result["tries"], key=lambda x: x["seconds"])
    rows = [["way", "launch", "of pipelined"]]
    whole = result["ways"][Way.PIPELINED.value]
    for way, seconds in result["ways"].items():
        rows.append([way, seconds_text(seconds), f"{seconds / whole:.2f}"])
    title = (
        f"{result['graph']}, in virtual time: {result['nodes']:,} nodes, {result['edges']:,} "
        f"edges, {result['ranks']} {result['device']}, {result['width']} numbers; "
        f"ps {found['ps']}, dist {found['dist']}, wpb {found['wpb']} of {result['launches']} "
        f"launches, {found['seconds'] / result['best']:.2f} of the best of {len(every())}"
    )
    return f"{title}\n\n{table(rows, markdown=markdown)}"


def failed(results: Sequence[Message]) -> bool:
    """Whether a search took too many launches, or found one a tenth slower than the best."""
    return any(
        r["launches"] > LAUNCHES or r["ways"][Way.PIPELINED.value] > 1.1 * r["best"]
        for r in results
    )


def draw(results: Sequence[Message], path: Path) -> None:
    """What each search tried, in its order.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    figure = Figure(1, len(results))
    for axes, result in zip(figure.panels, results, strict=True):
        tries = [x for x in result["tries"] if x["seconds"] < float("inf")]
        axes.plot([1e3 * x["seconds"] for x in tries], "o-")
        axes.axhline(1e3 * result["best"], linestyle=":", label="best of all")
        labels = [f"{x['ps']}, {x['dist']}, {x['wpb']}" for x in tries]
        axes.set_xticks(range(len(tries)), labels, rotation=90, fontsize="x-small")
        axes.set_title(f"{result['graph']}, {result['width']}", fontsize="small")
        axes.set_xlabel("ps, dist, wpb")
        axes.set_ylabel("ms, in virtual time")
        axes.legend(fontsize="small")
    figure.save(path)
