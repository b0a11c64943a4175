"""PyG's EdgeIndex and Index as arguments: plain tensors in a graph, and themselves where a model
asks for what only they know."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex, Index
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import gnnc

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
EDGES = EdgeIndex([[0, 1, 1, 2], [1, 0, 2, 1]], sparse_size=(3, 3), sort_order="row")
BATCH = Index([0, 1, 1], dim_size=3, is_sorted=True)


def rows(x: Tensor, e: EdgeIndex) -> Any:
    (starts, ends), order = e.get_csr()
    return (x * 2)[ends], starts, order


def product(x: Tensor, e: EdgeIndex) -> Any:
    return e @ x.relu(), e.matmul(x), torch.matmul(e, x)


def sizes(x: Tensor, e: EdgeIndex) -> Any:
    return x.relu() * e.sparse_size(0), e.sort_order, e.is_sorted_by_col


def given_back(x: Tensor, e: EdgeIndex) -> Any:
    return x.index_select(0, e[0]).relu(), e


@pytest.mark.filterwarnings("ignore:Sparse")  # PyG makes a sparse matrix of an EdgeIndex
@pytest.mark.parametrize("f", [rows, product, sizes, given_back])
def test_what_only_an_edge_index_knows_is_as_in_eager(f: Any) -> None:
    want, got = f(X, EDGES), gnnc.compile(f)(X, EDGES)
    for a, b in zip(want, got, strict=True):
        assert type(a) is type(b)
        assert torch.equal(a, b) if isinstance(a, Tensor) else a == b


def test_an_edge_index_in_an_object_is_taken_as_a_tensor() -> None:
    torch.manual_seed(0)
    conv = SAGEConv(4, 4)

    def layer(data: Data) -> Tensor:
        return conv(data.x, data.edge_index)

    data = Data(x=X, edge_index=EDGES)
    compiled = gnnc.compile(layer)
    assert torch.allclose(compiled(data), layer(data), atol=1e-6)
    assert gnnc.explain(compiled).fallbacks == []


def test_one_program_serves_edge_indices_of_all_sizes() -> None:
    compiled = gnnc.compile(SAGEConv(4, 4))
    for n in (5, 6, 7):
        ends = torch.stack([torch.arange(n), torch.arange(n).flip(0)])
        compiled(torch.ones(n, 4), EdgeIndex(ends, sparse_size=(n, n)))
    assert gnnc.explain(compiled).graphs == 1
    assert gnnc.explain(compiled).fallbacks == []


def test_an_index_is_a_tensor_and_knows_its_pointers() -> None:
    def pooled(x: Tensor, batch: Index) -> Any:
        return torch.zeros(3, 4).index_add(0, batch, x), batch.get_indptr()

    for a, b in zip(pooled(X, BATCH), gnnc.compile(pooled)(X, BATCH), strict=True):
        assert torch.equal(a, b)
