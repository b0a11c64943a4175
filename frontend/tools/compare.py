"""`gnnc train`: one model trained eagerly and compiled, side by side, and what came of it."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from ...runtime.cpu.heap import PLAIN_TORCH
from .children import Child, ChildFailed, Message, Refused
from .report import bytes_text, seconds_text, table, write_json

WAYS = ("eager", "compiled")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=("gcn", "sage", "gin"), default="gcn")
    parser.add_argument(
        "--dataset",
        default="default",
        metavar="default|CLASS:NAME",
        help="a generated citation graph (default), or a class of torch_geometric.datasets "
        "and its name argument, such as Planetoid:Cora",
    )
    parser.add_argument(
        "--root", default="data", help="the folder that CLASS reads from (and downloads to)"
    )
    parser.add_argument("--epochs", type=_positive, default=100)
    parser.add_argument("--hidden", type=_positive, default=16, help="features between layers")
    parser.add_argument("--layers", type=_positive, default=2)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--seeds", type=_positive, default=3, help="how many trainings to average")
    parser.add_argument(
        "--nodes", type=_positive, default=2708, help="the size of the generated graph"
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the results as JSON, to standard output without FILE",
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def run(args: argparse.Namespace) -> int:
    """Trains, prints the table or the JSON, and returns the exit status."""
    settings = {
        name: getattr(args, name)
        for name in (
            *("model", "dataset", "root", "epochs", "hidden", "layers"),
            *("dropout", "lr", "weight_decay", "nodes"),
        )
    }
    settings["root"] = str(Path(args.root).expanduser())
    try:
        results = compare(settings, args.seeds)
    except (ChildFailed, Refused) as error:
        print(f"gnnc train: {error}", file=sys.stderr)
        return 1
    if args.json is not None:
        write_json(args.json, results)
    if args.json != "-":
        print(report(results))
    return 0


def compare(settings: Message, seeds: int) -> Message:
    """Trains `seeds` times each way, in turns, from equal parameters; returns what `report` reads.

    Times are medians over all epochs of all seeds but the first of each training, which compiles.
    """
    answers: dict[str, list[Message]] = {way: [] for way in WAYS}
    module = "gnnc.frontend.tools.train"
    with Child(module, environment=PLAIN_TORCH) as eager, Child(module) as compiled:
        for seed in range(seeds):
            for way, child in zip(WAYS, (eager, compiled), strict=True):
                question = {**settings, "seed": seed, "compiled": way == "compiled"}
                answers[way].append(child.ask(question))
    return {
        "settings": settings | {"seeds": seeds},
        "graph": answers["eager"][0]["graph"],
        **{way: _summary(answers[way]) for way in WAYS},
    }


def _summary(answers: list[Message]) -> Message:
    accuracies: list[float] = [a["accuracy"] for a in answers]
    times: list[float] = []
    for answer in answers:
        times += answer["epoch_seconds"][1:] or answer["epoch_seconds"]
    summary: Message = {
        "accuracy": statistics.mean(accuracies),
        "accuracies": accuracies,
        "losses": [a["loss"] for a in answers],
        "epoch_seconds": statistics.median(times),
        "first_epoch_seconds": answers[0]["epoch_seconds"][0],
        # Later seeds start with memory that the allocator kept from the first.
        "memory": answers[0]["memory"],
        "memory_exact": answers[0]["memory_exact"],
    }
    for name in ("compile_seconds", "kernels", "fallbacks"):
        if name in answers[0]:
            summary[name] = answers[0][name]
    return summary


def report(results: Message) -> str:
    """The table for people."""
    graph, settings = results["graph"], results["settings"]
    eager, compiled = results["eager"], results["compiled"]
    title = (
        f"{settings['model']}, {settings['layers']} layers, on {graph['name']}: "
        f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} features, "
        f"{graph['classes']} classes; {settings['seeds']} seeds, {settings['epochs']} epochs"
    )
    rows = [
        ("", "eager", "compiled", "eager / compiled"),
        ("test accuracy", _accuracy(eager), _accuracy(compiled), ""),
        _ratio_row("epoch, median", eager, compiled, "epoch_seconds", seconds_text),
        _ratio_row("memory, peak above start", eager, compiled, "memory", bytes_text),
        ("first epoch", *(seconds_text(r["first_epoch_seconds"]) for r in (eager, compiled)), ""),
        ("compile time", "", seconds_text(compiled["compile_seconds"]), ""),
        ("kernels", "", str(len(compiled["kernels"])), ""),
        ("parts left to torch", "", str(len(compiled["fallbacks"])), ""),
    ]
    notes = [f"left to torch: {text}" for text in compiled["fallbacks"]]
    if not (eager["memory_exact"] and compiled["memory_exact"]):
        notes.append("this kernel does not reset memory peaks: loading the data may be in them")
    return "\n".join([title, "", table(rows), *notes])


def _accuracy(summary: Message) -> str:
    spread = statistics.pstdev(summary["accuracies"])
    return f"{summary['accuracy']:.1%} ± {spread:.1%}"


def _ratio_row(
    label: str, eager: Message, compiled: Message, name: str, text: Callable[[float], str]
) -> tuple[str, ...]:
    ratio = eager[name] / compiled[name] if compiled[name] else float("inf")
    return (label, text(eager[name]), text(compiled[name]), f"{ratio:.2f} x")
