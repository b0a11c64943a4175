"""Pipelines without some of the optimising passes still train the same model."""

import argparse

import pytest
import torch

from gnnc import explain
from gnnc.bench.ablation import (
    AUTO,
    COMPACTION,
    FULL,
    HECTOR,
    PASSES,
    REORDERING,
    add_arguments,
    variants,
    without,
)
from gnnc.bench.contestants import gnnc, pyg
from gnnc.bench.relations import draw
from gnnc.bench.tasks import PlainTask, Task, relational_task
from gnnc.frontend.tools.datasets import power_law
from gnnc.passes.driver.pipelines import passes_of, pipeline
from gnnc.passes.targets.openmp import OPENMP
from gnnc.runtime.cpu import toolchain


def test_without_drops_every_occurrence_and_keeps_options():
    whole = pipeline(True, OPENMP.on(32))
    names = [p.name for p in passes_of(whole)]
    found = passes_of(without(whole, "reorder-linear"))
    assert names.count("reorder-linear") == 2
    assert [p.name for p in found] == [n for n in names if n != "reorder-linear"]
    assert [p for p in passes_of(whole) if p.name != "reorder-linear"] == found


def test_every_pass_is_in_the_pipeline():
    assert set(PASSES) <= {p.name for p in passes_of(pipeline(True, OPENMP.on(32)))}


def pipelines(*words: str) -> dict[str, list[str] | None]:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    found = variants(parser.parse_args(words))
    return {n: p if p is None else [q.name for q in passes_of(p)] for n, p in found.items()}


def test_one_pass_at_a_time():
    found = pipelines("--passes", "plan-saves", "raise")
    assert list(found) == [FULL, "no plan-saves", "no raise"]
    assert found[FULL] is None
    assert "plan-saves" not in found["no plan-saves"]
    assert "raise" in found["no plan-saves"]


def test_hector_pipelines():
    found = pipelines("--pipelines", "none", "C", "R", "C+R", "auto")
    held = {n: {COMPACTION, REORDERING} & set(p) for n, p in found.items() if p is not None}
    assert held == {
        "none": set(),
        "C": {COMPACTION},
        "R": {REORDERING},
        "C+R": {COMPACTION, REORDERING},
    }
    assert found[AUTO] is None


def same(task: Task, passes: str) -> None:
    """A model compiled by these passes has the loss and the gradients of PyG's."""
    losses, gradients = [], []
    for make, options in ((pyg, {}), (gnnc, {"passes": passes, "fullgraph": True})):
        torch.manual_seed(0)
        prepared = make(task, **options)
        loss = prepared.loss()
        loss.backward()
        losses.append(loss.detach())
        gradients.append([p.grad for p in prepared.model.parameters()])
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", PASSES)
def test_same_model_without(name: str):
    drawn = power_law("small", 40, 200, 8, 3)
    x, edge_index, y = map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y))
    task = PlainTask("gcn", [8, 6, 3], y, x, edge_index)
    same(task, without(pipeline(True, OPENMP.on(toolchain.vector_bytes())), name))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("model", ["rgat", pytest.param("hgt-typed", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", HECTOR)
def test_same_relational_model(name: str, model: str):
    graph = draw({"a": 12, "b": 5}, {("a", "x", "b"): 30, ("b", "y", "a"): 20}, "a")
    task = relational_task(model, [6, 4], graph)
    same(task, without(pipeline(True, OPENMP.on(toolchain.vector_bytes())), *HECTOR[name]))


@pytest.mark.parametrize("model", ["rgat", pytest.param("hgt-typed", marks=pytest.mark.long)])
@pytest.mark.parametrize("edges", [250, 2000], ids=["sparse", "dense"])
def test_the_whole_pipeline_takes_no_more_memory_than_compaction_alone(model: str, edges: int):
    kinds = {("a", "x", "b"): edges, ("b", "y", "a"): edges // 2, ("a", "z", "a"): edges}
    task = relational_task(model, [16, 16], draw({"a": 120, "b": 50}, kinds, "a"))
    peaks: list[int] = []
    for passes in (
        without(pipeline(True, OPENMP.on(toolchain.vector_bytes())), *HECTOR["C"]),
        None,
    ):
        options = {} if passes is None else {"passes": passes, "fullgraph": True}
        prepared = gnnc(task, **options)
        prepared.loss().backward()
        (found,) = explain(prepared.model).footprints()
        peaks.append(found.peak)
    assert peaks[1] <= peaks[0]
