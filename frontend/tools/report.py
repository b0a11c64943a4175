"""Tables, units and files of the reports that `gnnc` prints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from .children import Refused


def table(rows: Sequence[Sequence[str]], *, markdown: bool = False) -> str:
    """Rows of equally many cells, the first row a heading, the first column to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    ]
    rule = ["-" * widths[0], *("-" * (w - 1) + (":" if markdown else "-") for w in widths[1:])]
    lines.insert(1, rule)
    if markdown:
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def seconds_text(seconds: float) -> str:
    if abs(seconds) < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if abs(seconds) < 1 else f"{seconds:.2f} s"


def bytes_text(count: float) -> str:
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 2**10:.0f} KiB"


def check_place(option: str, file: Path) -> None:
    """Sees, before anything is measured, that there is a folder to write the file to.

    Raises:
        Refused: there is none, or the file is one.
    """
    if file.is_dir():
        raise Refused(f"{option}: {file} is a folder")
    if not file.parent.is_dir():
        raise Refused(f"{option}: {file} has no folder {file.parent} to be written to")


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, of every command that measures: where `write_json` writes."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the results as JSON, to standard output without FILE",
    )


def write_json(target: str, results: object) -> None:
    """Writes to the file `target`, or to standard output where it is "-"."""
    text = json.dumps(results, indent=2)
    if target == "-":
        print(text)
    else:
        Path(target).write_text(text + "\n")
