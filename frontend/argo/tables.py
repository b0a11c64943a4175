"""What a tuner tried, as a file for the next run, as text and as a picture."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

from ...runtime import durable_file
from ..tools.figures import Figure
from ..tools.report import seconds_text, table
from .configurations import Configuration
from .tuner import Measured, Trials

FORMAT = "trials of gnnc"
VERSION = 1


class BadTable(ValueError):
    """A file that is no table of trials, or that of other cores."""


def save(path: Path, trials: Trials, cores: int) -> None:
    """Writes the table; a file that is there is replaced as a whole.

    Args:
        path: The file.
        trials: What was tried.
        cores: How many there were to choose from.

    Raises:
        OSError: It cannot be written, and is as it was.
    """
    found = {"format": FORMAT, "version": VERSION, "cores": cores, "trials": entries(trials)}
    durable_file.replace(path, memoryview(json.dumps(found, indent=1).encode()))


def load(path: Path, cores: int) -> Trials:
    """The table of trials on so many cores.

    Raises:
        OSError: It cannot be read.
        BadTable: It is none, damaged, or of another number of cores.
    """
    try:
        read: object = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadTable(f"{path} is no table of trials: {error}") from error
    found = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    if (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise BadTable(f"{path} is no table of trials of version {VERSION}")
    if found.get("cores") != cores:
        raise BadTable(f"{path} is of {found.get('cores')} cores, and here are {cores}")
    try:
        trials = of_entries(found["trials"])
        trials.best  # noqa: B018
    except (KeyError, TypeError, ValueError) as error:
        raise BadTable(f"{path} is damaged: {error!r}") from error
    return trials


def entries(trials: Trials) -> list[dict[str, Any]]:
    """As plain data, for JSON."""
    return [
        # no JSON has infinities
        {**x._asdict(), "step": m.step if m.step < math.inf else None, "error": m.error}
        | {"cost": m.cost}
        for x, m in trials.measured.items()
    ]


def of_entries(found: list[dict[str, Any]]) -> Trials:
    """From `entries`.

    Raises:
        KeyError, TypeError, ValueError: It is something else.
    """
    return Trials(dict(_entry(x) for x in found))


def text(trials: Trials) -> str:
    """For people: all trials in order, and which one is the best."""
    rows = [["trial", "processes", "samplers", "trainers", "step", "error", "cost", ""]]
    for k, (x, m) in enumerate(trials.measured.items(), 1):
        step = seconds_text(m.step) if m.step < math.inf else "does not run"
        said = "best" if x == trials.best else "default" if x == trials.default else ""
        spent = (seconds_text(m.error), seconds_text(m.cost))
        rows.append([str(k), *map(str, x), step, *spent, said])
    return table(rows)


def draw(trials: Trials, path: Path) -> None:
    """Draws the seconds of a step by trial with the best so far, and by the number of processes.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    ran = [(k, x, m) for k, (x, m) in enumerate(trials.measured.items(), 1) if m.step < math.inf]
    steps = [m.step for _, _, m in ran]
    figure = Figure(1, 2)
    order, split = figure.panels
    errors = [m.error for _, _, m in ran]
    order.errorbar([k for k, _, _ in ran], steps, errors, fmt="o", label="trial")
    best = [min(steps[: k + 1]) for k in range(len(steps))]
    order.step([k for k, _, _ in ran], best, where="post", label="fastest so far")
    order.set_xlabel("trial")
    split.semilogx([x.processes for _, x, _ in ran], steps, "o", base=2, label="trial")
    chosen = trials.best
    at = [chosen.processes], [trials.measured[chosen].step]
    split.plot(*at, "*", markersize=14, label="best")
    split.set_xlabel("processes")
    for axes in figure.panels:
        axes.set_yscale("log")
        axes.set_ylabel("seconds of a step")
        axes.legend(fontsize="small")
    figure.save(path)


def _entry(entry: dict[str, Any]) -> tuple[Configuration, Measured]:
    numbers = Configuration(*(int(entry[name]) for name in Configuration._fields))
    step = math.inf if entry["step"] is None else float(entry["step"])
    return numbers, Measured(step, float(entry["error"]), float(entry["cost"]))
