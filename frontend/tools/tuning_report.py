"""What `gnnc train --auto` found: a table of the trials, and their picture."""

from __future__ import annotations

from pathlib import Path

from ..argo import tables
from ..argo.configurations import Configuration
from .children import Message


def text(way: str, tuning: Message) -> str:
    """What was chosen, of what, and what it cost."""
    x = Configuration(*tuning["configuration"])
    lines = [
        f"{way}: {x.processes} processes, each with {x.samplers} cores to sample and {x.trainers}"
        " to train"
    ]
    if "trials" in tuning:
        share = tuning["share"]
        lines[0] += f"; the trials took {share:.1%} of the time of a training"
        lines.append(tables.text(tables.of_entries(tuning["trials"])))
    return "\n".join(lines)


def draw(results: Message, path: Path) -> None:
    """Draws the trials of the way that was trained; nothing where there were none.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    for found in results.values():
        trials = found.get("tuning", {}).get("trials")
        if trials is not None:
            tables.draw(tables.of_entries(trials), path)
