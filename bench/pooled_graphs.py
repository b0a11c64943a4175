"""Classifiers of graphs on batches of small ones, each new: whole steps with Adam, by
`gnnc.train_step`, by `gnnc.compile` and by PyG."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from ..frontend.tools.children import Message
from ..frontend.tools.report import seconds_text
from .turns import Turns, turns

CHILD = "gnnc.bench.pooled_graphs_child"
MODELS = ("gcn", "sage", "gin", "gine", "gat")
WAYS = {"step": "gnnc", "call": "gnnc", "pyg": "pyg"}
GRAPHS, FEATURES, EDGE_FEATURES, HIDDEN = 64, 32, 16, 64
"""Graphs in a batch, and the widths of the models."""

Ask = Callable[[Turns, str, Message], Message]


def measure(threads: Sequence[int], steps: int, number_of_turns: int, asked: Ask) -> Message:
    """For each model and number of threads the median step of each way; `asked` asks a child."""
    rows: list[Message] = []
    for model in MODELS:
        seconds = {(t, way): list[float]() for t in threads for way in WAYS}
        with turns(CHILD, WAYS) as racing:
            racing.prepare({way: {"model": model, "way": way} for way in WAYS})
            for _ in range(number_of_turns):
                for (t, way), found in seconds.items():
                    found += asked(racing, way, {"threads": t, "steps": steps})["seconds"]
        for t in threads:
            medians = {way: statistics.median(seconds[t, way]) for way in WAYS}
            rows.append({"model": model, "threads": t, **medians})
    return {"graphs": GRAPHS, "rows": rows}


def table_of(result: Message) -> tuple[str, list[list[str]]]:
    """The title and the rows of a result."""
    rows = [["model", "threads", "train_step", "compile", "pyg", "/ train_step", "/ compile"]]
    for row in result["rows"]:
        times = [seconds_text(row[way]) for way in WAYS]
        ratios = [f"{row['pyg'] / row[way]:.2f}" for way in ("step", "call")]
        rows.append([row["model"], str(row["threads"]), *times, *ratios])
    title = f"3 layers with batch norm, the mean over each graph, Adam: {result['graphs']} graphs"
    return f"{title} of 10 to 39 nodes, {FEATURES}, {HIDDEN} wide", rows
