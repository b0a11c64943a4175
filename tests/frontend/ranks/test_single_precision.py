"""In single precision ranks are as near to the gradients in double precision as PyG's own layers
are, from parameters that are equal: a step after the other would part even equal programs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import LAYERS, arguments, graph, net

QUICK = ("gcn",)
LEAST = 1e-5
"""Of a gradient and the norm of its layer's: what a number may be off, or twice what PyG's is."""
STEPS = 3

Gradients = dict[str, Tensor]


def gradients(
    model: nn.Module, x: Tensor, edges: Sequence[Tensor], y: Tensor, mask: Tensor, of: int
) -> Gradients:
    """Those of the mean loss over `of` nodes of all ranks, of the parameters that it depends on."""
    model.zero_grad()
    loss = F.cross_entropy(model(x, *edges)[mask], y[mask], reduction="sum") / of
    loss.backward()
    found = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
    return {k: g.double().clone() for k, g in found.items()}


def states(model: nn.Module, data: Any, of: int) -> list[dict[str, Tensor]]:
    """Parameters on the way of a training in double precision."""
    model = copy.deepcopy(model)
    out: list[dict[str, Tensor]] = []
    for _ in range(STEPS):
        out.append({k: v.clone() for k, v in model.state_dict().items()})
        found = gradients(model, *arguments(model, data), of)
        with torch.no_grad():
            for k, p in model.named_parameters():
                p -= 0.1 * found.get(k, torch.zeros(()))
    return out


def single(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Loads parameters, rounded."""
    model.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in state.items()})


def without_dropout(name: str) -> nn.Module:
    """Whose masks are others in eager."""
    model = net(name)
    model.drop = nn.Identity()
    return model


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.long) for n in LAYERS]
)
def test_gradients_of_each_step(name: str) -> None:
    double, data = without_dropout(name), graph(40, 150, hub=True)
    of, halved = int(data.train_mask.sum()), data.clone()
    halved.x = data.x.float()
    every = states(double, data, of)
    rounded = [{k: v.float().to(v.dtype) for k, v in s.items()} for s in every]
    wanted: list[Gradients] = []
    pyg: list[Gradients] = []
    exact = copy.deepcopy(data)
    exact.x = halved.x.double()
    for state in rounded:
        double.load_state_dict(state)
        wanted.append(gradients(double, *arguments(double, exact), of))
        eager = copy.deepcopy(double).float()
        pyg.append(gradients(eager, *arguments(eager, halved), of))

    def work(_: Any) -> list[Gradients]:
        model = without_dropout(name).float()
        mine, part = gnnc.distribute(model, halved)
        out: list[Gradients] = []
        for state in rounded:
            single(mine, state)
            out.append(gradients(mine, *arguments(mine, part), of))
        return out

    for found in virtual.run(3, work):
        for got, want, near in zip(found, wanted, pyg, strict=True):
            check(got, want, near)


def check(got: Gradients, want: Gradients, near: Gradients) -> None:
    """Each number is off by no more than the rule allows."""
    assert got.keys() == want.keys()
    norms: dict[str, Tensor] = {}
    for k, g in want.items():
        layer = k.split(".")[0]
        norms[layer] = torch.maximum(norms.get(layer, torch.zeros(()).double()), g.norm())
    for k, g in want.items():
        scale = g.abs() + norms[k.split(".")[0]]
        own = ((near[k] - g).abs() / scale).max()
        off = ((got[k] - g).abs() / scale).max()
        assert off <= max(LEAST, 2 * own), f"{k}: {off:.1e}, PyG's is {own:.1e}"
