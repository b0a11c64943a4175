"""Results that are views: of arguments, of each other; and the order of results in memory."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gnnc

from .alias_programs import Program, assert_as_eager

# Dynamo looks for the gradient of arguments that are part of the caller's graph
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")

Tensors = tuple[Tensor, ...]


def views_of_arguments(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    return x.t(), x[:, :2], b, b.detach(), x.unsqueeze(0), (x @ w).index_select(0, i)


def views_of_results(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    return h, h.t(), h[:, 0], h.unbind(1)[1], h.chunk(3, 1)[2], h.view(-1, 3, 1)


def transposed(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    return h.t().contiguous(), x.t().contiguous(), x.t() + 1, b.t().contiguous(), b.t().clone()


def permuted(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    y = (x @ w).index_select(0, i).view(-1, 3, 1)
    return y.permute(2, 1, 0) + 1, y.permute(1, 0, 2).contiguous(), y.squeeze(-1) * 2


def lone_views(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    return (x @ w)[:, :2], (x * 2).t(), x.sum().expand(4), (x @ w).sum(0, keepdim=True).expand(5, 3)


def the_same_tensor(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    return h, h, x, F.dropout(h, 0.5, False), h.contiguous(), h + 0, x + 0, b.clone()


def detached(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    with torch.no_grad():
        u = (x @ w).t()
    return u, x.detach().t(), x.data, (x @ w).detach()


PROGRAMS = (
    views_of_arguments,
    views_of_results,
    transposed,
    permuted,
    lone_views,
    the_same_tensor,
    detached,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_share_memory_as_in_eager(program: Program):
    report = assert_as_eager(program)
    assert report.graphs == 1
    assert not report.fallbacks


@pytest.mark.parametrize("program", (views_of_results, transposed), ids=lambda f: f.__name__)
def test_results_without_gradients_too(program: Program):
    assert_as_eager(program, grad_mode=False)


def test_an_edit_of_a_result_reaches_its_views_and_the_argument():
    def program(x: Tensor, i: Tensor) -> Tensors:
        h = x * 2
        return h, h.t(), x[:, 0], h.index_select(0, i)

    call = gnnc.compile(program)
    x, i = torch.randn(4, 3), torch.tensor([0, 3, 1])
    h, across, column, rows = call(x, i)
    h[0, 0] = 7
    assert across[0, 0] == 7
    assert rows[0, 0] != 7
    column.zero_()
    assert (x[:, 0] == 0).all()


def test_views_follow_the_sizes_of_each_call():
    def program(x: Tensor, i: Tensor) -> Tensors:
        h = (x * 2).index_select(0, i)
        return h, h.view(-1, 3, 1), h.t()

    call = gnnc.compile(program)
    for n in (4, 7):
        x, i = torch.randn(n, 3), torch.arange(n - 1)
        for mine, theirs in zip(call(x, i), program(x, i), strict=True):
            assert mine.shape == theirs.shape
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    "view",
    [lambda h: h[:, :2].reshape(-1, 2, 1), lambda h: h[..., :1].flatten()],
    ids=["heads", "a column"],
)
def test_columns_that_are_returned_in_another_shape_keep_their_strides(
    view: Callable[[Tensor], Tensor],
):
    def function(x: Tensor) -> Tensor:
        return view(x * 2)

    x = torch.randn(3, 4)
    assert gnnc.compile(function)(x).stride() == function(x).stride()
