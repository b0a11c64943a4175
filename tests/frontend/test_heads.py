"""nn.MultiheadAttention among a constant number of rows that each row has (its neighbours, steps,
or seeds): compiled, with eager's numbers and gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gnnc

NODES, WIDTH, FEW = 20, 8, 3


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


class Among(nn.Module):
    """Attention among the rows that each row of a table names."""

    def __init__(self, queries: int = FEW, shown: bool = False, **options: Any) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, 2, **options)
        self.queries, self.options = queries, options
        self.shown = {"need_weights": shown, "average_attn_weights": shown is True}

    def forward(self, x: Tensor, table: Tensor, left_out: Tensor | None) -> Any:
        h = self.first(x)[table]
        queries = h[:, : self.queries]
        if not self.options.get("batch_first"):
            queries, h = queries.transpose(0, 1), h.transpose(0, 1)
        widths = self.options.get("kdim", WIDTH)
        y, weights = self.attn(
            queries, h[..., :widths], h[..., :widths], key_padding_mask=left_out, **self.shown
        )
        return y if weights is None else (y, weights)


MODELS: dict[str, tuple[dict[str, Any], bool]] = {
    "plain": ({}, False),
    "batch-first": ({"batch_first": True}, False),
    "masked": ({"batch_first": True}, True),
    "without-bias": ({"bias": False}, True),
    "few-queries": ({"queries": 2, "batch_first": True}, True),
    "apart": ({"kdim": 6, "vdim": 6}, False),
    "weights": ({"shown": True}, False),
    "weights-masked": ({"shown": True, "batch_first": True}, True),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MODELS)
def test_it_is_eagers(name: str) -> None:
    options, masked = MODELS[name]
    model = Among(**options)
    table = torch.randint(0, NODES, (NODES, FEW))
    left_out = torch.rand(NODES, FEW) < 0.4 if masked else None
    if left_out is not None:
        left_out[:, 0] = False
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    given, found = torch.randn(NODES, WIDTH), []
    for m in (eager, compiled):
        x = given.clone().requires_grad_()
        results = m(x, table, left_out)
        results = results if isinstance(results, tuple) else (results,)
        loss = sum((y * y.detach().cos()).sum() for y in results)
        found.append([*results, *torch.autograd.grad(loss, [x, *m.parameters()])])
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-11)
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.graphs == 1


def test_what_it_does_not_take_is_left_to_torch() -> None:
    model = Among(add_zero_attn=True)
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    args = torch.randn(NODES, WIDTH), torch.randint(0, NODES, (NODES, FEW)), None
    torch.testing.assert_close(compiled(*args), eager(*args))
    assert [r for r in gnnc.explain(compiled).fallbacks if "attention with zeros added" in r]
