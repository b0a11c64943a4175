"""Mistakes in trainings: each has its line and column, and says what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gnnc

from .building import loaded

HEAD = """
import gnnc, torch

@gnnc.training
def train(data, epochs=3):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

LOOP = """
for epoch in range(epochs):
    optimizer.zero_grad()
    loss = model(data.x).sum()
    loss.backward()
    optimizer.step()
"""


def loop(*changes: tuple[str, str]) -> str:
    """The usual loop with other lines in it."""
    text = LOOP
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


# the body, the text that the error points to, what it says
BODIES = [
    ("return model", "def train(data, epochs=3):", "a training has a loop over epochs with"),
    (
        loop(("    loss.backward()", "    loss.backward()\n    loss.sum().backward()")),
        "loss.sum().backward()",
        "one `backward`: add the losses up",
    ),
    (
        loop(("for epoch in range(epochs):", "while True:")),
        "while True:",
        r"write `for epoch in range\(epochs\):`",
    ),
    (
        loop(("range(epochs)", "data.batches")),
        "data.batches",
        r"a `range` of epochs, each a step on the whole graph: `range\(epochs\)`",
    ),
    (
        loop(("    loss = model", "    if epoch > 2: break\n    loss = model")),
        "break",
        "every epoch is trained to its end: `break` has no place",
    ),
    (
        loop(("    optimizer.step()", "    optimizer.step()\n    if loss < 1: continue")),
        "continue",
        "`continue` has no place",
    ),
    (loop(("    optimizer.step()", "    return 1")), "return 1", "stands behind the loop"),
    (loop(("    optimizer.step()\n", "")), "loss.backward()", r"write `optimizer.step\(\)` behind"),
    (
        loop(("    optimizer.zero_grad()\n", "")),
        "loss.backward()",
        r"would add up from epoch to epoch: write `optimizer.zero_grad\(\)`",
    ),
    (
        loop(("optimizer.zero_grad", "model.zero_grad")),
        "model.zero_grad()",
        r"those of the optimizer: `optimizer.zero_grad\(\)`",
    ),
    (
        loop(
            (
                "    loss.backward()\n    optimizer.step()",
                "    optimizer.step()\n    loss.backward()",
            )
        ),
        "optimizer.step()",
        "comes behind `backward`",
    ),
    (
        loop(("    optimizer.step()", "    optimizer.step()\n    scheduler.step()")),
        "scheduler.step()",
        "schedules of learning rates .* are for `gnnc.train_step`",
    ),
    (
        loop(("    optimizer.step()", "    model.weight.grad.clamp_(-1, 1)\n    optimizer.step()")),
        "model.weight.grad.clamp_(-1, 1)",
        "gradients are clipped, by `torch.nn.utils.clip_grad_norm_",
    ),
    (
        loop(("loss.backward()", "loss.backward(retain_graph=True)")),
        "loss.backward(retain_graph=True)",
        "takes no arguments",
    ),
    (
        loop(("loss.backward()", "loss.sum().backward()")),
        "loss.sum().backward()",
        "give the loss a name",
    ),
    (
        loop(("    loss.backward()", "    for part in data: loss.backward()")),
        "loss.backward()",
        "not of one within it",
    ),
    (
        loop((".sum()", ".sum() / (epoch + 1)")),
        "epoch",
        "the same in every epoch: `epoch` can be read behind it only",
    ),
    (
        "total = 0\n" + loop(("    loss =", "    total = total + 1\n    loss =")),
        "total",
        "`total` would be that of the epoch before",
    ),
    (
        "rate = 1\n" + loop((".sum()", ".sum() * rate"), ("step()", "step()\n    rate = 0.5")),
        "rate",
        "`rate` is set behind the step",
    ),
    (
        loop(("    loss.backward()", "    model.train()\n    loss.backward()")),
        "model.train()",
        "at the top of the loop",
    ),
    ("if data is None: return\n" + LOOP, "return", "stands behind the loop"),
    (
        loop(("    optimizer.step()", "    optimizer.step()\n    yield loss")),
        "yield loss",
        "by `return`",
    ),
    (loop(("epoch in", "(epoch, x) in")), "(epoch, x)", "the loop counts epochs"),
]


def define(body: str, folder: Path) -> Any:
    """The module of a file with the training."""
    lines = body.strip("\n").splitlines()
    return loaded(HEAD + "".join(f"    {line}\n" for line in lines), folder / "training.py")


@pytest.mark.parametrize(("body", "place", "message"), BODIES, ids=[b[2][:40] for b in BODIES])
def test_mistakes(body: str, place: str, message: str, tmp_path: Path):
    with pytest.raises(gnnc.ProgramError, match=message) as caught:
        define(body, tmp_path)
    error = caught.value
    assert error.filename == str(tmp_path / "training.py")
    assert error.text is not None
    assert error.offset is not None
    assert error.lineno is not None
    assert error.text[error.offset - 1 :].startswith(place)
    assert (tmp_path / "training.py").read_text().splitlines()[error.lineno - 1] in error.text


def test_the_usual_loop_is_no_mistake(tmp_path: Path):
    assert define(LOOP, tmp_path).train.form.loss == "loss"


def test_no_function():
    with pytest.raises(TypeError, match="gnnc.training takes a function, not int"):
        gnnc.training(3)
