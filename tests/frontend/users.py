"""What programs of users are given: a small graph, and random numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def drawn(*shape: int, seed: int = 0, grad: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def edges(nodes: int, count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, max(nodes, 1), (2, count), generator=generator)


def gathered(x: Tensor, e: Tensor) -> Tensor:
    return torch.zeros(x.size(0), x.size(1), dtype=x.dtype).index_add(0, e[1], x[e[0]])


X, E, IDX = drawn(4, 3), edges(4, 6), torch.tensor([0, 2, 2, 1, 3])
