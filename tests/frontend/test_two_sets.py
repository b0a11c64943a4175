"""Dense tensors with a row for each row of one set and a column for each row of another are
eager's: compiled code has rows of one set only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from .contract import check
from .users import drawn

DENSE: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "zeros": lambda x, y: torch.zeros(x.shape[0], y.shape[0]) + x[:, :1],
    "zeros that are returned": lambda x, y: (torch.zeros(x.shape[0], y.shape[0]), y * 2),
    "ones": lambda x, y: torch.ones(x.shape[0], y.shape[0]) * x[:, :1],
    "full, summed over columns": lambda x, y: x.new_full((x.shape[0], y.shape[0]), 2.0).sum(1),
    "full, summed over rows": lambda x, y: x.new_full((x.shape[0], y.shape[0]), 2.0).sum(0) * y.T,
    "expanded columns": lambda x, y: x[:, :1].expand(-1, y.shape[0]) * 2,
    "a comparison of all pairs": lambda x, y: (x[:, :1] < y[:, 0]).sum(1),
    "a product": lambda x, y: (x @ y.T).sum(1),
}


@pytest.mark.parametrize("name", DENSE)
def test_dense_tensors_of_two_sets(name: str) -> None:
    def function(x: Tensor, y: Tensor, e: Tensor) -> Any:
        return DENSE[name](x, y.index_add(0, e[1], x[e[0]]))

    def given(nodes: int, others: int) -> tuple[Tensor, ...]:
        e = torch.stack([torch.arange(6) % nodes, torch.arange(6) % others])
        return drawn(nodes, 3), drawn(others, 3, seed=1), e

    check(function, given(4, 5), given(3, 7))
