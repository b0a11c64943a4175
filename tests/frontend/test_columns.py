"""Joins, norms, running sums and reads of columns that are compiled equal torch's, values and
gradients."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnc

from .function_checks import check, drawn

ROWS, WIDTH = 11, 6


def test_joins() -> None:
    def joined(x: Tensor, y: Tensor) -> list[Tensor]:
        x, one = 2 * x, x.sum(1)
        return [
            torch.hstack([x, y]),
            torch.vstack([x, y]),
            torch.dstack([x, y]),
            torch.column_stack([one, x, y]),
            torch.hstack([one, y[:, 0]]),
            torch.vstack([one, y[:, 0]]),
            torch.atleast_3d(x),
        ]

    check(joined, drawn(ROWS, WIDTH), drawn(ROWS, WIDTH, seed=1))


def test_longer_and_shorter() -> None:
    def padded(x: Tensor) -> list[Tensor]:
        x = 2 * x
        return [
            F.pad(x, (1, 2)),
            F.pad(x, (-1, 2), value=3.0),
            F.pad(x.view(-1, 2, 3), (0, 1, 2, -1)),
            F.pad(x, (0, 0)),
            x.repeat_interleave(3, dim=1),
            x.diff(dim=1),
            x.diff(dim=0),
            x.diff(n=2),
        ]

    check(padded, drawn(ROWS, WIDTH))


def test_the_rows_of_a_set_are_not_padded() -> None:
    def padded(x: Tensor, w: Tensor) -> Tensor:
        return F.pad(x @ w, (0, 0, 1, 0)) * 2

    compiled = gnnc.compile(padded)
    args = drawn(ROWS, WIDTH), drawn(WIDTH, WIDTH)
    assert torch.allclose(compiled(*args), padded(*args))
    assert any("the rows of a set padded" in r for r in gnnc.explain(compiled).fallbacks)


def test_running_sums_and_products() -> None:
    def running(x: Tensor) -> list[Tensor]:
        x = 2 * x
        cube = x.view(-1, 2, 3)
        return [x.cumsum(1), x.cumprod(1), x.prod(1), cube.prod(2, keepdim=True), cube.cumsum(-2)]

    x = drawn(ROWS, WIDTH)
    with torch.no_grad():
        x[0, 1], x[1, 1], x[1, 4] = 0.0, 0.0, 0.0  # the gradient of a factor beside others
    check(running, x)


def test_normalisations() -> None:
    def normal(x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
        x = 2 * x
        cube = x.view(-1, 2, 3)
        return [
            F.group_norm(x, 3),
            F.group_norm(x, 2, w, b),
            F.group_norm(cube, 2, w[:2], b[:2], eps=0.1),
            F.instance_norm(cube),
            F.instance_norm(cube, weight=w[:2], bias=b[:2]),
            F.batch_norm(cube, None, None, w[:2], b[:2], training=True),
        ]

    check(normal, drawn(ROWS, WIDTH), drawn(WIDTH, seed=1), drawn(WIDTH, seed=2))


def test_statistics_of_batches_of_vectors() -> None:
    torch.manual_seed(0)
    eager, other = (torch.nn.BatchNorm1d(2, dtype=torch.float64) for _ in range(2))
    compiled = gnnc.compile(other)
    for k in range(3):
        x = drawn(ROWS + k, 2, 3, seed=k)
        assert torch.allclose(compiled(x), eager(x))
    assert torch.allclose(other.running_mean, eager.running_mean)
    assert torch.allclose(other.running_var, eager.running_var)
    assert gnnc.explain(compiled).fallbacks == []


def test_norms() -> None:
    def norms(x: Tensor, y: Tensor) -> list[Tensor]:
        x = 2 * x
        cube = x.view(-1, 2, 3)
        return [
            *(x.norm(p, dim=1) for p in (1.5, 3, torch.inf, -torch.inf)),
            torch.linalg.norm(x, dim=1),
            torch.linalg.matrix_norm(cube),
            torch.linalg.vecdot(x, y),
            torch.dist(x, y),
        ]

    x = drawn(ROWS, WIDTH)
    with torch.no_grad():
        x[0] = 0.0
        x[1, 2] = 0.0
    check(norms, x, drawn(ROWS, WIDTH, seed=1))


def test_products() -> None:
    def products(x: Tensor, y: Tensor, w: Tensor) -> list[Tensor]:
        x = 2 * x
        a, b = x.view(-1, 2, 3), y.view(-1, 2, 3)
        return [
            torch.inner(x, w),
            torch.tensordot(a, w[:3], dims=([2], [0])),
            torch.tensordot(x, w, dims=1),
            torch.addmv(x[:, 0], x, w[0], beta=0.5, alpha=2.0),
            torch.baddbmm(a @ b.mT, a, b.mT),
            F.scaled_dot_product_attention(a, b, a),
            F.scaled_dot_product_attention(a, b, a, attn_mask=w[:2, :2], scale=0.3),
            torch.logaddexp(x, y),
            torch.addcdiv(x, y, 2 + y * y, value=0.5),
        ]

    check(products, drawn(ROWS, WIDTH), drawn(ROWS, WIDTH, seed=1), drawn(WIDTH, WIDTH, seed=2))


def test_an_index_of_several_numbers_a_row() -> None:
    def read(x: Tensor, w: Tensor, edges: Tensor) -> list[Tensor]:
        h = x @ w
        ends, turned = h[edges], h[edges.t()]
        return [
            ends,
            turned,
            (ends[0] * ends[1]).sum(-1),
            h.view(-1, 2, 3)[edges],
            h.view(-1, 2, 3)[:, torch.tensor([0, 1, 1]), torch.tensor([2, 0, 2])],
            h[edges.t().unsqueeze(2)],
        ]

    edges = torch.randint(0, ROWS, (2, 17), generator=torch.Generator().manual_seed(3))
    check(read, drawn(ROWS, WIDTH), drawn(WIDTH, WIDTH, seed=1), edges)


def test_several_columns_of_each_row() -> None:
    def chosen(x: Tensor, w: Tensor, k: Tensor) -> list[Tensor]:
        h = x @ w
        two = torch.stack([k, (k + 1) % WIDTH], 1)
        hot = torch.zeros(k.shape[0], WIDTH, dtype=x.dtype).scatter(1, two, 1.0)
        return [h.gather(1, two), h * hot]

    def wrapped(x: Tensor, k: Tensor) -> list[Tensor]:
        return [(2 * x).take_along_dim((k - WIDTH).unsqueeze(1), 1)]

    k = torch.randint(0, WIDTH, (ROWS,), generator=torch.Generator().manual_seed(3))
    check(chosen, drawn(ROWS, WIDTH), drawn(WIDTH, WIDTH, seed=1), k)
    check(wrapped, drawn(ROWS, WIDTH), k)
    k[2] = WIDTH
    with pytest.raises(RuntimeError):
        gnnc.compile(chosen)(drawn(ROWS, WIDTH), drawn(WIDTH, WIDTH, seed=1), k)


def test_constants_are_written_out() -> None:
    def fixed(x: Tensor) -> list[Tensor]:
        x = 2 * x
        return [
            x * torch.linspace(0, 1, WIDTH, dtype=x.dtype),
            x @ torch.eye(WIDTH, dtype=x.dtype),
            torch.var_mean(x, 1)[1],
            x.nansum(1),
            F.softmin(x, 1),
        ]

    check(fixed, drawn(ROWS, WIDTH))


class OfParameters(nn.Module):
    """A loss of parameters alone: what it compares with classes are rows of no set."""

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 24).view(4, 6))
        self.register_buffer("target", target)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :4] @ self.weight * F.cross_entropy(self.weight, self.target)


def test_numbers_of_no_set_are_checked() -> None:
    good, x = OfParameters(torch.tensor([0, 5, 1, 2])), torch.randn(7, 5)
    want = good(x)
    torch.testing.assert_close(gnnc.compile(copy.deepcopy(good), fullgraph=True)(x), want)
    for bad in (6, -1):
        model = OfParameters(torch.tensor([0, bad, 1, 2]))
        with pytest.raises(IndexError, match="out of|between 0 and 5"):
            gnnc.compile(model, fullgraph=True)(x)
