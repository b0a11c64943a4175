"""What a loader's threads arrange of the edges of batches, and programs find."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc.frontend.torch.calls import arrivals
from gnnc.frontend.torch.calls.arrivals import Asked, Request, ahead, arrive
from gnnc.frontend.torch.loader.arriving import Arriving
from gnnc.loader import NeighborLoader
from gnnc.runtime.sets.arrangement import Arrangement, Order
from gnnc.runtime.sets.sets import MapData, SetData

NODES, EDGES = 300, 2000
ORDERS = (Order(1, False, (0,)), Order(0, False, (1,)))
ROWS = {"src": 0, "dst": 1}
BY_BOTH = Arrangement(("src", "dst"), ORDERS)


@pytest.fixture(autouse=True)
def nothing_before() -> None:
    arrivals._arrivals.clear()


@pytest.fixture(scope="module")
def data() -> Data:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, EDGES), generator=generator)
    return Data(x=torch.randn(NODES, 4, generator=generator), edge_index=edges)


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return gnnc.compile(SAGEConv(4, 3))


def batches(data: Data, workers: int) -> Iterator[Data]:
    loader = NeighborLoader(data, [3, 2], batch_size=20, num_workers=workers, seed=5)
    return iter(loader)


def made_ahead(edges: torch.Tensor) -> bool:
    found = ahead(edges, ROWS)
    return found is not None and bool(found.arrival.made)


def results(model: torch.nn.Module, x: torch.Tensor, edges: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    out = model(x, edges)
    out.square().sum().backward()
    return [out.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


def test_batches_bring_what_was_asked(data: Data, model: torch.nn.Module):
    found: list[bool] = []
    alone = batches(data, 0)
    for batch in batches(data, 1):
        found.append(made_ahead(batch.edge_index))
        at_once = results(model, batch.x, batch.edge_index)
        same = next(alone)
        assert ahead(same.edge_index, ROWS) is None
        for x, y in zip(at_once, results(model, same.x, same.edge_index), strict=True):
            assert torch.equal(x, y)
    assert not found[0] and all(found[-5:])


def test_edges_that_were_changed_are_not_found(data: Data, model: torch.nn.Module):
    for batch in batches(data, 1):
        results(model, batch.x, batch.edge_index)
    assert made_ahead(batch.edge_index)
    batch.edge_index[0] = batch.edge_index[1]
    assert ahead(batch.edge_index, ROWS) is None
    apart = batch.edge_index.clone()
    changed = results(model, batch.x, batch.edge_index)
    for x, y in zip(changed, results(model, batch.x, apart), strict=True):
        assert torch.equal(x, y)
    batch.edge_index[0, 2] = len(batch.x)
    with pytest.raises(IndexError, match=rf"\[0\]\[2\] is {len(batch.x)}"):
        model(batch.x, batch.edge_index)


def test_fewer_rows_than_the_loader_knows(data: Data, model: torch.nn.Module):
    for batch in batches(data, 1):
        results(model, batch.x, batch.edge_index)
    few = int(batch.edge_index.max())
    with pytest.raises(IndexError, match=f"is {few}, "):
        model(batch.x[:few], batch.edge_index)


def set_of(edges: torch.Tensor, codomain: int) -> SetData:
    maps = {name: MapData.of(row, codomain) for name, row in zip(("src", "dst"), edges.numpy())}
    made = SetData(edges.shape[1], maps)
    made.ahead = ahead(edges, ROWS)
    return made


def test_what_arrives_is_what_would_be_made():
    asked = Asked()
    for edges in (torch.randint(9, (2, 40)), torch.empty(2, 0, dtype=torch.int64)):
        arrive(edges, (9, 9), asked)
        first = BY_BOTH.of_set(set_of(edges, 9))
        again = edges.clone()
        arrive(again, (9, 9), asked)
        of_set = set_of(again, 9)
        second = BY_BOTH.of_set(of_set)
        assert first is not None and second is not None
        assert isinstance(of_set.ahead, arrivals.Ahead)
        assert second is of_set.ahead.arrival.made[Request((0, 1), ORDERS)]
        for a, b in zip(first.orders, second.orders, strict=True):
            np.testing.assert_array_equal(a[0], b[0], strict=True)
            np.testing.assert_array_equal(a[2][0], b[2][0], strict=True)
        assert of_set.maps["src"].array is second.maps[0]
        others = BY_BOTH.of_set(set_of(again, 12))
        assert others is not None and len(others.orders[0][0]) == 13
    assert asked.requests == (Request((0, 1), ORDERS),)


def test_maps_in_another_order_than_their_rows():
    turned = Arrangement(("dst", "src"), (Order(0, True, ()),))
    asked = Asked()
    for _ in range(2):
        edges = torch.stack([torch.randint(5, (40,)), torch.randint(9, (40,))])
        arrive(edges, (5, 9), asked)
        found = ahead(edges, ROWS)
        assert found is not None
        made = found.arranged(turned, [9, 5])
    assert made is not None
    np.testing.assert_array_equal(made.maps[0], edges[1].numpy())
    np.testing.assert_array_equal(made.orders[0][1], np.argsort(edges[1].numpy(), kind="stable"))


def test_a_wrong_index_is_left_to_the_call():
    asked = Asked()
    asked.note(Request((0, 1), ORDERS))
    edges = torch.tensor([[0, 1], [5, 0]])
    arrive(edges, (3, 3), asked)
    assert not made_ahead(edges)


def test_a_loader_asks_for_no_more_than_some_ways():
    asked = Asked()
    for k in range(10):
        asked.note(Request((0, 1), (Order(0, True, (1,) * k),)))
    assert len(asked.requests) == arrivals.MOST


def test_edges_of_several_types_and_what_is_no_graph():
    batch = HeteroData()
    batch["a"].n_id, batch["b"].n_id = torch.arange(4), torch.arange(7)
    edges = batch["a", "to", "b"].edge_index = torch.tensor([[3, 0], [6, 1]])
    back = batch["b", "of", "a"].edge_index = edges.flip(0)
    odd = batch["b", "to", "b"].edge_index = torch.zeros(2, 3)
    arriving = Arriving()
    arriving(batch)
    counts = [f.arrival.counts for x in (edges, back) if (f := ahead(x, (0, 1))) is not None]
    assert counts == [(4, 7), (7, 4)]
    assert ahead(odd, (0, 1)) is None
    arriving((batch, 3))
    unknown = Data(edge_index=edges.clone())
    arriving(unknown)
    assert ahead(unknown.edge_index, (0, 1)) is None


def test_edges_are_forgotten_with_their_tensor():
    edges = torch.tensor([[0, 1], [1, 0]])
    arrive(edges, (2, 2), Asked())
    assert len(arrivals._arrivals) == 1
    del edges
    assert len(arrivals._arrivals) == 0
