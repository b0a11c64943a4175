"""A file with a training, and the arrays that it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .programs import graph

PROGRAM = """
import gnnc
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCN


@gnnc.training
def small(data, hidden=4, epochs=20):
    model = GCN(data.num_features, hidden, 2, data.num_classes, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(3)
    small(gnnc.load("arrays"), 5)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, and one with arrays in it, where the command runs."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "arrays").mkdir()
    data = graph()
    for name in data:
        np.save(tmp_path / "arrays" / f"{name}.npy", data[name].numpy())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path
