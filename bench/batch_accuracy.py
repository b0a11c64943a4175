"""Accuracy of training on sampled batches against that of training on the whole graph, on published
data."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from collections.abc import Iterator, Sequence

from ..frontend.tools.children import Child, Message
from ..frontend.tools.report import seconds_text, table
from . import batch_options, real
from .accuracy import difference
from .graphs import GRAPHS, RealGraph

WAYS = ("batches", "whole graph")
TOLERANCE = 0.01
"""How far the mean test accuracies may be apart."""
SHAPE = ("hidden", "epochs", "whole_epochs", "fanouts", "batch_size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    real.add_argument(parser)
    names = [name for name, graph in GRAPHS.items() if isinstance(graph, RealGraph)]
    parser.add_argument("--graphs", nargs="+", choices=names, default=["dblp", "photo"])
    parser.add_argument("--hidden", type=int, default=64, help="features between the two layers")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each way")
    parser.add_argument("--epochs", type=int, default=20, help="on batches")
    parser.add_argument("--whole-epochs", type=int, default=200, help="on the whole graph")
    batch_options.add_batches(parser)
    usual = os.environ.get("GNNC_DATA")
    parser.set_defaults(fanouts=[10, 10], batch_size=512, data=usual)


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A graph at a time, both ways in turns, seed by seed.

    Raises:
        Refused: there is no data, before anything is trained.
    """
    for name in args.graphs:
        real.check(name, args.data)
    for name in args.graphs:
        shape = {k: getattr(args, k) for k in SHAPE}
        answers: dict[str, list[Message]] = {way: [] for way in WAYS}
        with real.prepared(name, args.data) as file, Child("gnnc.bench.batch_accuracy_child") as c:
            c.ask({"file": file, **{k: shape[k] for k in ("hidden", "fanouts", "batch_size")}})
            for seed in range(args.seeds):
                for way, epochs in zip(WAYS, (args.epochs, args.whole_epochs), strict=True):
                    question = {"seed": seed, "epochs": epochs, "batched": way == WAYS[0]}
                    answers[way].append(answer := c.ask(question))
                    print(f"{name}, seed {seed}, {way}: {answer['score']:.4f}", file=sys.stderr)
        results = {
            way: {
                "scores": [a["score"] for a in found],
                "steps": found[0]["steps"],
                "seconds": statistics.median(a["seconds"] for a in found),
                "in_torch": found[-1]["in_torch"],
            }
            for way, found in answers.items()
        }
        yield {"graph": name, **shape, **GRAPHS[name].sizes(), "results": results}


def failed(results: Sequence[Message]) -> bool:
    """Whether the two are further apart than they may be."""
    return any(abs(difference(r, WAYS)[0]) > TOLERANCE for r in results)


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a way."""
    rows = [["trained on", "test accuracy", "spread", "steps", "training"]]
    for way, found in result["results"].items():
        scores: list[float] = found["scores"]
        rows.append(
            [
                way,
                f"{statistics.mean(scores):.4f}",
                f"{statistics.pstdev(scores):.4f}",
                f"{found['steps']:,}",
                seconds_text(found["seconds"]),
            ]
        )
    mean, error = difference(result, WAYS)
    how = "" if math.isnan(error) else f" ± {error:.4f} (standard error)"
    title = (
        f"sage, 2 layers of {result['hidden']}, on {result['graph']}: {result['nodes']:,} nodes, "
        f"{result['edges']:,} edges; {batch_options.batches_text(result)}; "
        f"{len(result['results'][WAYS[0]]['scores'])} seeds"
    )
    note = f"{WAYS[0]} - {WAYS[1]}, mean over seeds: {mean:+.4f}{how}; {TOLERANCE} apart is allowed"
    texts = [f"{w} runs in torch: {t}" for w, r in result["results"].items() for t in r["in_torch"]]
    return "\n".join([title, "", table(rows, markdown=markdown), "", note, *texts])
