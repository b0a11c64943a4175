"""One check for functions of tensors: compiled they give torch's values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import gnnc


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def gradients(function: Callable[..., Any], args: tuple[Tensor, ...]) -> list[Tensor]:
    """The results, then the gradients of a combination of them."""
    mine = [x.detach().clone().requires_grad_(x.requires_grad) for x in args]
    out = function(*mine)
    total = sum((y * torch.cos(torch.arange(y.numel()).view(y.shape) + k)).sum() for k, y in out)
    assert isinstance(total, Tensor)
    total.backward()
    return [y.detach() for _, y in out] + [x.grad for x in mine if x.grad is not None]


def numbered(f: Callable[..., list[Tensor]]) -> Callable[..., list[tuple[int, Tensor]]]:
    return lambda *args: list(enumerate(f(*args)))


def check(f: Callable[..., list[Tensor]], *args: Tensor, relative: float = 1e-9) -> None:
    """`f` gives several results, which are compiled together."""
    compiled = gnnc.compile(f)
    want, got = gradients(numbered(f), args), gradients(numbered(compiled), args)
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert torch.allclose(x, y, rtol=relative, atol=relative / 100, equal_nan=True)
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.kernels
