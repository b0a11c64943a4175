"""`gnnc plan`: predicts training on ranks, from a graph, a partition, or numbers alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from ...runtime.partition import assign, files
from ..plan import constants as constants_file
from ..plan.constants import Constants
from ..plan.layers import KINDS
from ..plan.loads import Loads, Numbers, of_folder, of_partition
from . import figures, partition_command, plan_figure, plan_report
from .children import ChildFailed, Refused
from .plan_report import Plan, Shape, planned
from .report import add_json, check_place, write_json

OVERRIDES = ("alpha", "bandwidth", "overlap", "shared", "shared_caches")
"""The constants that have an option of their own."""
RANKS: list[int] = [1, 2, 4, 8, 16]
"""What is planned for unless it is said."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "graph",
        nargs="?",
        help="a folder of gnnc partition --out, or what gnnc partition takes, which is cut for "
        "each number of ranks; None: --nodes and --edges",
    )
    parser.add_argument(
        "-n",
        "--ranks",
        nargs="+",
        type=_whole,
        metavar="P",
        help="how many ranks (None: that of the folder, or 1 2 4 8 16)",
    )
    partition_command.add_cutting(parser)
    _add_numbers(parser)
    _add_model(parser)
    _add_machine(parser)
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the prediction (.svg, .png, ..; needs matplotlib)"
    )
    add_json(parser)


def _add_numbers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a graph of which only numbers are known")
    group.add_argument("--nodes", type=_whole, help="how many, 1e9 say")
    group.add_argument("--edges", type=_whole, help="how many, 1e11 say")
    group.add_argument(
        "--exponent",
        type=float,
        default=0.0,
        help="owners are drawn, and the k-th most frequent source has a frequency like k ** "
        "-EXPONENT; 0: all are equally frequent",
    )
    group.add_argument(
        "--across", type=float, help="the share of edges that crosses (None: owners are drawn)"
    )
    group.add_argument(
        "--border",
        type=float,
        default=1.0,
        help="with --across, the share of the nodes of a rank that others may read",
    )
    group.add_argument(
        "--imbalance", type=float, default=1.0, help="the greatest work of a rank over the mean"
    )


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is trained")
    group.add_argument("--model", choices=KINDS, default="gcn")
    group.add_argument("--features", type=_whole, default=128)
    group.add_argument("--hidden", type=_whole, default=64, help="numbers between layers")
    group.add_argument("--classes", type=_whole, default=16)
    group.add_argument("--layers", type=_whole, default=2)
    group.add_argument("--steps", type=_whole, default=1, help="of an epoch")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the machine")
    group.add_argument("--constants", metavar="FILE", help="those that --calibrate has measured")
    group.add_argument(
        "--calibrate",
        metavar="FILE",
        help="measure the constants here, which takes two minutes, write them to FILE and use them",
    )
    for name, text in (
        ("alpha", "seconds for each message"),
        ("bandwidth", "bytes a second of a link"),
        ("overlap", "the share of the aggregation of local edges that goes on beside messages"),
        ("shared", "the time of work where all cores have ranks over that of a rank alone"),
        ("shared_caches", "the share of the caches that a rank has there"),
    ):
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, type=float, help=f"{text} (None: as measured)")
    group.add_argument(
        "--chunks", type=_whole, default=1, help="into which a message is divided, in simulation"
    )


def _whole(text: str) -> int:
    """`1e9` and `1000000000`."""
    value = float(text)
    if not 1 <= value < 1e18 or value != int(value):
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(value)


_whole.__name__ = "whole number"  # argparse names it where the text is no number


def run(args: argparse.Namespace) -> int:
    """Calibrates where that is asked for, predicts, prints, draws; returns the exit status."""
    try:
        _check_places(args)
        constants = _constants(args)
        plan = None if _only_calibrates(args) else _plan(args, constants)
    except (Refused, ChildFailed, OSError, ValueError, TypeError) as error:
        print(f"gnnc plan: {error}", file=sys.stderr)
        return 1
    if plan is None:
        if args.json is not None:
            write_json(args.json, {"constants": asdict(constants)})
        if args.json != "-":
            print(plan_report.constants_text(constants))
        return 0
    if args.json is not None:
        write_json(args.json, plan_report.results(plan))
    if args.json != "-":
        print(plan_report.report(plan))
    if args.plot is not None:
        plan_figure.draw(plan, Path(args.plot))
    return 0


def _check_places(args: argparse.Namespace) -> None:
    """Before anything takes time.

    Raises:
        Refused: a file cannot be written, or options do not go together.
    """
    if args.json not in (None, "-"):
        check_place("--json", Path(args.json))
    if args.plot is not None:
        figures.check("--plot", Path(args.plot))
    if args.calibrate is not None:
        check_place("--calibrate", Path(args.calibrate))
        if args.constants is not None:
            raise Refused("--constants: --calibrate measures them")
    numbers = args.nodes is not None or args.edges is not None
    if args.graph is not None and numbers:
        raise Refused("--nodes and --edges: the graph has its own")
    if numbers and None in (args.nodes, args.edges):
        raise Refused("--nodes and --edges: both are needed")
    if args.graph is None and not numbers and args.calibrate is None:
        raise Refused("graph: give one, or --nodes and --edges")


def _only_calibrates(args: argparse.Namespace) -> bool:
    return args.graph is None and args.nodes is None


def _constants(args: argparse.Namespace) -> Constants:
    """Those of the file, measured now or before, or the defaults; then those of the options."""
    constants = Constants()
    if args.constants is not None:
        constants = constants_file.load(Path(args.constants))
    if args.calibrate is not None:
        from ...bench import calibration
        from ...bench.machine import machine

        constants = calibration.calibrate()
        constants_file.save(Path(args.calibrate), constants, machine())
    given = {name: getattr(args, name) for name in OVERRIDES if getattr(args, name) is not None}
    return replace(constants, **given)


def _plan(args: argparse.Namespace, constants: Constants) -> Plan:
    widths = [args.features, *[args.hidden] * (args.layers - 1), args.classes]
    ranks, loads = _loads(args)
    shape = Shape(args.model, tuple(widths), args.steps)
    return planned(shape, [loads(p) for p in ranks], constants, args.chunks)


def _loads(args: argparse.Namespace) -> tuple[list[int], Callable[[int], Loads]]:
    """The numbers of ranks, ascending, and what makes the loads of one."""
    if args.graph is not None and (folder := Path(args.graph).expanduser()).is_dir():
        if (folder / files.MANIFEST).is_file():
            found = of_folder(folder)
            if args.ranks not in (None, [found.ranks]):
                raise Refused(f"--ranks: {args.graph} is for {found.ranks} ranks")
            return [found.ranks], lambda _: found
    ranks: list[int] = sorted(set(args.ranks or RANKS))
    if args.graph is None:
        numbers = Numbers(
            args.nodes, args.edges, args.exponent, args.across, args.border, args.imbalance
        )
        return ranks, numbers.loads
    graph = partition_command.read(args.graph, args.root)
    methods = partition_command.chosen_methods(args.method)

    def cut(parts: int) -> Loads:
        owner = assign.partition(assign.Task(graph, parts), methods).owner
        return of_partition(graph, owner, parts)

    return ranks, cut
