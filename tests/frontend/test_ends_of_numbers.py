"""Infinities, nan, integers beyond 2**53, masks and floats among doubles, and operands that torch
refuses: values and gradients are torch's where rules once differed from it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gnnc

from .function_checks import check, drawn


def numbers(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).requires_grad_()


SPECIAL = numbers([math.inf, -math.inf, math.nan, 0.0], [1.0, -0.3, 0.2, 5.0])
TARGET = numbers([0.0, 1.0, 0.5, 1.0], [0.0, 0.0, 1.0, 2.0])

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "huber": lambda x, y: F.huber_loss(x, y, reduction="none", delta=0.7),
    "smooth_l1": lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.7),
    "two_classes": lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="none"),
    "ranking": lambda x, y: F.margin_ranking_loss(x, y, y, reduction="none", margin=0.1),
    "prelu": lambda x, y: F.prelu(x, y[0]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_infinities_and_nan(name: str) -> None:
    check(lambda x, y: [LOSSES[name](x, y)], SPECIAL, TARGET)


def test_a_logarithm_that_is_kept_from_zero() -> None:
    """Of a probability that rounding has made 1, as in the loss of a graph autoencoder."""

    def guarded(x: Tensor) -> list[Tensor]:
        p = x.sum(1).sigmoid()
        return [torch.log(1 - p + 1e-17), torch.log(p - 1 + 1e-17), torch.log(1e-17 - p + 1)]

    check(guarded, numbers([30.0, 20.0, 9.0], [-0.5, 0.1, 0.2]))


def test_what_stands_for_nan_may_be_infinite() -> None:
    def replaced(x: Tensor) -> list[Tensor]:
        inf = math.inf
        return [
            x.nan_to_num(nan=inf, posinf=3.0, neginf=2.0),
            x.nan_to_num(nan=-inf, posinf=-inf),
            x.nan_to_num(),
        ]

    check(replaced, SPECIAL)


def test_vectors_shorter_than_eps_have_the_gradient_of_their_length() -> None:
    def similar(x: Tensor, y: Tensor) -> list[Tensor]:
        return [F.cosine_similarity(x, y, eps=9.0), F.cosine_similarity(x * 0, y)]

    check(similar, drawn(6, 4), drawn(6, 4, seed=1))


def test_integers_that_no_double_is() -> None:
    def large(i: Tensor) -> list[Tensor]:
        least = torch.iinfo(torch.int64).min
        wide = torch.full_like(i, 2**62 + 3)
        return [i * (2**62 + 3), i * 0 + (2**63 - 1), i * 0 + least, wide, i.clamp(max=2**53 + 1)]

    i = torch.tensor([1, -2, 2**60 + 1])
    compiled = gnnc.compile(large)
    for got, want in zip(compiled(i), large(i), strict=True):
        assert torch.equal(got, want)
    assert gnnc.explain(compiled).fallbacks == []
    written = gnnc.compile(lambda i: i + torch.tensor([2**62 + 3, 1, 2]))
    assert torch.equal(written(i), i + torch.tensor([2**62 + 3, 1, 2]))


@pytest.mark.parametrize("width", [3, 4, 16, 40])
def test_masks_of_numbers_of_another_type(width: int) -> None:
    """A mask in vector registers is as wide as what it was made of."""

    def chosen(x: Tensor, y: Tensor, e: Tensor) -> list[Tensor]:
        mask, (source, target) = y > 0.1, e
        sums = torch.zeros_like(x).index_add(0, target, torch.where(mask[source], x[source], 0.0))
        return [torch.where(mask, x.exp(), x * 2), sums, torch.where(x > 0, y, 1.0)]

    x = drawn(6, width).detach().float().requires_grad_()
    edges = torch.randint(0, 6, (2, 14), generator=torch.Generator().manual_seed(0))
    check(chosen, x, drawn(6, width, seed=1), edges, relative=1e-6)


REFUSED: dict[str, Callable[[Tensor], Tensor]] = {
    "mse_loss": lambda i: F.mse_loss(i, i + 1),
    "one_hot": lambda i: F.one_hot(i.int().abs(), 8),
    "floor": lambda i: (i > 0).floor(),
    "ceil": lambda i: (i > 0).ceil(),
    "rsub": lambda i: torch.rsub(i > 0, 3),
    "distance": lambda i: F.pairwise_distance(i > 0, i),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_torch_refuses(name: str) -> None:
    i = torch.arange(5)
    with pytest.raises(Exception) as wanted:  # noqa: PT011
        REFUSED[name](i)
    with pytest.raises(wanted.type):
        gnnc.compile(REFUSED[name])(i)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_loss_of_two_types_has_the_type_of_torch(reduction: str) -> None:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        return F.soft_margin_loss(x, y, reduction=reduction)

    x, y = torch.ones(4, 3), drawn(4, 3).detach()
    got, want = gnnc.compile(loss)(x, y), loss(x, y)
    assert got.dtype == want.dtype
    assert torch.allclose(got, want)


@pytest.mark.parametrize("width", [1, 3, 4, 16, 40])
def test_a_double_that_was_a_float_has_its_digits(width: int) -> None:
    def rounded(x: Tensor) -> list[Tensor]:
        return [x.float().double() * 2, x + x.float(), torch.stack([x, x.float()], 1)]

    x = drawn(6, width).detach()
    compiled = gnnc.compile(rounded)
    for got, want in zip(compiled(x), rounded(x), strict=True):
        assert torch.allclose(got, want, rtol=1e-12, atol=1e-13)
    assert gnnc.explain(compiled).kernels


@pytest.mark.parametrize("rows", [5, 0])
def test_columns_chosen_by_one_table_for_all_rows(rows: int) -> None:
    def chosen(x: Tensor) -> Tensor:
        places = torch.tensor([[[0, 1], [3, 2], [1, 1]]])
        return torch.gather(x, 2, places.expand(x.shape[0], 3, 2))

    compiled = gnnc.compile(chosen)
    for n in (6, rows):
        x = drawn(n, 3, 4).detach()
        assert torch.equal(compiled(x), chosen(x))
