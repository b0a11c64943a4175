"""The script of `gnnc plan --calibrate` and `gnnc bench plan`, which `gnnc launch` runs: ranks
train on graphs of two halves, and send each other messages.

Its arguments are a JSON object, `{"tasks": [{"model": .., "widths": [..], "nodes": .., "edges": ..,
"across": ..}, ..], "seconds": .., "messages": [..]}`, and the file for the answer of rank 0:
`seconds` of a step of each task, the median of those of the slowest rank, in turns that all tasks
take; `messages`, seconds for each size in bytes, both ways at once; `fixed_bytes`, the memory of
the process after the first task, and `graph_bytes`, what the second takes beyond that.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import gnnc
from gnnc.bench.plan_graphs import halves, owners_of_halves
from gnnc.frontend.tools.children import Message
from gnnc.frontend.tools.memory import Watermark
from gnnc.frontend.tools.models import Net
from gnnc.runtime.ranks.world import world

WARM = 5
TURNS = 4
"""Of each task: the machine's speed changes by more than predictions should be off by."""
ROUNDS = 30
"""Of messages of one size."""


def warm(task: Message) -> Callable[[], Any]:
    """A step of it, which has run."""
    ranks, widths = world(), task["widths"]
    nodes = task["nodes"]
    torch.manual_seed(0)
    index = torch.from_numpy(halves(nodes, task["edges"], task["across"]))
    x, y = torch.randn(nodes, widths[0]), torch.randint(0, widths[-1], (nodes,))
    owner = torch.from_numpy(owners_of_halves(nodes, ranks.size))
    net = Net(task["model"], widths)
    model, part = gnnc.distribute(net, Data(x=x, edge_index=index, y=y), owner=owner)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = gnnc.train_step(
        lambda: F.cross_entropy(model(part.x, part.edge_index), part.y), optimizer
    )
    for _ in range(WARM):
        step()
    return step


def turn(step: Callable[[], Any], seconds: float) -> list[float]:
    """Of the slowest rank, the seconds of each step. The first one, after steps of other tasks, is
    not timed."""
    ranks = world()
    step()
    found: list[float] = []
    end = time.perf_counter() + seconds
    while ranks.broadcast(time.perf_counter() < end):
        ranks.barrier()
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    every = ranks.gather(found) or [found]
    return [max(of_step) for of_step in zip(*every, strict=True)]


def exchanged(size: int) -> float:
    """The median seconds in which this rank and the next exchange so many bytes."""
    ranks = world()
    sent, received = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    counts = [size if r == (ranks.rank + 1) % ranks.size else 0 for r in range(ranks.size)]
    found: list[float] = []
    for _ in range(ROUNDS):
        ranks.barrier()
        start = time.perf_counter()
        ranks.start(sent, counts, received, counts, 0).wait()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def main() -> None:
    question, answer = json.loads(sys.argv[1]), Path(sys.argv[2])
    first, *rest = question["tasks"]
    steps = [warm(first)]
    mark = Watermark.set()
    graph_bytes = 0
    for task in rest:
        steps.append(warm(task))
        graph_bytes = graph_bytes or mark.above
    turns = [[turn(s, question["seconds"] / TURNS) for s in steps] for _ in range(TURNS)]
    seconds = [statistics.median(chain(*of_task)) for of_task in zip(*turns, strict=True)]
    messages = [exchanged(size) for size in question["messages"]]
    if gnnc.rank() == 0:
        found = {"seconds": seconds, "messages": messages}
        memory = {"fixed_bytes": mark.start, "graph_bytes": graph_bytes}
        answer.write_text(json.dumps({**found, **memory}))


if __name__ == "__main__":
    main()
