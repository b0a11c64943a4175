"""`gnnc launch`: runs a script as several ranks on this machine."""

from __future__ import annotations

import argparse
import sys

from ...runtime.ranks.board import PATIENCE
from ...runtime.ranks.launch import CannotLaunch, launch
from ...runtime.ranks.started import TRANSPORTS

STOPPED = 130
"""The exit status that shells give what Ctrl-C has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, required=True, metavar="P", help="how many ranks")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="T",
        help="threads of each rank (None: an equal share of the cores)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=PATIENCE,
        metavar="S",
        help="seconds without progress that others wait for a rank, before all are stopped",
    )
    parser.add_argument(
        "--transport",
        choices=TRANSPORTS,
        default=TRANSPORTS[0],
        help="what carries messages: memory that all ranks share, or MPI",
    )
    parser.add_argument("script", help="what each rank runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what follows is the script's")


def run(args: argparse.Namespace) -> int:
    """Returns 0 if all ranks ended well, 1 if one did not, 2 if they could not be started."""
    try:
        return launch(
            args.n,
            [args.script, *args.arguments],
            threads=args.threads,
            patience=args.patience,
            transport=args.transport,
        )
    except (CannotLaunch, ValueError) as error:
        print(f"gnnc launch: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return STOPPED
