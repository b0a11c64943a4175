"""Gradients that are written over values of the same nest, which later stages read."""

from __future__ import annotations

import torch
from torch import Tensor

from .function_checks import check, drawn


def test_a_gradient_over_what_a_later_stage_reads() -> None:
    """Beside the extreme, which waits for a row, the distances lie where the gradient of the third
    argument is to be."""

    def norms(a: Tensor, b: Tensor, o: Tensor) -> list[Tensor]:
        near, far = 2 * a - b, 2 * a - o
        gap = near.norm(3.0, 1) - far.norm(3.0, 1)
        return [near.norm(torch.inf, 1), gap.relu()]

    check(norms, *(drawn(23, 5, seed=k) for k in range(3)))
