"""The figure of `gnnc bench --plot`: a panel a race, a bar a contestant."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from pathlib import Path
from typing import Any

from ..frontend.tools.children import Message
from ..frontend.tools.figures import Figure
from ..frontend.tools.report import seconds_text

COLUMNS = 2
BASE = "gnnc"


def draw(races: Sequence[Message], path: Path) -> None:
    """Draws median epochs on a logarithmic axis; each bar says its time, and its multiple of
    gnnc's.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    columns = min(COLUMNS, len(races))
    most = max(len(race["results"]) for race in races)
    figure = Figure(ceil(len(races) / columns), columns, panel=(5.5, 1.1 + 0.3 * most))
    for axes, race in zip(figure.panels, races, strict=False):
        _panel(axes, race)
    figure.save(path)


def _panel(axes: Any, race: Message) -> None:
    results: dict[str, Message] = race["results"]
    medians = [r.get("median_seconds") for r in results.values()]
    found = [m for m in medians if m is not None] or [1.0]
    # Bars of a logarithmic axis have no natural start: a little below the least.
    start, end = min(found) / 3, max(found)
    places = range(len(results))
    colours = ["tab:blue" if n.startswith(BASE) else "tab:orange" for n in results]
    widths = [start if m is None else m for m in medians]
    axes.barh(places, [w - start for w in widths], left=start, color=colours)
    for place, width, text in zip(places, widths, _texts(results), strict=True):
        axes.text(width * 1.08, place, text, va="center", fontsize="small")
    axes.set_yticks(places, list(results))
    axes.invert_yaxis()
    axes.set_xscale("log")
    # room for the text of the longest bar
    axes.set_xlim(start, end * 10 ** (0.65 * max(1.0, log10(end / start))))
    axes.set_xlabel("median epoch (s)")
    axes.set_title(f"{race['model']} on {race['graph']}", fontsize="medium")


def _texts(results: dict[str, Message]) -> list[str]:
    """What stands beside each bar."""
    ours = results.get(BASE, {}).get("median_seconds")
    return [_text(result, ours) for result in results.values()]


def _text(result: Message, ours: float | None) -> str:
    if "error" in result:
        return "out of memory" if result["out_of_memory"] else "failed"
    median = result["median_seconds"]
    return seconds_text(median) + (f" ({median / ours:.2f} x {BASE})" if ours else "")
