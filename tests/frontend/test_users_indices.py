"""Indices in the shape of features, as users write them around `scatter_add` and `gather`; and
learnt masks of edges."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from .contract import check
from .users import drawn, edges


@pytest.mark.parametrize("spread", ["expand", "repeat", "expand_as"])
def test_rows_that_are_gathered(spread: str) -> None:
    def function(x: Tensor, e: Tensor) -> Tensor:
        i, j = e[0].unsqueeze(-1), e[1].view(-1, 1)
        if spread == "expand":
            i, j = i.expand(-1, 4), j.expand(e.size(1), x.size(1))
        elif spread == "repeat":
            i, j = i.repeat(1, 4), j.repeat(1, x.size(1))
        else:
            i, j = i.expand_as(x[e[0]]), j.expand_as(x[e[1]])
        m = torch.gather(x, 0, i).tanh() * x.gather(0, j)
        return torch.zeros_like(x).scatter_add_(0, j, m)

    calls = [(drawn(n, 4, seed=n).double(), edges(n, 9)) for n in (5, 8, 1)]
    assert check(function, *calls, (drawn(5, 4).double(), edges(5, 0))).fallbacks == []
    outside = edges(5, 9).index_put((torch.tensor(0), torch.tensor(3)), torch.tensor(-1))
    check(function, calls[0], (calls[0][0], outside))


@pytest.mark.parametrize("whole", [True, False])
def test_columns_that_are_gathered(whole: bool) -> None:
    """An index of fewer columns than there are: the first of them."""

    def function(x: Tensor, e: Tensor) -> Tensor:
        return (x * 2).gather(0, e[0].view(-1, 1).expand(-1, 4 if whole else 3)) * 2

    check(function, (drawn(5, 4), edges(5, 9)), (drawn(3, 4), edges(3, 7)))


def test_one_group_of_all_rows() -> None:
    """As of one graph: its number is 0 for each row and column."""

    def function(x: Tensor, e: Tensor) -> Tensor:
        i = torch.zeros(x.size(0), dtype=torch.long).view(-1, 1).expand_as(x)
        h = (
            x.index_select(0, e[0])
            .new_zeros(1, x.size(1))
            .scatter_reduce(0, i, x * 2, "amax", include_self=False)
        )
        return h + x.gather(0, i)

    assert check(function, (drawn(5, 3), edges(5, 9)), (drawn(2, 3), edges(2, 3))).fallbacks == []


def test_means_that_take_the_old_values_in() -> None:
    def function(x: Tensor, e: Tensor) -> Tensor:
        i = e[1].view(-1, 1).expand(-1, x.size(1))
        mean = x.scatter_reduce(0, i, x[e[0]] ** 2, "mean")
        return mean + torch.zeros_like(x).scatter_reduce(0, i, x[e[0]], "mean", include_self=True)

    assert check(function, (drawn(5, 3), edges(5, 9)), (drawn(5, 3), edges(5, 0))).fallbacks == []


@pytest.mark.parametrize("normalised", [True, False])
def test_masks_of_edges_that_are_learnt(normalised: bool) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 2, normalize=normalised).double()
            self.mask = nn.Parameter(drawn(9, seed=3).double())

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            return self.conv(x, e, self.mask.sigmoid())

    x = drawn(5, 3).double()
    assert check(Masked(), (x, edges(5, 9)), (x, edges(5, 9, 1))).fallbacks == []
    check(Masked(), (x, edges(5, 8)))  # which torch refuses


FROM_FLOATS = {
    "codebook": lambda h, w: h + w[(h @ w.t()).argmin(1)],
    "clusters": lambda h, w: w.index_add(0, (h @ w.t()).argmax(1), h) + 1,
    "own rows": lambda h, w: h[(h[:, 0] > 0).long()],
}


@pytest.mark.parametrize("name", FROM_FLOATS)
def test_rows_that_floats_choose(name: str) -> None:
    """That part runs in torch, and the message names it; the layer in front of it is compiled."""

    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 3).double()
            self.table = nn.Parameter(drawn(4, 3, seed=4).double())

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            return FROM_FLOATS[name](self.conv(x, e), self.table)

    report = check(Chosen(), (drawn(5, 3).double(), edges(5, 9)))
    assert report.graphs
    assert "an index that depends on float values" in str(report.fallbacks)
    assert "test_users_indices.py" in str(report.fallbacks)
