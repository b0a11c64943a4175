"""The figure of `gnnc train --plot`: loss and accuracy over epochs, and over the time they took."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .children import Message
from .compare import WAYS
from .figures import Figure

COLOURS = {"eager": "tab:orange", "compiled": "tab:blue"}
LINES = {"test": "-", "validation": "--"}
Numbers = NDArray[np.float64]


def draw(results: Message, path: Path) -> None:
    """Draws what `compare` returns: lines are means over seeds, bands go from least to most.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    figure = Figure(2, 2)
    losses, losses_in_time, shares, shares_in_time = figure.panels
    for way in (w for w in WAYS if w in results):
        histories: list[Message] = results[way]["histories"]
        epochs, seconds = _abscissae(histories)
        found = np.array([h["losses"] for h in histories])
        for axes, x in ((losses, epochs), (losses_in_time, seconds)):
            _line(axes, x, found, label=way, color=COLOURS[way])
        at = [e["epoch"] - 1 for e in histories[0]["evaluations"]]
        for mask, style in LINES.items():
            found = np.array([[e[mask] for e in h["evaluations"]] for h in histories])
            for axes, x in ((shares, epochs[at]), (shares_in_time, seconds[at])):
                look = {"color": COLOURS[way], "linestyle": style}
                _line(axes, x, found, label=f"{way}, {mask}", **look)
    for axes in (losses, losses_in_time):
        axes.set_ylabel("training loss (cross entropy)")
    for axes in (shares, shares_in_time):
        axes.set_ylabel("accuracy (share of nodes)")
    for axes in (losses, shares):
        axes.set_xlabel("epoch")
    for axes in (losses_in_time, shares_in_time):
        axes.set_xlabel("training time (s), compilation included, evaluation not")
    for axes in figure.panels:
        axes.legend(fontsize="small")
    figure.figure.suptitle(_title(results), fontsize="medium")
    figure.save(path)


def _abscissae(histories: Sequence[Message]) -> tuple[Numbers, Numbers]:
    """The epochs from 1 on, and the mean seconds until the end of each."""
    seconds = np.array([h["epoch_seconds"] for h in histories]).cumsum(axis=1).mean(axis=0)
    return np.arange(1.0, len(seconds) + 1), seconds


def _line(axes: Any, x: Numbers, found: Numbers, **look: Any) -> None:
    """One line of a seed a row of `found`; a point where there is one number only."""
    marker = "o" if len(x) == 1 else None
    axes.plot(x, found.mean(axis=0), marker=marker, **look)
    if len(found) > 1:
        axes.fill_between(
            x, found.min(axis=0), found.max(axis=0), color=look["color"], alpha=0.15, linewidth=0
        )


def _title(results: Message) -> str:
    graph, settings = results["graph"], results["settings"]
    seeds = "" if settings["seeds"] == 1 else f", mean and range of {settings['seeds']} seeds"
    return (
        f"{settings['model']}, {settings['layers']} layers of {settings['hidden']}, on "
        f"{graph['name']} ({graph['nodes']:,} nodes, {graph['edges']:,} edges){seeds}"
    )
