"""Products that users' models make of rows beside linear layers: bilinear forms, distances from
prototypes, and attention within small groups of rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnc

from .contract import check
from .users import drawn, edges, gathered


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_layers(bias: bool) -> None:
    class Paired(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pairs = nn.Bilinear(3, 3, 2, bias=bias)

        def forward(self, x: Tensor, e: Tensor) -> Any:
            stacked = torch.stack([x[e[0]], x[e[1]]], 1)
            return self.pairs(x[e[0]], x[e[1]]), self.pairs(stacked, stacked.flip(1))

    assert check(Paired(), (drawn(5, 3), edges(5, 9)), (drawn(6, 3), edges(6, 0))).fallbacks == []


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_distances_from_prototypes(p: float) -> None:
    class Distances(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            prototypes = torch.cat([drawn(3, 4, seed=2).detach(), torch.zeros(1, 4)])
            self.prototypes = nn.Parameter(prototypes.double())

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            return torch.cdist(gathered(x, e), self.prototypes, p)

    calls = [(drawn(n, 4, seed=n).double(), edges(n, 12)) for n in (5, 8)]
    assert check(Distances(), *calls).fallbacks == []


MASK = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])


@pytest.mark.parametrize("form", ["mask", "keys", "causal", "numbers"])
def test_attention_within_groups(form: str) -> None:
    def function(x: Tensor, e: Tensor, mask: Tensor) -> Tensor:
        q, k, v = gathered(x, e).view(-1, 3, 2, 6).transpose(1, 2).chunk(3, -1)
        if form == "causal":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if form == "keys":  # those of each group
            allowed = (v[:, :1, :, 0] > 0).unsqueeze(2)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    mask = MASK.double().log() if form == "numbers" else MASK
    calls = [(drawn(n, 36, seed=n).double(), edges(n, 9), mask) for n in (5, 4)]
    assert check(function, *calls).fallbacks == []


def test_dropout_of_attention() -> None:
    """Weights that are left count 1 / (1 - p) times."""

    def function(x: Tensor, p: float) -> Tensor:
        v = torch.eye(4).expand(x.size(0), 4, 4)
        q = torch.zeros(1) * x[:, :4].view(-1, 4, 1)
        return F.scaled_dot_product_attention(q, q, v, dropout_p=p)

    compiled = gnnc.compile(function)
    weights = compiled(drawn(200, 4), 0.5)
    assert gnnc.explain(compiled).fallbacks == []
    assert sorted({round(w, 5) for w in weights.flatten().tolist()}) == [0.0, 0.5]
    assert 0.4 < float((weights > 0).float().mean()) < 0.6
