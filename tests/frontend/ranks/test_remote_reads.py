"""Trainings over ranks on the emulated GPU, whose kernels read rows of other ranks where they lie,
equal that of one process."""

from __future__ import annotations

import pytest

from .cut_models import LAYERS, check, graph, net

EMULATED = "cuda-emulated"


@pytest.fixture(autouse=True)
def _on_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNC_TARGET", EMULATED)


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, net(name), graph(30, 120), 2, steps=2)
