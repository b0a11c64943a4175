"""What each optimising pass is worth: epochs of gnnc with all, and without one at a time; or with
and without the two optimisations of Hector, as in table 5 of its paper (Wu et al., ASPLOS 2024)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..frontend.tools.children import Message
from ..passes.driver.pipelines import passes_of, pipeline
from ..passes.driver.runner import pipeline_text
from ..passes.targets.openmp import OPENMP
from ..runtime.cpu import toolchain
from . import race
from .graphs import COMPILED

FULL = "all passes"
NEEDED = ("autodiff", "split-phases", "lower-to-intra", "schedule", "cut-stages")
"""These change a program's form: there is no C without them."""
TIDY = ("canonicalize", "cse", "dce-sets")
"""These clean up behind the others."""


_ALL = dict.fromkeys(p.name for p in passes_of(pipeline(True, OPENMP)))
PASSES = tuple(name for name in _ALL if name not in (*NEEDED, *TIDY))

COMPACTION, REORDERING = "infer-domains", "reorder-linear"
HECTOR = {"none": (COMPACTION, REORDERING), "C": (REORDERING,), "R": (COMPACTION,), "C+R": ()}
"""By Hector's names for its choices, the passes that each leaves out."""
AUTO = "auto"
"""The pipeline as it is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    race.add_task_arguments(parser)
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=list(PASSES))
    parser.add_argument(
        "--pipelines",
        nargs="+",
        choices=(*HECTOR, AUTO),
        default=None,
        help="instead of leaving out one pass at a time: without and with compact "
        "materialization (C) and linear operator reordering (R)",
    )
    parser.add_argument("--contestant", choices=COMPILED, default="gnnc")
    race.add_race_arguments(parser)


def without(specification: str, *names: str) -> str:
    """A pipeline without any of the passes of those names."""
    return pipeline_text([p for p in passes_of(specification) if p.name not in names])


def variants(args: argparse.Namespace) -> dict[str, str | None]:
    """The pipelines to compare by what tables call them; None is the one of `gnnc.compile`."""
    whole = pipeline(True, OPENMP.on(toolchain.vector_bytes()))
    if args.pipelines is not None:
        return {n: without(whole, *HECTOR[n]) if n != AUTO else None for n in args.pipelines}
    return {FULL: None, **{f"no {name}": without(whole, name) for name in args.passes}}


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A race of pipelines for every model on every graph that goes with it."""
    entries: dict[str, Message] = {}
    for name, passes in variants(args).items():
        options = {} if passes is None else {"passes": passes, "fullgraph": True}
        entries[name] = {"contestant": args.contestant, **options}
    study = {} if args.pipelines is None else {"study": "pipelines"}
    for task in race.chosen_tasks(args):
        result = race.race(args, task, entries, new_graphs=0)
        yield {**result, "contestant": args.contestant, **study}


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a pipeline, relative to that with all passes."""
    base = FULL if FULL in result["results"] else AUTO
    text = race.report(result, markdown=markdown, base=base)
    return f"{result['contestant']}: {text}"
