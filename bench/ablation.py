"""What each optimising pass is worth: epochs of gnnc with all, and without one at a time."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..frontend.children import Message
from ..passes.pipelines import passes_of, pipeline
from ..passes.runner import pipeline_text
from ..runtime import toolchain
from . import race
from .graphs import COMPILED, GRAPHS, MODELS

FULL = "all passes"
NEEDED = ("autodiff", "split-phases", "lower-to-intra", "schedule")
"""These change a program's form: there is no C without them."""
TIDY = ("canonicalize", "cse", "dce-sets")
"""These clean up behind the others."""


def _optimising() -> tuple[str, ...]:
    names = (p.name for p in passes_of(pipeline(True, 64)))
    return tuple(dict.fromkeys(n for n in names if n not in (*NEEDED, *TIDY)))


PASSES = _optimising()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--graphs", nargs="+", choices=tuple(GRAPHS), default=["arxiv-like"])
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=list(PASSES))
    parser.add_argument("--contestant", choices=COMPILED, default="gnnc")
    race.add_race_arguments(parser)


def without(specification: str, name: str) -> str:
    """A pipeline without any of the passes of that name."""
    return pipeline_text([p for p in passes_of(specification) if p.name != name])


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A race of pipelines for every model on every graph."""
    whole = pipeline(True, toolchain.vector_bytes())
    entries: dict[str, Message] = {FULL: {"contestant": args.contestant}}
    for name in args.passes:
        options = {"passes": without(whole, name), "fullgraph": True}
        entries[f"no {name}"] = {"contestant": args.contestant, **options}
    for graph in args.graphs:
        for model in args.models:
            result = race.race(args, graph, model, entries, new_graphs=0)
            yield {**result, "contestant": args.contestant}


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a pipeline, relative to that with all passes."""
    text = race.report(result, markdown=markdown, base=FULL)
    return f"{result['contestant']}: {text}"
