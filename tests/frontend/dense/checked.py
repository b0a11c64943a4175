"""Compares a model of dense batches with eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import gnnc

BATCH = torch.tensor([0, 0, 1, 3, 3, 3, 3])  # graph 2 has no nodes
GRAPHS, WIDTH = 5, 4


class Model(nn.Module):
    """A function of the rows of a layer, of a batch, and of two further layers."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)
        self.function = function

    def forward(self, x: Tensor, batch: Tensor) -> Any:
        return self.function(self.first(x).tanh(), batch, self.second)


def check(model: nn.Module, batches: Sequence[Tensor] = (BATCH,)) -> Any:
    """The compiled model has eager's results and gradients for all of the batches, one after the
    other. Returns the report."""
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    for k, batch in enumerate(batches):
        given = torch.randn(len(batch), WIDTH, generator=torch.Generator().manual_seed(k))
        found: list[list[Tensor]] = []
        for m in (eager, compiled):
            x = given.clone().requires_grad_()
            results = m(x, batch)
            results = results if isinstance(results, tuple) else (results,)
            loss = sum((y * y.detach().cos()).sum() for y in results if y.is_floating_point())
            grads = torch.autograd.grad(loss, [x, *m.parameters()], allow_unused=True)  # pyright: ignore
            zeros = (torch.zeros_like(p) for p in (x, *m.parameters()))
            grads = [z if g is None else g for g, z in zip(grads, zeros, strict=True)]
            found.append([*results, *grads])
        torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-12, equal_nan=True)
    return gnnc.explain(compiled)
