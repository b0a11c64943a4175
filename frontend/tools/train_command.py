"""`gnnc train`: its arguments, what is checked of them before anything runs, and its results."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

from . import checkpoint_folder, figures, training_figure, tuning_report
from .children import ChildFailed, Message, Refused
from .compare import WAYS, compare
from .comparison_table import report
from .report import add_json, check_place, write_json

CHECKPOINT_EVERY = 10
FANOUT = 10
TRIALS = 20
STOPPED = 130
"""The exit status that shells give what Ctrl-C has ended."""
_SETTINGS = (
    *("model", "dataset", "root", "nodes", "epochs", "hidden", "layers"),
    *("dropout", "lr", "weight_decay", "eval_every", "mode", "batch_size"),
)


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
    parser.add_argument(
        "--nodes", type=_positive, default=2708, help="the size of the generated graph"
    )
    _add_hyperparameters(parser)
    _add_batches(parser)
    _add_ways(parser)
    parser.add_argument(
        "--eval",
        type=_positive,
        default=None,
        metavar="N",
        dest="predictions",
        help="then freeze the parameters and time so many predictions for all nodes",
    )
    _add_checkpoints(parser)
    add_json(parser)
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw loss and accuracy over epochs and time (.svg, .png, ..; needs matplotlib)",
    )


def _add_hyperparameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epochs", type=_positive, default=100)
    parser.add_argument("--hidden", type=_positive, default=16, help="features between layers")
    parser.add_argument("--layers", type=_positive, default=2)
    parser.add_argument("--dropout", type=_share, default=0.5)
    parser.add_argument("--lr", type=_not_negative, default=0.01)
    parser.add_argument("--weight-decay", type=_not_negative, default=5e-4)
    parser.add_argument("--seeds", type=_positive, default=3, help="how many trainings to average")
    parser.add_argument(
        "--eval-every",
        type=_count,
        default=1,
        metavar="N",
        help="epochs between evaluations, of which the best on the validation nodes gives the "
        "test accuracy; 0: only one, at the end",
    )


def _add_batches(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batch-size",
        type=_positive,
        default=None,
        metavar="B",
        help="a step is on so many training nodes and sampled neighbours (None: the whole graph)",
    )
    parser.add_argument(
        "--fanouts",
        type=_fanouts,
        default=None,
        metavar="N,N,..",
        help="neighbours sampled of a node at each hop, from the training nodes, a number a layer, "
        f"-1: all (None: {FANOUT} each)",
    )
    parser.add_argument(
        "--auto",
        action="store_true",
        help="with --batch-size: find by trials how many processes train, and on which cores they "
        "sample and train; the compiled way alone, where --only names no other",
    )
    parser.add_argument(
        "--trials",
        type=_positive,
        default=None,
        help=f"at most so many for --auto (None: {TRIALS})",
    )
    parser.add_argument(
        "--plot-trials", metavar="FILE", help="draw the trials of --auto (.svg, .png, ..)"
    )


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        choices=("drop-in", "step"),
        default="drop-in",
        help="what is compiled: the model, by gnnc.compile in torch's loop, or the whole step "
        "with loss and update, by gnnc.train_step",
    )
    parser.add_argument(
        "--only", choices=WAYS, default=None, help="train this way alone (None: both, compared)"
    )


def _add_checkpoints(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="keep each training there, in a file that is replaced as it goes on",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=_positive,
        default=None,
        metavar="N",
        help=f"epochs between checkpoints; there is one at the end too (None: {CHECKPOINT_EVERY})",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoints in FOLDER, with the numbers of a run without a break",
    )


def _fanouts(text: str) -> list[int]:
    """Numbers from -1 on, with commas between."""
    found = [int(part) for part in text.split(",")]
    if min(found) < -1:
        raise argparse.ArgumentTypeError("must be numbers from -1 (all) on")
    return found


_fanouts.__name__ = "list of numbers"  # argparse names it where the text is none


def _bounded(number: type[int] | type[float], least: float, most: float) -> Callable[[str], float]:
    """A parser of numbers in a range, bounds included."""
    says = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"

    def parsed(text: str) -> float:
        value = number(text)
        if not least <= value <= most or math.isinf(value):
            raise argparse.ArgumentTypeError(f"must be {says}")
        return value

    parsed.__name__ = number.__name__  # argparse names it where the text is no number
    return parsed


_positive = _bounded(int, 1, math.inf)
_count = _bounded(int, 0, math.inf)
_not_negative = _bounded(float, 0, math.inf)
_share = _bounded(float, 0, 1)


def run(args: argparse.Namespace) -> int:
    """Trains, prints the table or the JSON, draws, and returns the exit status."""
    try:
        results = _trained(args)
    except (ChildFailed, Refused) as error:
        print(f"gnnc train: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        later = "" if args.checkpoint is None else "; --resume goes on from the last checkpoints"
        print(f"gnnc train: stopped{later}", file=sys.stderr)
        return STOPPED
    if args.json is not None:
        write_json(args.json, results)
    if args.json != "-":
        print(report(results))
    if args.plot is not None:
        training_figure.draw(results, Path(args.plot))
    if args.plot_trials is not None:
        tuning_report.draw(results, Path(args.plot_trials))
    return 0


def _trained(args: argparse.Namespace) -> Message:
    """What `compare` returns for the arguments; what is seen to be wrong is refused first."""
    for option in ("checkpoint_every", "resume"):
        if getattr(args, option) and args.checkpoint is None:
            raise Refused(f"--{option.replace('_', '-')} needs --checkpoint FOLDER")
    _check_batches(args)
    if args.json not in (None, "-"):
        check_place("--json", Path(args.json))
    for option in ("plot", "plot_trials"):
        if (file := getattr(args, option)) is not None:
            figures.check(f"--{option.replace('_', '-')}", Path(file))
    settings: Message = {name: getattr(args, name) for name in _SETTINGS}
    settings["root"] = str(Path(args.root).expanduser())
    if args.batch_size is not None:
        settings["fanouts"] = args.fanouts or [FANOUT] * args.layers
    usual = ("compiled",) if args.auto else WAYS
    ways = usual if args.only is None else (args.only,)
    every = args.checkpoint_every or CHECKPOINT_EVERY
    trials = (args.trials or TRIALS) if args.auto else None
    if args.checkpoint is None:
        return compare(settings, args.seeds, ways, None, every, trials, args.predictions or 0)
    with checkpoint_folder.opened(Path(args.checkpoint), args.resume) as folder:
        return compare(settings, args.seeds, ways, folder, every, trials, args.predictions or 0)


def _check_batches(args: argparse.Namespace) -> None:
    """Refuses options of batches and trials that do not go together."""
    for option, needed, metavar in (
        ("fanouts", "batch_size", "--batch-size B"),
        ("auto", "batch_size", "--batch-size B"),
        ("trials", "auto", "--auto"),
        ("plot_trials", "auto", "--auto"),
    ):
        if getattr(args, option) and not getattr(args, needed):
            raise Refused(f"--{option.replace('_', '-')} needs {metavar}")
    if args.auto and args.predictions:
        raise Refused("--eval times predictions of one process: leave --auto out")
    if args.fanouts is not None and len(args.fanouts) != args.layers:
        raise Refused(f"--fanouts has {len(args.fanouts)} numbers for {args.layers} layers")
