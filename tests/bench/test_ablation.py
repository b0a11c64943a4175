"""Pipelines without one of the optimising passes still train the same model."""

import pytest
import torch

from gnnc.bench.ablation import PASSES, without
from gnnc.bench.contestants import Task, gnnc, pyg
from gnnc.frontend.datasets import power_law
from gnnc.passes.pipelines import passes_of, pipeline


def test_without_drops_every_occurrence_and_keeps_options():
    whole = pipeline(True, 32)
    names = [p.name for p in passes_of(whole)]
    found = passes_of(without(whole, "reorder-linear"))
    assert names.count("reorder-linear") == 2
    assert [p.name for p in found] == [n for n in names if n != "reorder-linear"]
    assert [p for p in passes_of(whole) if p.name != "reorder-linear"] == found


def test_every_pass_is_in_the_pipeline():
    assert set(PASSES) <= {p.name for p in passes_of(pipeline(True, 32))}


@pytest.mark.parametrize("name", PASSES)
def test_same_model_without(name: str):
    from gnnc.runtime import toolchain

    drawn = power_law("small", 40, 200, 8, 3)
    x, edge_index, y = map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y))
    task = Task("gcn", [8, 6, 3], x, edge_index, y)
    passes = without(pipeline(True, toolchain.vector_bytes()), name)
    losses, gradients = [], []
    for make, options in ((pyg, {}), (gnnc, {"passes": passes, "fullgraph": True})):
        torch.manual_seed(0)
        prepared = make(task, **options)
        loss = prepared.loss()
        loss.backward()
        losses.append(loss.detach())
        gradients.append([p.grad for p in prepared.model.parameters()])
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(gradients[1], gradients[0])
