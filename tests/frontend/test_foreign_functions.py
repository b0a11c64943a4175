"""Functions of Python that a model calls give what they give without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

import pytest
import torch
from torch import Tensor

import gnnc

from .models import close


def by_name(x: Tensor) -> Tensor:
    return sum((x * k for k in list(repeat(2.0, times=3))), x)


def both_by_name(x: Tensor) -> Tensor:
    return sum((x * k for k in list(repeat(times=3, object=2.0))), x)


def by_position(x: Tensor) -> Tensor:
    return sum((x * k for k in list(repeat(2.0, 3))), x)


def columns(x: Tensor) -> Tensor:
    return sum((x[:, i] * k for i, k in enumerate(repeat(2.0, times=x.size(1)))), x[:, 0])


def shortest(x: Tensor) -> Tensor:
    return sum((x * i * k for i, k in zip(range(1, 9), repeat(2.0, times=3), strict=False)), x)


def without_end(x: Tensor) -> Tensor:
    return sum((x * i * k for i, k in zip(range(1, 9), repeat(2.0), strict=False)), x)


@pytest.mark.parametrize(
    "program", [by_name, both_by_name, by_position, columns, shortest, without_end]
)
def test_a_value_is_repeated_as_often_as_asked(program: Callable[[Tensor], Tensor]) -> None:
    x = torch.linspace(-1, 1, 28).view(7, 4)
    compiled = gnnc.compile(program)
    assert close(compiled(x), program(x))
    assert gnnc.explain(compiled).kernels
