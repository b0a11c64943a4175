"""What code asks of sizes over ranks: answers are of the whole graph, or a call is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as G

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import CLASSES, WIDTH, graph


class Asking(nn.Module):
    """A layer whose features depend on what is asked."""

    def __init__(self, asked: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.asked, self.layer = asked, G.SAGEConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.layer(self.asked(x, edges), edges)


def many_nodes(x: Tensor, edges: Tensor) -> Tensor:
    return x * 2 if x.size(0) > 12 else x * 3


def many_edges(x: Tensor, edges: Tensor) -> Tensor:
    return x * 2 if edges.size(1) > 40 else x * 3


def squeezed(x: Tensor, edges: Tensor) -> Tensor:
    return x * x.sum(1, keepdim=True).squeeze().unsqueeze(-1)


def on_ranks(asked: Callable[[Tensor, Tensor], Tensor], ranks: int, *sizes: tuple[int, int]) -> Any:
    """Compares one module on graphs of some nodes and edges, one after the other, with eager."""
    graphs = [graph(*size) for size in sizes]
    torch.manual_seed(1)
    model = Asking(asked).double()
    models = [copy.deepcopy(model) for _ in range(ranks)]
    wanted = [model(data.x, data.edge_index).detach() for data in graphs]

    def work(c: Any) -> list[tuple[Tensor, Tensor]]:
        found = [gnnc.distribute(models[c.rank], data) for data in graphs]
        (mine, _), parts = found[0], [part for _, part in found]
        with torch.no_grad():
            return [(part.n_id, mine(part.x, part.edge_index)) for part in parts]

    for found in virtual.run(ranks, work):
        for (n_id, out), y in zip(found, wanted, strict=True):
            torch.testing.assert_close(out, y[n_id], rtol=1e-11, atol=1e-11)


def test_answers_that_are_those_of_the_whole_graph() -> None:
    on_ranks(many_nodes, 2, (40, 90), (10, 30))
    on_ranks(squeezed, 2, (20, 60))


@pytest.mark.parametrize(
    ("asked", "sizes", "message"),
    [
        (many_nodes, [(20, 60)], r"finds .*size\(0\) <= 12 .* not so in the whole .* is 20\)"),
        (many_edges, [(20, 60)], r"finds .*size\(1\) <= 40 .* not so in the whole .* is 60\)"),
        (squeezed, [(3, 8)], r"finds Eq\(.*size\(0\), 1\) .* name the dimension in squeeze"),
        # the program of the first graph would serve the second, by the rows of a rank
        (many_nodes, [(10, 30), (20, 60)], r"finds .*size\(0\) <= 12 .* is 20\)"),
    ],
)
def test_answers_of_one_rank_are_refused(
    asked: Callable[[Tensor, Tensor], Tensor], sizes: list[tuple[int, int]], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        on_ranks(asked, 3, *sizes)


def test_a_rank_without_rows_says_what_it_was_asked() -> None:
    """What it finds has no program, and is another thing in the whole graph."""
    data, model = graph(3, 12), G.HypergraphConv(WIDTH, CLASSES).double()

    def work(_: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, owner=[0, 0, 1])
        mine(part.x, part.edge_index)

    with pytest.raises(Exception, match=r"finds .*size\(1\) <= 0 .* not so in the whole graph"):
        virtual.run(2, work)
