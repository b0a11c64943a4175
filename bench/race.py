"""Contestants in processes of their own, taking turns; medians, ratios and memory."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..frontend.children import Child, ChildFailed, Message
from ..frontend.report import bytes_text, seconds_text, table, write_json

CONTESTANTS = ("gnnc", "pyg", "pyg-sparse", "dgl")
MODELS = ("gcn", "sage", "gin")

# nodes, edges, features, classes: the sizes of published graphs, with drawn links and features
GRAPHS = {
    "tiny": (1_000, 7_000, 16, 4),
    "small": (20_000, 140_000, 128, 40),
    "pubmed-like": (19_717, 88_648, 500, 3),
    "flickr-like": (89_250, 899_756, 500, 7),
    "arxiv-like": (169_343, 1_166_243, 128, 40),
    "reddit-tenth": (232_965, 11_606_919, 602, 41),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--graphs", nargs="+", choices=tuple(GRAPHS), default=["arxiv-like"])
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--hidden", type=int, default=32, help="features between layers")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contestant has")
    parser.add_argument("--epochs", type=int, default=2, help="epochs in each turn")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the results as JSON, to standard output without FILE",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown")


def run(args: argparse.Namespace) -> int:
    """Races every model on every graph, prints a table for each, and returns the exit status."""
    races: list[Message] = []
    for graph in args.graphs:
        for model in args.models:
            races.append(race(args, graph, model))
            if args.json != "-":
                print(report(races[-1], args.contestants), end="\n\n", flush=True)
    results = {"machine": machine(), "races": races}
    if args.json:
        write_json(args.json, results)
    if args.markdown:
        texts = [report(r, args.contestants, markdown=True) for r in races]
        Path(args.markdown).write_text("\n\n".join(texts) + "\n")
    return 0 if all(c.get("error") is None for r in races for c in r["results"].values()) else 1


def race(args: argparse.Namespace, graph: str, model: str) -> Message:
    """Median epoch of every contestant on one model and graph.

    All are prepared first and then have `rounds` turns in rotation, so that what else the machine
    does falls on all of them. One that fails is left out of the rest, with the reason.
    """
    results: dict[str, Message] = {name: {} for name in args.contestants}
    children: dict[str, Child] = {}

    def ask(name: str, question: Message) -> None:
        try:
            answer = children[name].ask(question)
        except ChildFailed as error:
            del children[name]
            results[name] = {"error": str(error)}
            print(f"{name} is out: {error}", file=sys.stderr)
        else:
            _add(results[name], answer)

    with ExitStack() as stack:
        for name in args.contestants:
            children[name] = stack.enter_context(Child("gnnc.bench.contestant"))
            shape = {"graph": GRAPHS[graph], "hidden": args.hidden, "layers": args.layers}
            ask(name, {"contestant": name, "model": model, **shape})
        for _ in range(args.rounds):
            for name in list(children):
                ask(name, {"epochs": args.epochs})
    for name in children:
        results[name]["median_seconds"] = statistics.median(results[name]["seconds"])
    nodes, edges, features, classes = GRAPHS[graph]
    return {
        "graph": graph,
        "model": model,
        **{"nodes": nodes, "edges": edges, "features": features, "classes": classes},
        **{"hidden": args.hidden, "layers": args.layers, "results": results},
    }


def _add(result: Message, answer: Message) -> None:
    """Takes an answer into a contestant's result; the first is that of its warm-up."""
    if "seconds" not in result:
        result |= {"first_seconds": answer["seconds"][0], "seconds": []}
        result["loss"] = answer["losses"][0]
    else:
        result["seconds"] += answer["seconds"]
    for key in ("memory", "process_memory", "memory_exact"):
        result[key] = answer[key]


def machine() -> Message:
    """What the numbers depend on besides the contestants."""
    packages: dict[str, str | None] = {}
    for name in ("gnnc", "torch", "torch-geometric", "dgl", "numpy", "xdsl"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "packages": packages,
    }


def _processor() -> str:
    """The name that Linux has for it, else its instruction set."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def report(race: Message, contestants: list[str], *, markdown: bool = False) -> str:
    """One table: a line a contestant; times and memory also as multiples of gnnc's."""
    heading = ("", "epoch, median", "fastest", "/ gnnc", "first", "memory", "/ gnnc", "loss")
    ours = race["results"].get("gnnc", {})
    rows: list[tuple[str, ...]] = [heading]
    for name in contestants:
        result = race["results"][name]
        if "error" in result:
            rows.append((name, "failed", *[""] * (len(heading) - 2)))
            continue
        rows.append(
            (
                name,
                seconds_text(result["median_seconds"]),
                seconds_text(min(result["seconds"])),
                _ratio(result, ours, "median_seconds"),
                seconds_text(result["first_seconds"]),
                bytes_text(result["memory"]),
                _ratio(result, ours, "memory"),
                f"{result['loss']:.5f}",
            )
        )
    title = (
        f"{race['model']}, {race['layers']} layers of {race['hidden']}, on {race['graph']}: "
        f"{race['nodes']:,} nodes, {race['edges']:,} edges, {race['features']} features, "
        f"{race['classes']} classes"
    )
    return "\n".join([title, "", table(rows, markdown=markdown), *_warnings(race["results"])])


def _warnings(results: dict[str, Message]) -> list[str]:
    """What a reader of the numbers must know; DGL is not compared, for it initialises otherwise."""
    losses = {n: r["loss"] for n, r in results.items() if n != "dgl" and "loss" in r}
    texts: list[str] = []
    if losses and max(losses.values()) > 1.001 * min(losses.values()):
        texts.append(
            f"WARNING: the first losses differ, so something is computed wrongly: {losses}"
        )
    if not all(r.get("memory_exact", True) for r in results.values()):
        texts.append("This kernel does not reset memory peaks: preparation may be in them.")
    return texts


def _ratio(result: Message, ours: Message, name: str) -> str:
    return f"{result[name] / ours[name]:.2f}" if ours.get(name) else ""
