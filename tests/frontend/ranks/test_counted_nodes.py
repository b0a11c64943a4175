"""Nodes that are counted otherwise than by rows: with numbers that follow from sizes or edges, and
those that count too many."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.utils import add_self_loops, degree

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import RELATIONS, WIDTH, graph

NODES = 12


class Counted(nn.Module):
    """A layer, and what some edges give."""

    def __init__(self, of_edges: Callable[..., Tensor]) -> None:
        super().__init__()
        self.layer, self.of_edges = nn.Linear(WIDTH, WIDTH), of_edges

    def forward(self, x: Tensor, edges: Tensor, *numbers: int) -> Tensor:
        return self.layer(x) + self.of_edges(x, edges, *numbers)


def sums(x: Tensor, edges: Tensor, count: Any) -> Tensor:
    """Those of so many groups, which are the second ends of edges."""
    return x.new_zeros(count, WIDTH).index_add(0, edges[1], x[edges[0]])


def more_loops(x: Tensor, edges: Tensor, further: int) -> Tensor:
    """With loops of more nodes than the last one that has an edge."""
    src, dst = add_self_loops(edges, num_nodes=int(edges.max()) + 1 + further)[0]
    return torch.zeros_like(x).index_add(0, dst, x[src])


SAME: dict[str, Callable[..., Tensor]] = {
    "one-end": lambda x, edges: degree(edges[0], x.size(0), dtype=x.dtype)[:, None],
    "rows-of-one-end": lambda x, edges: x[edges[0]].square().mean(0),
    "more-than-rows": lambda x, edges: sums(x, edges, x.size(0) + 3).square().mean(),
    "constant": lambda x, edges: sums(x, edges, 40).square().mean(),
    "by-edges": lambda x, edges: sums(x, edges, int(edges.max()) + 1).square().mean(),
    "loops-of-all": lambda x, edges: more_loops(x, edges, 1),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("ranks", [2, pytest.param(14, marks=pytest.mark.long)])
def test_it_is_what_torch_gives(name: str, ranks: int) -> None:
    """The last node has no edge."""
    torch.manual_seed(0)
    data, model = graph(NODES, 3 * NODES), Counted(SAME[name]).double()
    data.edge_index[0, 0] = NODES - 2
    want, weights = model(data.x, data.edge_index), torch.randn(NODES, WIDTH, dtype=torch.float64)
    wanted = torch.autograd.grad((want * weights).sum(), list(model.parameters()))

    def work(_: object) -> Any:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        got = mine(part.x, part.edge_index)
        (got * weights[part.n_id]).sum().backward()
        return part.n_id, got.detach(), [p.grad for p in mine.parameters()]

    for rows, got, grads in virtual.run(ranks, work):
        torch.testing.assert_close(got, want[rows].detach())
        torch.testing.assert_close(grads, list(wanted))


def test_types_of_edges_are_no_ends() -> None:
    """They lead to rows that all ranks have, as no end of an edge does that is cut."""

    class Typed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(torch.randn(RELATIONS, WIDTH, dtype=torch.float64))

        def forward(self, x: Tensor, edges: Tensor, types: Tensor) -> Tensor:
            messages = x[edges[0]] * self.weights[types]
            return torch.zeros_like(x).index_add(0, edges[1], messages)

    torch.manual_seed(0)
    data, model = graph(NODES, 3 * NODES), Typed()
    want = model(data.x, data.edge_index, data.edge_type).detach()

    def work(_: object) -> Any:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        return part.n_id, mine(part.x, part.edge_index, part.edge_type).detach()

    for rows, got in virtual.run(2, work):
        torch.testing.assert_close(got, want[rows])


def refused(model: nn.Module, error: type[Exception], ranks: int, *numbers: Any) -> list[str]:
    """What each rank says to numbers, of the part or of all."""
    data = graph(NODES, 3 * NODES)

    def work(_: object) -> str:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        with pytest.raises(error) as raised:
            mine(part.x, part.edge_index, *numbers)
        return str(raised.value)

    return virtual.run(ranks, work)


def test_more_nodes_than_there_are() -> None:
    """All ranks raise what one process does, those without a node too."""
    model = Counted(lambda x, edges: more_loops(x, edges, 5)).double()
    for said in refused(model, IndexError, 14):
        assert "last_node[0] is 15, but it must be between 0 and 11" in said


@pytest.mark.parametrize(("factor", "said"), [(1, "numbers_0 is 9"), (2, "2*numbers_0 is 18")])
def test_numbers_that_do_not_count_rows(factor: int, said: str) -> None:
    model = Counted(lambda x, edges, n: sums(x, edges, factor * n).square().mean()).double()
    for message in refused(model, ValueError, 2, 9):
        assert f"{said}, and counts nodes, of which this rank has" in message
