"""What crosses between ranks while they train: as many bytes as the partition says, into ghosts
whose numbers are not looked at before they are there."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import gnnc
from gnnc.runtime.partition import edges, measure
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.virtual import Link, Virtual
from gnnc.runtime.ranks.waiting import Pending

from .cut_models import CLASSES, WIDTH, adam, graph
from .traffic import counting

HIDDEN, RANKS = 5, 3
NODES, EDGES = 40, 160


class Two(nn.Module):
    def __init__(self, make: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = make(WIDTH, HIDDEN).double(), make(HIDDEN, CLASSES).double()

    def forward(self, x: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, e).relu(), e)


def steps(model: nn.Module, data: Any, owner: torch.Tensor, before_last: Callable[[], None]) -> Any:
    """The work of a rank: two steps, and the loss of the second."""
    model, part = gnnc.distribute(copy.deepcopy(model), data, owner=owner)

    def loss() -> torch.Tensor:
        return F.cross_entropy(model(part.x, part.edge_index), part.y)

    step = gnnc.train_step(loss, adam(model.parameters()))
    step(), step()
    before_last()
    return step().item()


def test_bytes_are_those_that_the_partition_says() -> None:
    """Features cross in the first layer, which have no gradient to bring back, and products in the
    second, where they are narrower, there and back."""
    data, owner = graph(NODES, EDGES), torch.arange(NODES) * 5 % RANKS
    sent = [0] * RANKS

    def work(c: Virtual) -> Any:
        return steps(Two(SAGEConv), data, owner, lambda: sent.__setitem__(c.rank, 0))

    virtual.run(RANKS, work, wrap=counting(sent))
    src, dst = data.edge_index.numpy()
    cut = edges.in_memory(src, dst, NODES)
    volume = measure.measure(cut, owner.numpy().astype(np.int32), RANKS).volume
    assert sum(sent) == volume * 8 * (WIDTH + 2 * CLASSES)


@pytest.mark.parametrize("make", [GCNConv, pytest.param(GATConv, marks=pytest.mark.long)])
def test_ghosts_are_read_when_they_are_there(make: Any) -> None:
    """However long messages take, and whatever lies in the memory that they go to."""
    data, owner = graph(NODES, EDGES), torch.arange(NODES) * 5 % RANKS

    def poisoning(inner: Virtual) -> Virtual:
        plain = inner.start

        def start(sent: Any, to: Any, received: Any, by: Any, tag: int) -> Pending:
            received[...] = np.nan
            return plain(sent, to, received, by, tag)

        inner.start = start  # type: ignore[method-assign]
        return inner

    def losses(**ways: Any) -> list[float]:
        return virtual.run(RANKS, lambda _: steps(model, data, owner, lambda: None), **ways)

    model = Two(make)
    quick = losses()
    assert losses(wrap=poisoning, link=Link(latency=0.02)) == quick
    assert np.isfinite(quick).all()


def test_without_waiting_ghosts_are_not_there() -> None:
    """The check above can fail."""
    data, owner = graph(NODES, EDGES), torch.arange(NODES) * 5 % RANKS

    class Careless:
        """What is under way when it was begun only."""

        def wait(self) -> None:
            pass

    def careless(inner: Virtual) -> Virtual:
        plain = inner.start

        def start(sent: Any, to: Any, received: Any, by: Any, tag: int) -> Any:
            received[...] = np.nan
            plain(sent, to, received, by, tag)
            return Careless()

        inner.start = start  # type: ignore[method-assign]
        return inner

    model = Two(GCNConv)
    work = lambda _: steps(model, data, owner, lambda: None)  # noqa: E731
    found = virtual.run(RANKS, work, wrap=careless, link=Link(latency=0.02))
    assert not np.isfinite(found).any()
