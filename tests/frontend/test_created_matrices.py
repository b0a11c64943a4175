"""Sparse matrices that users' code makes in the call, of edges and weights: compiled with it where
what it does with them can be, values and gradients as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import gnnc

from .contract import check
from .users import drawn

pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]


def adjacency(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(e, w, (x.size(0), x.size(0)))


def product(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return torch.sparse.mm(adjacency(x, e, w), x).relu()


def transposed(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    a = torch.sparse_coo_tensor(e, w, size=torch.Size([len(x), len(x)]))
    return a.t() @ (a @ x)


def two_parts(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    """Each entry twice, which coalesce adds up."""
    a = adjacency(x, torch.cat([e, e], 1), torch.cat([w, 2 * w])).coalesce()
    return torch.spmm(a, x)


def normalised(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    a = torch.sparse_coo_tensor(
        e, w.float(), (len(x), len(x)), dtype=x.dtype, device=x.device, check_invariants=True
    )
    d = 1 / (torch.sparse.sum(a, dim=1).to_dense().abs() + 1)
    return d.unsqueeze(1) * (a @ x) + torch.sparse.sum(a, 0).to_dense().unsqueeze(1)


def all_of_it(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    a = adjacency(x, e, w)
    return a @ x / (torch.sparse.sum(a) + torch.sparse.sum(a, (0, 1)))


COMPILED = [product, transposed, two_parts, normalised, all_of_it]


def entries(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    a = adjacency(x, e, w).coalesce()
    return x.index_add(0, a.indices()[0], x[a.indices()[1]] * a.values().exp().unsqueeze(1))


def made_dense(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return adjacency(x, e, w).to_dense() @ x


def of_unknown_size(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(e, w).to_dense().sum() * x


def rows_of_entries(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    a = torch.sparse_coo_tensor(e, w.unsqueeze(1) * x[e[0]], (len(x), len(x), x.size(1)))
    return torch.sparse.sum(a, 1).to_dense()


IN_TORCH = [entries, made_dense, of_unknown_size, rows_of_entries]


def given(nodes: int, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges of which some are several times there."""
    torch.manual_seed(nodes)
    return drawn(nodes, 3), torch.randint(nodes, (2, edges)), drawn(edges, seed=1)


@pytest.mark.parametrize("program", COMPILED)
def test_they_are_compiled(program: Callable[..., Tensor]) -> None:
    report = check(program, given(7, 30), given(12, 20), given(5, 0), given(3, 1))
    assert report.fallbacks == []
    assert report.programs


@pytest.mark.parametrize("program", IN_TORCH)
def test_they_are_torchs(program: Callable[..., Tensor]) -> None:
    check(program, given(7, 30), given(12, 20))


class Layers(torch.nn.Module):
    """What is done with the matrix is left to torch, layers are not."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Sums()

    def forward(self, x: Tensor, e: Tensor, w: Tensor) -> Tensor:
        mean = adjacency(x, e, w).to_dense().mean()
        return self.layer(x, e) * mean


class Sums(torch.nn.Module):
    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, e[1], x[e[0]].sin())


def test_what_is_called_beside_them_is_compiled() -> None:
    report = check(Layers(), given(7, 30), given(12, 20))
    assert report.programs


@pytest.mark.parametrize("at", [(0, 0), (1, 4)])
def test_an_index_out_of_range(at: tuple[int, int]) -> None:
    compiled = gnnc.compile(product)
    x, e, w = given(7, 30)
    compiled(x, e, w)
    e[at] = 7
    with pytest.raises((IndexError, RuntimeError)):
        compiled(x, e, w)


def test_other_users_of_dynamo() -> None:
    gnnc.compile(product)(*given(7, 30))
    theirs = torch.compile(product, backend="eager")
    torch.testing.assert_close(theirs(*given(7, 30)), product(*given(7, 30)))
