"""Mini-batch training on the processes and cores that ARGO's tuner chooses, against the untuned
default, and what the choice costs. Configurations take turns."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator, Sequence

from ..frontend.argo.configurations import Configuration, configurations, default
from ..frontend.argo.cores import machine
from ..frontend.argo.tuner import MARGIN, SHARE
from ..frontend.tools.children import Child, Message
from ..frontend.tools.report import seconds_text, table
from . import batch_options, large_graphs, real
from .graphs import GRAPHS, RealGraph

MANY = 8
"""With more configurations only the default and the chosen one are timed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    large_graphs.add_sizes(parser, large_graphs.SIZES[0])
    real.add_argument(parser)
    names = [name for name, graph in GRAPHS.items() if isinstance(graph, RealGraph)]
    parser.add_argument(
        "--graphs", nargs="*", choices=names, default=[], help="published graphs, of --data"
    )
    parser.add_argument("--hidden", type=int, default=64, help="features between layers")
    parser.add_argument("--epochs", type=int, default=200, help="of the training that is tuned")
    parser.add_argument("--turns", type=int, default=5, help="of each configuration")
    parser.add_argument(
        "--mode",
        choices=("drop-in", "step"),
        default="step",
        help="gnnc.compile in torch's loop, or gnnc.train_step",
    )
    batch_options.add_batches(parser)
    parser.set_defaults(data=os.environ.get("GNNC_DATA"))


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A graph at a time: tuned, then timed.

    Raises:
        Refused: there is no data, before anything is trained.
    """
    for name in args.graphs:
        real.check(name, args.data)
    for nodes, edges in args.sizes:
        yield _of_graph(args, large_graphs.name(nodes, edges), {"nodes": nodes, "edges": edges})
    for name in args.graphs:
        with real.prepared(name, args.data) as file:
            yield _of_graph(args, name, {"file": file})


def _of_graph(args: argparse.Namespace, name: str, graph: Message) -> Message:
    shape = {k: getattr(args, k) for k in ("hidden", "fanouts", "batch_size")}
    with Child("gnnc.bench.argo_child") as child:
        child.ask({**graph, **shape, "whole": args.mode == "step"})
        tuned = child.ask({"tune": args.epochs})
        chosen, usual, all_ = _to_time(tuned["configuration"])
        seconds: dict[Configuration, list[float]] = {x: [] for x in all_}
        for turn in range(args.turns):
            for x in all_:
                seconds[x].append(child.ask({"on": list(x)})["seconds"])
            print(f"{name}: turn {turn + 1} of {args.turns}", file=sys.stderr)
    return {
        **{"graph": name, "study": args.mode, "epochs": args.epochs, **shape, **tuned},
        "default": list(usual),
        "rows": [{"on": list(x), "seconds": s} for x, s in seconds.items()],
        "ratio": _ratio(seconds[chosen], seconds[usual]),
    }


def _to_time(chosen: Sequence[int]) -> tuple[Configuration, Configuration, list[Configuration]]:
    """The chosen one, the default, and all that are timed."""
    cores = machine().usable
    x, usual = Configuration(*chosen), default(cores, least_samplers=0)
    every = configurations(cores, least_samplers=0)
    return x, usual, every if len(every) <= MANY else sorted({x, usual})


def _ratio(chosen: Sequence[float], usual: Sequence[float]) -> float:
    """The median over turns, in each of which both meet the same machine."""
    return statistics.median(a / b for a, b in zip(chosen, usual, strict=True))


def missed(result: Message) -> list[str]:
    """What is asked for and not reached: the chosen one is no slower than the default but for
    noise, and trials cost no more than their share."""
    found: list[str] = []
    if result["ratio"] > 1 + MARGIN:
        found.append(f"chosen / default {result['ratio']:.2f}")
    if result["share"] > SHARE:
        found.append(f"trials {result['share']:.1%}")
    return found


def failed(results: Sequence[Message]) -> bool:
    """Whether something that is asked for is not reached."""
    return any(map(missed, results))


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a configuration: its trial, and what it takes in turns with the others."""
    tried = {tuple(t[k] for k in Configuration._fields): t for t in result["trials"]}
    rows = [["processes", "samplers", "trainers", "trial", "in turns", "of the default", ""]]
    usual = next(r["seconds"] for r in result["rows"] if r["on"] == result["default"])
    for row in result["rows"]:
        x = row["on"]
        trial = tried.get(tuple(x))
        step = None if trial is None else trial["step"]
        names = ("chosen", result["configuration"]), ("default", result["default"])
        rows.append(
            [
                *map(str, x),
                "" if step is None else seconds_text(step),
                seconds_text(statistics.median(row["seconds"])),
                f"{_ratio(row['seconds'], usual):.2f}",
                ", ".join(name for name, of in names if x == of),
            ]
        )
    title = (
        f"{result['graph']}, GraphSAGE of {len(result['fanouts'])} layers of {result['hidden']}, "
        f"{batch_options.batches_text(result)}, mode {result['study']}; the trials took "
        f"{result['share']:.1%} of {result['epochs']} epochs of {result['steps']} steps"
    )
    return f"{title}\n\n{table(rows, markdown=markdown)}"
