"""The script of `gnnc bench memory`, which `gnnc launch` runs: a GCN trains on this rank's part of
a tiny graph, then of a large one.

Its arguments are a JSON object, `{"folder": .., "hidden": .., "classes": ..}`, and the file for the
answer of rank 0, with a number a rank: `tiny` and `peak`, the most bytes that it had in memory
after the first and after both, `in_files`, those at the end that lie in files, and `seconds` of the
last step.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import gnnc
from gnnc.runtime.ranks.world import world

STEPS = 3


class Net(nn.Module):
    """Two layers."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, hidden), GCNConv(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.second(self.first(x, edges).relu(), edges)


def trained(folder: Path, hidden: int, classes: int) -> float:
    """The seconds of the last step."""
    torch.manual_seed(0)
    rows = {"x": folder / "x.npy", "y": folder / "y.npy"}
    data: Any = gnnc.PartitionFolder(folder / "parts", **rows)
    features = np.load(folder / "x.npy", mmap_mode="r").shape[1]
    model, part = gnnc.distribute(Net(features, hidden, classes), data)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = gnnc.train_step(lambda x, index, y: F.cross_entropy(model(x, index), y), optimizer)
    seconds = 0.0
    for _ in range(STEPS):
        start = time.perf_counter()
        step(part.x, part.edge_index, part.y)
        seconds = time.perf_counter() - start
    return seconds


def memory(name: str) -> int:
    """Bytes of this process, by the name that the system has for them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def main() -> None:
    question, answer = json.loads(sys.argv[1]), Path(sys.argv[2])
    folder, sizes = Path(question["folder"]), (question["hidden"], question["classes"])
    trained(folder / "tiny", *sizes)
    tiny = memory("VmHWM")
    seconds = trained(folder / "whole", *sizes)
    mine = {"tiny": tiny, "peak": memory("VmHWM"), "in_files": memory("RssFile")}
    found = world().gather(mine | {"seconds": seconds})
    if gnnc.rank() == 0:
        answer.write_text(json.dumps({k: [one[k] for one in found] for k in mine}))


if __name__ == "__main__":
    main()
