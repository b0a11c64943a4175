"""The command line of `gnnc bench`: a race by default, other measurements by name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..frontend.tools import figures
from ..frontend.tools.children import ChildFailed, Message, Refused
from ..frontend.tools.report import add_json, write_json
from . import (
    ablation,
    accuracy,
    argo,
    batch_accuracy,
    batches,
    ceilings,
    epochs,
    kernels,
    overlap,
    part_memory,
    pipeline,
    plan,
    race,
    race_figure,
    ranks,
    roofline,
    samplers,
    scaling,
)
from .machine import machine
from .record import record


@dataclass(frozen=True)
class Part:
    """One measurement: what it takes, how it is made (a table at a time), and its tables as text.

    `key` is its place in results, `heading` that in documents, `failed` whether the exit status
    should tell of a failure, `draw` draws all results into one file, `plot` one result into a
    folder and returns the figure's name, or None where it cannot. One that is not `measured`
    predicts: it is no part of `gnnc bench all`.
    """

    name: str
    key: str
    heading: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace], Iterator[Message]]
    report: Callable[..., str]
    failed: Callable[[Sequence[Message]], bool] = lambda _: False
    draw: Callable[[Sequence[Message], Path], None] | None = None
    plot: Callable[[Message, Path], str | None] | None = None
    measured: bool = True


PARTS = (
    Part(
        "race",
        "races",
        "Training epochs",
        "whole epochs against PyG, DGL and hand-written C (the default)",
        race.add_arguments,
        race.measure,
        race.report,
        race.failed,
        race_figure.draw,
    ),
    Part(
        "ceilings",
        "ceilings",
        "Ceilings of the machine",
        "read bandwidth by working set, and multiplications and additions a second",
        ceilings.add_arguments,
        ceilings.measurements,
        ceilings.report,
    ),
    Part(
        "kernels",
        "kernels",
        "Kernels",
        "each kernel's time, and its share of what the machine could do",
        kernels.add_arguments,
        kernels.measure,
        kernels.report,
    ),
    Part(
        "ablation",
        "ablations",
        "Passes left out, one at a time",
        "epochs without each of the optimising passes",
        ablation.add_arguments,
        ablation.measure,
        ablation.report,
    ),
    Part(
        "scaling",
        "scaling",
        "Scaling",
        "epochs by numbers of edges and threads",
        scaling.add_arguments,
        scaling.measure,
        scaling.report,
        draw=scaling.draw_all,
        plot=scaling.plot,
    ),
    Part(
        "samplers",
        "samplers",
        "Samplers of mini-batches",
        "batches sampled by gnnc, and by DGL and PyG",
        samplers.add_arguments,
        samplers.measure,
        samplers.report,
    ),
    Part(
        "batches",
        "batches",
        "Steps on mini-batches",
        "steps on graphs that are new each time, and what a call costs beyond its kernels",
        batches.add_arguments,
        batches.measure,
        batches.report,
        batches.failed,
    ),
    Part(
        "epochs",
        "epochs",
        "Mini-batch epochs",
        "whole epochs on sampled batches, against DGL and PyG's layers",
        epochs.add_arguments,
        epochs.measure,
        epochs.report,
    ),
    Part(
        "argo",
        "argo",
        "Processes and cores of mini-batch training",
        "batches in the processes and on the cores that the tuner chooses, against the default",
        argo.add_arguments,
        argo.measure,
        argo.report,
        argo.failed,
    ),
    Part(
        "overlap",
        "overlap",
        "Messages beside work",
        "how much of the time of messages between two ranks is hidden behind work",
        overlap.add_arguments,
        overlap.measure,
        overlap.report,
    ),
    Part(
        "ranks",
        "ranks",
        "Ranks",
        "two ranks against two threads, and against PyG with torch.distributed on the same parts",
        ranks.add_arguments,
        ranks.measure,
        ranks.report,
    ),
    Part(
        "plan",
        "plans",
        "Plans for ranks",
        "steps and bytes as gnnc plan predicts them, and as they are measured",
        plan.add_arguments,
        plan.measure,
        plan.report,
        plan.failed,
    ),
    Part(
        "memory",
        "memory",
        "Memory of ranks",
        "what ranks take that read their parts from files, against one that has the whole graph",
        part_memory.add_arguments,
        part_memory.measure,
        part_memory.report,
    ),
    Part(
        "accuracy",
        "accuracy",
        "Accuracy on published data",
        "test scores of the same models trained by PyG and compiled, on published data",
        accuracy.add_arguments,
        accuracy.measure,
        accuracy.report,
        accuracy.failed,
    ),
    Part(
        "batch-accuracy",
        "batch_accuracy",
        "Accuracy of training on batches",
        "test scores of training on sampled batches and on the whole graph, on published data",
        batch_accuracy.add_arguments,
        batch_accuracy.measure,
        batch_accuracy.report,
        batch_accuracy.failed,
    ),
    Part(
        "roofline",
        "rooflines",
        "Kernels on GPUs, by prediction",
        "what each kernel would take on a GPU, predicted from counted bytes (none is needed)",
        roofline.add_arguments,
        roofline.measure,
        roofline.report,
        measured=False,
    ),
    Part(
        "pipeline",
        "pipelines",
        "Remote reads beside sums on GPUs, by prediction",
        "what MGG's ideas would bring between GPUs, in virtual time (none is needed)",
        pipeline.add_arguments,
        pipeline.measure,
        pipeline.report,
        pipeline.failed,
        pipeline.draw,
        measured=False,
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of the race, for `gnnc bench` alone, and a subcommand for each part."""
    PARTS[0].add_arguments(parser)
    _add_outputs(parser, PARTS[0])
    commands = parser.add_subparsers(metavar="PART", title="parts")
    for part in PARTS:
        command = commands.add_parser(
            part.name,
            help=part.help,
            description=part.help[0].upper() + part.help[1:] + ".",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        part.add_arguments(command)
        _add_outputs(command, part)
        command.set_defaults(run=partial(run_part, part))
    every = commands.add_parser(
        "all", help="every part that measures, as it is without options, recorded"
    )
    every.add_argument("--record", metavar="FOLDER", default="docs/results")
    every.set_defaults(run=run_all)


def _add_outputs(parser: argparse.ArgumentParser, part: Part) -> None:
    add_json(parser)
    parser.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown")
    parser.add_argument(
        "--record",
        metavar="FOLDER",
        help="add the results to FOLDER/results.json, and write what is there as FOLDER/README.md",
    )
    parser.set_defaults(plot=None)
    if part.draw is not None:
        parser.add_argument(
            "--plot", metavar="FILE", help="draw them (.svg, .png, ..; needs matplotlib)"
        )


def run(args: argparse.Namespace) -> int:
    """The race."""
    return run_part(PARTS[0], args)


def run_all(args: argparse.Namespace) -> int:
    """Every part with its defaults; 1 if one failed."""
    status = 0
    for part in (p for p in PARTS if p.measured):
        parser = argparse.ArgumentParser()
        part.add_arguments(parser)
        _add_outputs(parser, part)
        status |= run_part(part, parser.parse_args(["--record", args.record]))
    return status


def run_part(part: Part, args: argparse.Namespace) -> int:
    """Measures, prints each table as it is made, writes the files; returns the exit status."""
    results: list[Message] = []
    try:
        if args.plot is not None:
            figures.check("--plot", Path(args.plot))
        for result in part.measure(args):
            results.append(result)
            if args.json != "-":
                print(part.report(result), end="\n\n", flush=True)
    except (ChildFailed, Refused) as error:
        print(f"gnnc bench {part.name}: {error}", file=sys.stderr)
        return 1
    here = machine()
    if args.json:
        write_json(args.json, {"machine": here, part.key: results})
    if args.markdown:
        texts = [part.report(r, markdown=True) for r in results]
        Path(args.markdown).write_text("\n\n".join(texts) + "\n")
    if args.record:
        record(Path(args.record), part, PARTS, results, here)
    if args.plot is not None and part.draw is not None:
        part.draw(results, Path(args.plot))
    return 1 if part.failed(results) else 0
