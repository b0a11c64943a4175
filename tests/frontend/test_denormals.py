"""Denormal numbers are 0 inside kernels, unless they are asked for."""

import pytest
import torch
from torch import Tensor

import gnnc

TINY = 1e-39  # of float32, below the smallest normal number


def summed(x: Tensor, e: Tensor) -> Tensor:
    return torch.zeros(x.size(0), x.size(1)).index_add(0, e[1], x[e[0]] * 0.5)


@pytest.mark.usefixtures("openmp")
@pytest.mark.parametrize("kept", [False, True])
def test_denormals(kept: bool) -> None:
    x, e = torch.full((3, 5), TINY), torch.arange(3).repeat(2, 1)
    y = gnnc.compile(summed, denormals=kept)(x, e)
    assert torch.equal(y, summed(x, e) if kept else torch.zeros(3, 5))
