"""Accuracy on published data: the same models trained by PyG and compiled, from equal weights."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..frontend.tools.children import Child, Message, Refused
from ..frontend.tools.memory import available
from ..frontend.tools.report import bytes_text, seconds_text, table
from . import real
from .graphs import GRAPHS, Real

WAYS = ("gnnc", "pyg")


@dataclass(frozen=True)
class Study:
    """A model on a published data set, a graph of `graphs.GRAPHS`.

    `metric` is what is compared on the test set, and `tolerance` how far the means of both ways
    may be apart. `hidden`, `epochs` and `seeds` are what is taken without options.
    """

    model: str
    graph: str
    metric: str
    tolerance: float
    layers: int
    hidden: int
    epochs: int
    seeds: int


STUDIES = {
    "aifb": Study("rgcn", "aifb", "accuracy", 0.02, 2, 16, 30, 10),
    "acm": Study("hgt", "acm", "accuracy", 0.02, 1, 64, 30, 10),
    "fb15k-237": Study("rgcn-distmult", "fb15k-237", "filtered MRR", 0.01, 2, 64, 20, 2),
}
"""What bench/accuracy_tasks.py trains, by name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=os.environ.get("GNNC_DATA"),
        help="the folder with the raw files, laid out as PyG's data sets have them "
        "(None: $GNNC_DATA)",
    )
    parser.add_argument(
        "--tasks", nargs="+", choices=tuple(STUDIES), default=list(STUDIES), metavar="TASK"
    )
    for name, text in (
        ("seeds", "trainings of each way (None: as usual for the task)"),
        ("epochs", "epochs of each training (None: as usual for the task)"),
        ("hidden", "features between layers (None: as usual for the task)"),
    ):
        parser.add_argument(f"--{name}", type=_positive, default=None, metavar="N", help=text)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """Every task, both ways in turns, seed by seed.

    Raises:
        Refused: there is no data, before anything is trained.
    """
    if args.data is None:
        raise Refused("this needs published data: name its folder with --data FOLDER or $GNNC_DATA")
    data = str(Path(args.data).expanduser())
    for name in args.tasks:
        real.check(STUDIES[name].graph, data)
    for name in args.tasks:
        yield _study(args, name, data)


def _study(args: argparse.Namespace, name: str, data: str) -> Message:
    study = STUDIES[name]
    chosen = {k: getattr(args, k) or getattr(study, k) for k in ("seeds", "epochs", "hidden")}
    answers: dict[str, list[Message]] = {way: [] for way in WAYS}
    limit = available() * 3 // 4
    with tempfile.TemporaryDirectory(prefix="gnnc-bench-") as place:
        root = _copy(study.graph, Path(data), Path(place))
        asked = {"task": name, "root": root, "epochs": chosen["epochs"], "hidden": chosen["hidden"]}
        with _child(limit) as ours, _child(limit) as theirs:
            for seed in range(chosen["seeds"]):
                for way, child in zip(WAYS, (ours, theirs), strict=True):
                    question = {**asked, "seed": seed, "compiled": way == "gnnc"}
                    answers[way].append(answer := child.ask(question))
                    median = seconds_text(statistics.median(answer["epoch_seconds"]))
                    text = f"{name}, seed {seed}, {way}: {answer['score']:.4f}, {median} an epoch"
                    print(text, file=sys.stderr, flush=True)
    described = {"model": study.model, "graph": study.graph, "layers": study.layers, **chosen}
    return {
        "study": "accuracy",
        **described,
        **answers["pyg"][0]["sizes"],
        "metric": study.metric,
        "tolerance": study.tolerance,
        "results": {way: _summary(found) for way, found in answers.items()},
    }


def _child(limit: int) -> Child:
    # PyG numbers AIFB's nodes in the order of a set of strings.
    environment = {"PYTHONHASHSEED": "0"}
    return Child("gnnc.bench.accuracy_child", memory_limit=limit, environment=environment)


def _copy(graph: str, data: Path, place: Path) -> str:
    """Copies the raw files of a data set, for PyG writes beside them; returns PyG's `root`."""
    known = GRAPHS[graph]
    assert isinstance(known, Real)
    folder = known.folder
    raw = place / folder / "raw"
    shutil.copytree(data / folder / "raw", raw, copy_function=shutil.copyfile)
    for packed in raw.glob("*.zip"):
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(raw)
    return str((place / folder).parent)


def _summary(answers: Sequence[Message]) -> Message:
    """Of one way; times are medians over all epochs but the first of each training."""
    scores: list[float] = [a["score"] for a in answers]
    seconds: list[float] = []
    for answer in answers:
        seconds += answer["epoch_seconds"][1:] or answer["epoch_seconds"]
    summary: Message = {
        "mean": statistics.mean(scores),
        "spread": statistics.pstdev(scores),
        "scores": scores,
        "losses": [a["loss"] for a in answers],
        "first_losses": [a["first_loss"] for a in answers],
        "median_seconds": statistics.median(seconds),
        "first_seconds": answers[0]["epoch_seconds"][0],
    }
    # Later trainings start with memory that the allocator kept from the first.
    return summary | {k: answers[0][k] for k in ("memory", "memory_exact", "kernels", "in_torch")}


def difference(result: Message, ways: Sequence[str] = WAYS) -> tuple[float, float]:
    """The mean over seeds of the score of one way less that of the other, by default of gnnc less
    PyG, and its standard error (nan for one seed)."""
    ours, theirs = (result["results"][way]["scores"] for way in ways)
    apart = [a - b for a, b in zip(ours, theirs, strict=True)]
    error = statistics.stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else math.nan
    return statistics.mean(apart), error


def failed(results: Sequence[Message]) -> bool:
    """Whether the ways are further apart than a task allows."""
    return any(abs(difference(r)[0]) > r["tolerance"] for r in results)


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a way."""
    results: Mapping[str, Message] = result["results"]
    heading = ("", f"test {result['metric']}", "spread", "epoch, median", "first", "memory")
    rows = [
        (
            way,
            f"{found['mean']:.4f}",
            f"{found['spread']:.4f}",
            seconds_text(found["median_seconds"]),
            seconds_text(found["first_seconds"]),
            bytes_text(found["memory"]),
        )
        for way, found in results.items()
    ]
    layers = f"{result['layers']} layer{'s' if result['layers'] > 1 else ''}"
    first = (
        f"{result['model']}, {layers} of {result['hidden']}, on {result['graph']}: "
        f"{result['nodes']:,} nodes, {result['edges']:,} edges of {result['relations']} relations; "
        f"{result['seeds']} seeds, {result['epochs']} epochs"
    )
    return "\n".join([first, "", table([heading, *rows], markdown=markdown), "", *_notes(result)])


def _notes(result: Message) -> list[str]:
    mean, error = difference(result)
    how = "" if math.isnan(error) else f" ± {error:.4f} (standard error)"
    allowed = result["tolerance"]
    texts = [f"gnnc - pyg, mean over seeds: {mean:+.4f}{how}; at most {allowed} apart is allowed"]
    if abs(mean) > allowed:
        texts.append("WARNING: the two are further apart than that.")
    ours = result["results"]["gnnc"]
    texts += [f"gnnc runs in torch: {part}" for part in ours["in_torch"]]
    if not all(found["memory_exact"] for found in result["results"].values()):
        texts.append("This kernel does not reset memory peaks: loading the data may be in them.")
    return texts
