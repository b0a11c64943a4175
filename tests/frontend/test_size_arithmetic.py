"""Numbers that follow from sizes: as factors and as results, of the type that Python gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gnnc


def mean_degree(x: Tensor, e: Tensor) -> Any:
    return x[e[0]] * (e.size(1) / x.size(0))


def scaled_by_root(x: Tensor, e: Tensor) -> Any:
    return x[e[0]] / math.sqrt(x.size(0)), x.size(0) ** 0.5


def parts_of_sizes(x: Tensor, e: Tensor) -> Any:
    n = x.size(0)
    return x[e[0]] * (n % 3), n / 3, n * 0.5 + 1, int(n * 0.3), round(n / 3), n // 2, max(n, 9)


def comparisons(x: Tensor, e: Tensor) -> Any:
    return x[e[0]] * 2, x.size(0) > 8, x.size(0) == e.size(1), not x.size(0) < 3


def share_of_kept(x: Tensor, e: Tensor) -> Any:
    kept = x[e[0][e[0] != e[1]]]
    return kept * (kept.size(0) / x.size(0) + 1) + kept.size(0) * 0.25


def item_by_kept(x: Tensor, e: Tensor) -> Any:
    kept = x[e[0][e[0] != e[1]]]
    item = x.detach().abs().max().item()
    return kept * (item / (kept.size(0) + 1)) + x.sum() * (item / 3)


def whole_numbers_by_a_share(x: Tensor, e: Tensor) -> Any:
    return e * (1 / x.size(0)), e * x.size(0)


FUNCTIONS = (
    mean_degree,
    scaled_by_root,
    parts_of_sizes,
    comparisons,
    share_of_kept,
    item_by_kept,
    whole_numbers_by_a_share,
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_equal_to_torch(function: Callable[..., Any]) -> None:
    compiled = gnnc.compile(function)
    for nodes, edges in ((7, 12), (10, 5), (12, 12)):
        x = torch.randn(nodes, 4, requires_grad=True)
        e = torch.randint(0, nodes, (2, edges))
        for want, got in zip(parts(function(x, e)), parts(compiled(x, e)), strict=True):
            assert type(got) is type(want)
            if isinstance(want, Tensor):
                assert torch.allclose(got, want)
                assert got.dtype == want.dtype
                assert torch.allclose(gradient(got, x), gradient(want, x))
            else:
                assert got == want
    assert gnnc.explain(compiled).fallbacks == []


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def gradient(y: Tensor, x: Tensor) -> Tensor:
    if not y.requires_grad:
        return torch.zeros(())
    return torch.autograd.grad(y.square().sum(), x)[0]


def test_numpy_of_sizes() -> None:
    """Dynamo takes the size for a constant there, so another one is another program."""

    def scaled(x: Tensor) -> Tensor:
        return x * np.sqrt(x.shape[0]) + x / np.log(x.shape[0] + 1)

    compiled = gnnc.compile(scaled)
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(7, 3, dtype=dtype)
        found, wanted = compiled(x), scaled(x)
        assert found.dtype == wanted.dtype
        torch.testing.assert_close(found, wanted)
    assert gnnc.explain(compiled).fallbacks == []
