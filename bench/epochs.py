"""Whole mini-batch epochs, sampling, slicing and steps: gnnc against DGL and PyG's layers."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..frontend.tools.children import Message
from ..frontend.tools.report import seconds_text, table
from . import batch_options, large_graphs
from .turns import absent_lines, add_threads, turns

MODELS = ("sage", "gat")
CONTESTANTS = {
    "gnnc": ("gnnc", 1),
    "gnnc-alone": ("gnnc", 0),
    "gnnc-step": ("gnnc-step", 0),
    "gnnc-blocks": ("gnnc-blocks", 1),
    "dgl": ("dgl", 0),
    "dgl-worker": ("dgl", 1),
    "pyg": ("pyg", 0),
    "pyg-worker": ("pyg", 1),
}
"""Whose layers they are, and how many workers make batches ahead: threads of gnnc, processes of the
others. With 0 a batch is made when it is asked for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    names = list(CONTESTANTS)
    parser.add_argument("--contestants", nargs="+", choices=names, default=names)
    large_graphs.add_sizes(parser, *large_graphs.SIZES)
    batch_options.add_batches(parser)
    parser.add_argument("--share", type=float, default=0.5, help="of the nodes, that are seeds")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=64, help="features between layers")
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=1, help="in each turn, from new weights")
    parser.add_argument("--turns", type=int, default=3, help="of each contestant, a seed each")
    parser.add_argument("--window", type=int, default=20, help="steps that losses are meaned over")
    add_threads(parser)


SHAPE = ("features", "hidden", "classes", "fanouts", "batch_size", "share", "lr")


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A model on a graph at a time."""
    for nodes, edges in args.sizes:
        for model in args.models:
            shape = {k: getattr(args, k) for k in SHAPE}
            task = {"model": model, "nodes": nodes, "edges": edges, **shape}
            graph = large_graphs.name(nodes, edges)
            yield {"graph": graph, **task, "threads": args.threads, **_raced(task, args)}


def _raced(task: Message, args: argparse.Namespace) -> Message:
    chosen = {name: CONTESTANTS[name] for name in args.contestants}
    whose = {name: library for name, (library, _) in chosen.items()}
    with turns("gnnc.bench.epochs_child", whose, args.threads) as racing:
        questions = {n: {"library": x, "workers": w, **task} for n, (x, w) in chosen.items()}
        described = racing.prepare(questions)
        for seed in range(args.turns):
            racing.turn({"seed": seed, "epochs": args.epochs})
    curves = {
        name: np.array([smoothed(a["losses"], args.window) for a in found])
        for name, found in racing.answers.items()
    }
    first = {described[name]["rule"]: curve for name, curve in reversed(curves.items())}
    results = {
        name: {
            "median_seconds": statistics.median(s for a in found for s in a["seconds"]),
            "last_loss": float(curves[name][:, -1].mean()),
            "apart": apart(curves[name], first[described[name]["rule"]]),
            "spread": float(curves[name].std(0).max()),
            **described[name],
        }
        for name, found in racing.answers.items()
    }
    return {"window": args.window, "results": results, "absent": racing.absent}


def smoothed(losses: Sequence[float], window: int) -> NDArray[np.float64]:
    """Running means over so many steps, or over all where there are fewer."""
    width = min(window, len(losses))
    return np.convolve(losses, np.full(width, 1 / width), mode="valid")


def apart(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """How far the means over seeds of two sets of curves (seeds x steps) are apart at most."""
    return float(np.abs(a.mean(0) - b.mean(0)).max())


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a contestant."""
    results: dict[str, Message] = result["results"]
    base = {found["rule"]: found for found in reversed(results.values())}
    head = ["", "sampled by", "nodes expanded", "epoch, median", "/ first"]
    rows = [[*head, "loss in the end", "apart", "spread"]]
    for name, found in results.items():
        seconds = found["median_seconds"]
        rows.append(
            [
                name,
                found["fed_by"],
                found["rule"],
                seconds_text(seconds),
                f"{seconds / base[found['rule']]['median_seconds']:.2f}",
                f"{found['last_loss']:.4f}",
                f"{found['apart']:.4f}",
                f"{found['spread']:.4f}",
            ]
        )
    first = (
        f"{result['model']}, {len(result['fanouts'])} layers of {result['hidden']}: "
        f"{result['nodes']:,} nodes, {result['edges']:,} edges, {result['features']} features, "
        f"{result['classes']} classes, {result['share']:g} of the nodes are seeds; "
        f"{batch_options.batches_text(result)}; {result['threads']} threads"
    )
    curves = (
        f"loss: mean over seeds of running means over {result['window']} steps; apart: largest "
        "difference; spread: largest standard deviation over seeds; ratio and difference are to "
        "the first that expands the same nodes"
    )
    parts = [f"{n} runs in torch: {p}" for n, found in results.items() for p in found["in_torch"]]
    lines = [first, "", table(rows, markdown=markdown), "", curves, *parts]
    return "\n".join([*lines, *absent_lines(result)])
