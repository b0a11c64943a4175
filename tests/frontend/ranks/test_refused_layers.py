"""What has no program over ranks is refused on all of them, with what it is and where."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as G
from torch_geometric.utils import coalesce, dropout_edge, to_undirected

import gnnc
from gnnc.frontend.torch.importer import Unsupported
from gnnc.runtime.ranks import virtual

from .cut_models import WIDTH, graph


class Sequences(nn.Module):
    """An LSTM over what layers give for a node."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.jump = G.GCNConv(WIDTH, 4), G.JumpingKnowledge("lstm", 4, 2)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = self.layer(x, edges)
        return self.jump([x, x.relu()])


class Changed(nn.Module):
    """A layer on edges that are made of those of the graph."""

    def __init__(self, change: Callable[[Tensor, int], Tensor]) -> None:
        super().__init__()
        self.layer, self.change = G.GCNConv(WIDTH, 4), change

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.layer(x, self.change(edges, x.size(0)))


def both_dropped(edges: Tensor, _: int) -> Tensor:
    return dropout_edge(edges, 0.3, force_undirected=True)[0]


def own_loops(edges: Tensor, n: int) -> Tensor:
    loops = torch.arange(n + 5)
    return torch.cat([edges, torch.stack([loops, loops])], 1)


class Centred(nn.Module):
    """Rows without that of the first node."""

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return x - x[0]


ONE_PROGRAM = "over several ranks a call is one program, .* Dynamo cannot trace this call: "

MODELS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "lstm": (Sequences, "lstm: a recurrent layer over sequences of more than one step"),
    "both-directions-dropped": (
        lambda: Changed(both_dropped),
        "random numbers that torch draws .* edges by dropout_edge without force_undirected",
    ),
    "undirected": (
        lambda: Changed(lambda edges, n: to_undirected(edges, num_nodes=n)),
        "edges in order and without duplicates",
    ),
    "coalesced": (
        lambda: Changed(lambda edges, n: coalesce(edges, num_nodes=n)),
        "edges in order and without duplicates",
    ),
    "median": (
        lambda: G.SAGEConv(WIDTH, 4, aggr="median"),
        "a view of memory that is not in the order of rows",
    ),
    "transformer-of-all": (
        lambda: G.GPSConv(WIDTH, None, heads=2),
        "multi_head_attention_forward: attention of a set's rows to each other",
    ),
    "rows-by-number": (lambda: G.LINKX(20, WIDTH, 4, 3, 2), ONE_PROGRAM),
    "self-supervised": (
        lambda: G.SuperGATConv(WIDTH, 4),
        f"{ONE_PROGRAM}Data dependent operator",
    ),
    "loops-of-more-nodes": (
        lambda: Changed(own_loops),
        r"loops are of as many nodes as x.size\(0\) is",
    ),
    "first-row": (
        Centred,
        "over several ranks rows .* are taken by their places, .* choose them by a mask",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_they_are_refused(name: str) -> None:
    torch.manual_seed(0)
    make, message = MODELS[name]
    data, model = graph(20, 60), make().double()

    def work(_: object) -> str:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        with pytest.raises(Unsupported, match=message) as raised:
            mine(part.x, part.edge_index)
        return str(raised.value)

    for said in virtual.run(2, work):
        assert ".py:" in said
