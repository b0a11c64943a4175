"""`gnnc`: train a model both ways, build a training as a C program, cut a graph into parts, plan
for ranks, run a script as several, time models against other libraries, describe this machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__, bench
from .tools import (
    build_command,
    info,
    launch_command,
    partition_command,
    plan_command,
    train_command,
)


def main(args: Sequence[str] | None = None) -> int:
    """Runs one subcommand on `args` (None: the command line) and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="gnnc",
        description="Compiles graph neural networks. `gnn-opt` works on the IR itself.",
    )
    parser.add_argument("--version", action="version", version=f"gnnc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module, text in (
        ("train", train_command, "train a model eagerly and compiled, and compare the two"),
        ("build", build_command, "make a training a C program that trains without Python"),
        ("partition", partition_command, "cut a graph into parts for ranks, and compare ways to"),
        ("plan", plan_command, "predict training on ranks: time, what crosses, memory"),
        ("launch", launch_command, "run a script as several ranks, which train together"),
        ("bench", bench, "time training epochs against PyG and DGL"),
        ("info", info, "what of the things gnnc can use this machine has"),
    ):
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    chosen = parser.parse_args(args)
    return chosen.run(chosen)


if __name__ == "__main__":
    sys.exit(main())
