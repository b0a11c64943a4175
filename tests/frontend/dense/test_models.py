"""Models with dense batches, as PyG has them and as users write them: one program, which serves all
batches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.nn as G
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import aggr
from torch_geometric.utils import to_dense_batch

import gnnc
from gnnc.frontend.torch.dense import graphs

from .checked import BATCH, WIDTH, Model, check

MORE = torch.tensor([0, 1, 1, 1, 1, 1, 2, 2])
EDGES = torch.tensor([[0, 1, 3, 4, 5, 2], [1, 0, 4, 5, 6, 2]])


class OnEdges(nn.Module):
    """A layer of nodes, edges and a batch."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.layer(x, EDGES, batch)


class Pooled(nn.Module):
    """An aggregation of the nodes of each graph between two layers."""

    def __init__(self, aggregation: nn.Module) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2)
        self.aggregation = aggregation

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.last(self.aggregation(self.first(x).relu(), batch))


class Encoder(nn.Module):
    """A block of a transformer over the nodes of each graph, without PyG's layers."""

    def __init__(self, separate: bool = False, shown: bool = False) -> None:
        super().__init__()
        widths = {"kdim": WIDTH, "vdim": WIDTH} if separate else {}
        self.attn = nn.MultiheadAttention(WIDTH, 2, batch_first=True, **widths)
        self.norm, self.shown = nn.LayerNorm(WIDTH), shown

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        h, mask = to_dense_batch(x, batch)
        y, _ = self.attn(h, h, h, key_padding_mask=~mask, need_weights=self.shown)
        return self.norm(h + y)[mask]


MODELS: dict[str, Callable[[], nn.Module]] = {
    "gps": lambda: OnEdges(G.GPSConv(WIDTH, G.GCNConv(WIDTH, WIDTH), heads=2)),
    "gps-performer": lambda: OnEdges(
        G.GPSConv(WIDTH, G.GCNConv(WIDTH, WIDTH), heads=2, attn_type="performer")
    ),
    "set-transformer": lambda: Pooled(aggr.SetTransformerAggregation(WIDTH, heads=2)),
    "multiset-transformer": lambda: Pooled(aggr.GraphMultisetTransformer(WIDTH, 2, heads=2)),
    "polynormer": lambda: OnEdges(
        G.Polynormer(WIDTH, 4, 2, local_layers=1, global_layers=1, heads=2, global_dropout=0.0)
    ),
    "encoder": Encoder,
    "encoder-of-apart-weights": lambda: Encoder(separate=True),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    report = check(MODELS[name]().eval(), (BATCH, MORE, BATCH))
    assert report.fallbacks == [] and report.graphs == 1


def test_a_step_is_one_program() -> None:
    """On batches that change, beside the same steps in torch."""
    model = OnEdges(G.GPSConv(WIDTH, G.GINConv(nn.Linear(WIDTH, WIDTH)), heads=2, norm=None))
    eager = copy.deepcopy(model)
    optimizers = [torch.optim.Adam(m.parameters(), 0.01) for m in (model, eager)]
    step = gnnc.train_step(lambda x, batch: model(x, batch).square().mean(), optimizers[0])
    for batch in (BATCH, MORE, BATCH):
        x = torch.randn(len(batch), WIDTH)
        optimizers[1].zero_grad()
        loss = eager(x, batch).square().mean()
        loss.backward()
        optimizers[1].step()
        torch.testing.assert_close(step(x, batch), loss.detach())
    torch.testing.assert_close(list(model.parameters()), list(eager.parameters()))
    report = gnnc.explain(step)
    assert report.fallbacks == [] and report.graphs == 1


def test_attention_whose_weights_are_a_result_is_left_to_torch() -> None:
    report = check(Encoder(shown=True).eval(), (MORE,))
    assert [r for r in report.fallbacks if "multi_head_attention_forward" in r]


# ---------------------------------------------------------------- batches


def test_graphs_of_one_node_each() -> None:
    """torch's trace holds for more than one place: such a call runs eagerly."""
    check(Encoder().eval(), (BATCH, torch.arange(3), BATCH))
    check(Encoder().eval(), (torch.arange(3), BATCH))


def test_many_pairs_are_dense_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of the two it is, each call tells."""
    monkeypatch.setattr(graphs, "MOST_PAIRS", 3)
    whole = torch.zeros(9, dtype=torch.int64)
    report = check(Encoder().eval(), (BATCH, whole, BATCH))
    assert [r for r in report.fallbacks if "gnnc.dense_batch" in r]


def test_rows_that_are_not_in_order() -> None:
    """Such rows lie where they do in PyG: over each other."""
    model = Encoder().eval()
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    for batch in (BATCH, torch.tensor([0, 1, 0, 1, 1]), BATCH):
        x = torch.randn(len(batch), WIDTH)
        torch.testing.assert_close(compiled(x, batch), eager(x, batch))


def test_a_batch_that_is_edited() -> None:
    """Its pairs are those of what it holds by then."""
    model = Encoder().eval()
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    batch = BATCH.clone()
    for graph in (3, 1, 2):
        batch[2] = min(graph, 1)
        batch[1:3] = min(graph, 1)
        x = torch.randn(len(batch), WIDTH)
        torch.testing.assert_close(compiled(x, batch), eager(x, batch))


def test_an_edit_of_what_another_view_shows() -> None:
    def edited(x: Tensor, batch: Tensor, layer: nn.Module) -> Tensor:
        h, mask = to_dense_batch(x, batch)
        y = h * 2
        shown = y.transpose(1, 2)
        y.masked_fill_(~mask.unsqueeze(-1), 1.0)
        return shown.sum(-1)

    check(Model(edited))


def test_places_that_are_not_known_are_not_read() -> None:
    """What attention gives for the places behind the nodes is of no node: whoever sums them up has
    them from torch."""

    def read(x: Tensor, batch: Tensor, layer: nn.Module) -> Tensor:
        h, mask = to_dense_batch(x, batch)
        allowed = mask[:, None, :]
        return F.scaled_dot_product_attention(h, h, h, attn_mask=allowed).sum(1)

    report = check(Model(read), (torch.tensor([0, 0, 1, 1, 1]),))
    assert report.fallbacks != []


def test_columns_that_dropout_leaves_are_eagers_in_the_mean() -> None:
    def dropped(x: Tensor, batch: Tensor, layer: Any) -> Tensor:
        h, mask = to_dense_batch(x, batch)
        return F.dropout(h + 1, 0.25)[mask]

    model = gnnc.compile(Model(dropped))
    batch, x = torch.arange(4000) // 8, torch.zeros(4000, WIDTH)
    y = (model(x, batch) / (model.first(x).tanh() + 1)).detach()
    assert gnnc.explain(model).fallbacks == []
    assert set(y.flatten().round(decimals=9).tolist()) == {0.0, round(4 / 3, 9)}
    assert abs(float(y.mean()) - 1) < 0.02
