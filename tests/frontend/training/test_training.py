"""`gnnc.training`: a function with a training loop trains as it does without the decorator."""

import contextlib
import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import gnnc
from gnnc.frontend.torch.training.program import TrainingProgram

from .building import assert_equal, printed
from .programs import CLASSES, FEATURES, graph, indexed, loops, masked, relational


def eager(training: TrainingProgram) -> Any:
    """The function without the decorator."""
    return training.__wrapped__  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_losses_are_those_of_eager(kind: str):
    args, options = (graph(), kind), {"dropout": 0.0, "weight_decay": 5e-4}
    assert_equal(
        printed(masked, *args, **options), printed(eager(masked), *args, **options), 20, 2e-5
    )


def test_losses_in_double():
    args, options = (graph(dtype=torch.float64), "sage"), {"dropout": 0.0}
    ours = printed(masked, *args, **options)
    assert_equal(ours, printed(eager(masked), *args, **options), 20, 1e-10)


@pytest.mark.parametrize("training", [relational, loops])
def test_other_forms(training: TrainingProgram):
    assert_equal(printed(training, graph()), printed(eager(training), graph()), 20, 2e-5)


def test_what_is_named_in_the_step_is_there_behind():
    text = printed(indexed, graph())
    assert len(text.splitlines()) == 5
    assert text.startswith("  5 of 20: loss 1.")
    assert " right 0." in text


@gnnc.training
def returns(data, epochs=3):
    """What follows the loop runs, with the names of the loop."""
    model = nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for epoch in range(epochs):
        loss = F.cross_entropy(model(data.x), data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
        last = epoch
    with torch.no_grad():
        after = F.cross_entropy(model(data.x), data.y)
    return model, seen, last, after.item()


def test_behind_the_loop():
    model, seen, last, after = returns(graph())
    assert isinstance(model, nn.Linear)
    assert (len(seen), last) == (3, 2)
    assert after < seen[-1] < seen[0]


def test_names_of_enclosing_functions():
    scale, data = 0.5, graph()

    @gnnc.training
    def scaled(epochs):
        model = nn.Linear(FEATURES, CLASSES)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(epochs):
            optimizer.zero_grad()
            loss = scale * F.cross_entropy(model(data.x), data.y)
            loss.backward()
            optimizer.step()
            print(epoch, loss.item())

    assert_equal(printed(scaled, 5), printed(eager(scaled), 5), 5, 2e-5)


def test_the_step_is_one_program():
    begun = masked.begin({"fullgraph": True}, (graph(), "gcn"), {})
    loss = begun.step(*begun.functions.inputs.values())
    assert loss.dim() == 0
    assert list(begun.functions.inputs) == ["x", "edge_index", "train_mask", "y"]
    assert gnnc.explain(begun.step).fallbacks == []


def test_an_optimizer_has_to_be_one():
    @gnnc.training
    def wrong(data):
        model = nn.Linear(FEATURES, CLASSES)
        optimizer = model
        for epoch in range(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data.x), data.y)
            loss.backward()
            optimizer.step()

    with pytest.raises(TypeError, match=r"optimizer is Linear: .* a torch.optim.Optimizer"):
        wrong(graph())


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="kind"), contextlib.redirect_stdout(io.StringIO()):
        masked(graph())
