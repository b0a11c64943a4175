"""The extreme of each column over the rows of a set, with the row that has it first: a readout as
`h.max(0).values`, whose gradient goes to that row only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from .contract import check
from .users import drawn, edges, gathered

NAN, INF = float("nan"), float("inf")

READOUTS: dict[str, Callable[[Tensor], Any]] = {
    "largest": lambda h: h.max(0),
    "smallest, kept": lambda h: torch.min(h, 0, keepdim=True),
    "numbers": lambda h: (h.argmax(0), h.argmin(dim=0, keepdim=True), h[:, 0].argmax()),
    "of matrices": lambda h: h.view(-1, 1, 3).transpose(0, 1).max(1).values,
}


@pytest.mark.parametrize("name", READOUTS)
def test_readouts(name: str) -> None:
    def function(x: Tensor, e: Tensor) -> Any:
        return tuple(READOUTS[name](gathered(x, e)))

    loops = torch.arange(4).repeat(2, 1)
    ties = torch.tensor([[1.0, -2.0, 3.0], [3.0, 0.0, 3.0], [3.0, -0.0, 1.0], [0.0, -2.0, 1.0]])
    special = torch.tensor([[NAN, 1.0, INF], [INF, NAN, -INF], [1.0, NAN, INF], [NAN, 0.0, -INF]])
    calls = [
        (drawn(9, 3, seed=1), edges(9, 30)),
        (ties.requires_grad_(), loops),
        (special.requires_grad_(), loops),
        (drawn(1, 3), edges(1, 2)),
        (drawn(5, 3).detach().double(), edges(5, 7)),
    ]
    assert check(function, *calls).fallbacks == []
    check(function, (drawn(0, 3), edges(0, 0)))  # of which torch raises


def test_integers() -> None:
    def function(k: Tensor, e: Tensor) -> tuple[Any, ...]:
        degree = torch.zeros_like(k[:, 0]).index_add(0, e[1], torch.ones_like(e[1]))
        return degree.argmax(), *degree.max(0), *k.min(0)

    k = torch.tensor([[3, -1], [0, 5], [3, -1], [0, 5]])
    assert check(function, (k, edges(4, 9))).fallbacks == []
