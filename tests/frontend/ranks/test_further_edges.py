"""Edges of link prediction, over the nodes that the edges of messages lead to."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import WIDTH, graph

PAIRS = 70


class Links(nn.Module):
    """A score for each of some pairs of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WIDTH, 8), SAGEConv(8, 4)

    def forward(self, x: Tensor, edges: Tensor, pairs: Tensor) -> Tensor:
        z = self.second(self.first(x, edges).relu(), edges)
        return (z[pairs[0]] * z[pairs[1]]).sum(-1)


def links() -> Data:
    data = graph(30, 110)
    data.edge_label_index = torch.randint(0, 30, (2, PAIRS))
    data.edge_label = (torch.rand(PAIRS) < 0.5).double()
    data.neg_edge_index = torch.randint(0, 30, (2, 9))
    return data


def test_parts_have_the_pairs_of_the_whole() -> None:
    data = links()

    def work(_: Any) -> tuple[Tensor, Tensor]:
        _, part = gnnc.distribute(nn.Linear(1, 1), data)
        for name, numbers in (
            ("edge_index", part.e_id),
            ("edge_label_index", part.edge_label_id),
            ("neg_edge_index", part.neg_edge_id),
        ):
            src, dst = part[name]
            own, here = data[name][:, numbers], src < part.num_nodes
            assert torch.equal(part.n_id[dst], own[1])
            assert torch.equal(part.n_id[src[here]], own[0][here])
        assert torch.equal(part.edge_label, data.edge_label[part.edge_label_id])
        return part.edge_label_id, part.e_id

    every = [torch.cat(x).sort().values for x in zip(*virtual.run(3, work), strict=True)]
    assert [x.tolist() for x in every] == [list(range(PAIRS)), list(range(110))]


def test_pairs_of_nodes_that_there_are_not() -> None:
    data = links()
    data.edge_label_index[0, 3] = 30
    with pytest.raises(ValueError, match="edge_label_index: nodes are numbered 0 to 29"):
        gnnc.distribute(nn.Linear(1, 1), data)


@pytest.mark.parametrize("chunks", [1, pytest.param(2, marks=pytest.mark.long)])
def test_pairs_train_as_on_one_rank(chunks: int) -> None:
    data = links()
    torch.manual_seed(3)
    model = Links().double()

    def trained(mine: nn.Module, part: Data) -> tuple[list[float], list[Tensor]]:
        step = gnnc.train_step(
            lambda: F.binary_cross_entropy_with_logits(
                mine(part.x, part.edge_index, part.edge_label_index), part.edge_label
            ),
            torch.optim.SGD(mine.parameters(), lr=0.1),
        )
        losses = [step().item() for _ in range(3)]
        assert gnnc.explain(step).fallbacks == []
        return losses, [p.detach().clone() for p in mine.parameters()]

    losses, wanted = trained(gnnc.compile(copy.deepcopy(model)), data)

    def work(_: Any) -> tuple[list[float], list[Tensor]]:
        return trained(*gnnc.distribute(copy.deepcopy(model), data, chunks=chunks))

    for found, parameters in virtual.run(3, work):
        torch.testing.assert_close(found, losses, rtol=0, atol=1e-11)
        for a, b in zip(parameters, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
