"""The table of `gnnc train`: each way a column, and what they are to each other."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from . import tuning_report
from .children import Message
from .compare import WAYS
from .report import bytes_text, seconds_text, table

_COMPILED_BY = {"drop-in": "gnnc.compile in torch's loop", "step": "gnnc.train_step"}
Text = Callable[[Any], str]


def report(results: Message) -> str:
    """What `compare` returns, for people."""
    found = {way: results[way] for way in WAYS if way in results}
    lines = [_title(results), "", table(_rows(found))]
    if "compiled" in found:
        lines += [f"left to torch: {text}" for text in found["compiled"]["fallbacks"]]
    for way, r in found.items():
        if "tuning" in r:
            lines += ["", tuning_report.text(way, r["tuning"])]
    if not all(r["memory_exact"] for r in found.values()):
        lines.append("this kernel does not reset memory peaks: loading the data may be in them")
    return "\n".join(lines)


def _title(results: Message) -> str:
    graph, settings = results["graph"], results["settings"]
    by = f"; compiled: {_COMPILED_BY[settings['mode']]}" if "compiled" in results else ""
    return (
        f"{settings['model']}, {settings['layers']} layers, on {graph['name']}: "
        f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} features, "
        f"{graph['classes']} classes; {settings['seeds']} seeds, {settings['epochs']} epochs"
        f"{_batches(settings)}{by}"
    )


def _batches(settings: Message) -> str:
    if settings.get("batch_size") is None:
        return ""
    fanouts = ", ".join(map(str, settings["fanouts"]))
    return f" in batches of {settings['batch_size']:,} with fan-outs {fanouts}"


def _rows(found: dict[str, Message]) -> Sequence[Sequence[str]]:
    def row(label: str, name: str, text: Text, ratio: bool = False) -> list[str]:
        cells = [text(r[name]) if name in r else "" for r in found.values()]
        if len(found) == 1:
            return [label, *cells]
        return [label, *cells, _ratio(*(r[name] for r in found.values())) if ratio else ""]

    heading = ["", *found, *(["eager / compiled"] if len(found) == 2 else [])]
    rows = [
        heading,
        row("test accuracy", "accuracies", _accuracy),
        row("epoch, median", "epoch_seconds", seconds_text, ratio=True),
        *(
            [row("prediction, median", "prediction_seconds", seconds_text, ratio=True)]
            if all("prediction_seconds" in r for r in found.values())
            else []
        ),
        row("memory, peak above start", "memory", bytes_text, ratio=True),
        row("first epoch", "first_epoch_seconds", seconds_text),
    ]
    if "compiled" in found:
        rows += [
            row("compile time", "compile_seconds", seconds_text),
            row("kernels", "kernels", _count),
            row("parts left to torch", "fallbacks", _count),
        ]
    return rows


def _accuracy(accuracies: Sequence[float]) -> str:
    return f"{statistics.mean(accuracies):.1%} ± {statistics.pstdev(accuracies):.1%}"


def _count(things: Sequence[str]) -> str:
    return str(len(things))


def _ratio(eager: float, compiled: float) -> str:
    return f"{eager / compiled if compiled else float('inf'):.2f} x"
