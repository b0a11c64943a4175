"""Trainings over ranks on the emulated GPU, whose kernels read rows of other ranks where they lie,
and add up what these have, give what one process gives on the CPU; so they do with messages."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
import torch
from torch import Tensor

import gnnc
from gnnc.runtime.ranks.exchanges import SharedExchanges

from .cut_models import LAYERS, graph, net, on_ranks, trained, training_alone

TOLERANCE = 1e-9
QUICK = "sage-plain"
LONG = pytest.mark.long


def check(
    name: str,
    ranks: int,
    monkeypatch: pytest.MonkeyPatch,
    steps: int = 2,
    cut: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> None:
    """Steps of training, with these options; those of `cut` are given to `distribute`."""
    model, data = net(name), graph(30, 120)
    alone = training_alone(model, data, steps=steps)
    ((losses, state),) = on_ranks(monkeypatch, 0, alone)
    monkeypatch.setenv("GNNC_TARGET", "cuda-emulated")

    def work() -> tuple[list[float], dict[str, Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, **cut)
        losses = trained(mine, part, steps=steps, **options)
        return losses, {k: v.clone() for k, v in mine.state_dict().items()}

    every = on_ranks(monkeypatch, ranks, work)
    for other_losses, other in every:
        torch.testing.assert_close(other_losses, losses, rtol=0, atol=TOLERANCE)
        for key, x in state.items():
            torch.testing.assert_close(other[key], x, rtol=TOLERANCE, atol=TOLERANCE, msg=key)
            assert torch.equal(other[key], every[0][1][key]), f"ranks have another {key}"


@pytest.mark.parametrize("name", [QUICK, *(pytest.param(n, marks=LONG) for n in LAYERS)])
def test_layers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, 2, monkeypatch, steps=1 if name == QUICK else 2)


def test_nothing_goes_through_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, gradients and what BatchNorm counts: phases give the carrier addresses alone."""
    asked: list[str] = []

    def noted(name: str) -> None:
        inner = getattr(SharedExchanges, name)

        def call(self: Any, *args: Any) -> Any:
            asked.append(name)
            return inner(self, *args)

        monkeypatch.setattr(SharedExchanges, name, call)

    for name in ("start", "all_reduce", "publish", "retire"):
        noted(name)
    check("gcn", 2, monkeypatch, steps=1)
    assert set(asked) == {"publish", "retire"}


@pytest.mark.parametrize(
    ("name", "to_step"),
    [(QUICK, False), *(pytest.param("gat", b, marks=LONG) for b in (True, False))],
)
def test_messages(name: str, to_step: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the step asks for them, or `distribute` was asked and the step says nothing else."""

    def publish(*_: Any) -> None:
        raise AssertionError("a message was asked for")

    monkeypatch.setattr(SharedExchanges, "publish", publish)
    options = {"remote_reads": False}
    if to_step:
        check(name, 2, monkeypatch, steps=1, **options)
    else:
        check(name, 2, monkeypatch, steps=1, cut=options)


@LONG
@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_three_ranks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, 3, monkeypatch)
