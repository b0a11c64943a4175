"""Hooks on message passing, and masks of explainers, act in compiled layers as in PyG's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import FastRGCNConv, GATConv, RGCNConv, SAGEConv

import gnnc

from .models import CLASSES, EDGES, WIDTH, close, graph

RELATIONS = 3

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "sage": lambda: SAGEConv(WIDTH, CLASSES),
    "gat": lambda: GATConv(WIDTH, CLASSES, heads=2),
    "rgcn": lambda: RGCNConv(WIDTH, CLASSES, RELATIONS),
    "rgcn-blocks": lambda: FastRGCNConv(WIDTH, CLASSES, RELATIONS, num_blocks=2),
}


def doubled(values: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments with the features among them twice as large."""
    return {k: 2 * v if _is_float(v) else v for k, v in values.items()}


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


HOOKS: dict[str, Callable[..., Any]] = {
    "propagate_forward_pre": lambda layer, args: (*args[:2], doubled(args[2])),
    "propagate_forward": lambda layer, args, out: 2 * out + 1,
    "message_forward_pre": lambda layer, args: (doubled(args[0]),),
    "message_forward": lambda layer, args, out: out.tanh(),
    "aggregate_forward": lambda layer, args, out: out.sigmoid(),
    "edge_update_forward": lambda layer, args, out: out / 2,
}


def results(layer: nn.Module, name: str) -> list[Tensor]:
    """What a call gives, and the gradients of features and parameters."""
    x, edge_index = graph()
    x.requires_grad_()
    layer.zero_grad()
    kind = (torch.arange(EDGES) % RELATIONS,) if "rgcn" in name else ()
    y = layer(x, edge_index, *kind)
    y.square().sum().backward()
    return [y, x.grad, *(p.grad for p in layer.parameters())]


def equal(found: list[Tensor], wanted: list[Tensor]) -> bool:
    return all(close(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
def test_hooks_act_while_they_are_there(name: str) -> None:
    torch.manual_seed(1)
    eager = LAYERS[name]()
    compiled = gnnc.compile(copy.deepcopy(eager))
    without = results(eager, name)
    assert equal(results(compiled, name), without)
    handles = [
        getattr(layer, f"register_{hook}_hook")(f)
        for layer in (eager, compiled)
        for hook, f in HOOKS.items()
        if hook != "edge_update_forward" or name == "gat"
    ]
    hooked = results(eager, name)
    assert not close(hooked[0], without[0])
    assert equal(results(compiled, name), hooked)
    for handle in handles:
        handle.remove()
    assert equal(results(compiled, name), without)


def test_the_mask_of_an_explainer() -> None:
    torch.manual_seed(1)
    eager = SAGEConv(WIDTH, CLASSES)
    compiled = gnnc.compile(copy.deepcopy(eager))
    without = results(eager, "sage")
    assert equal(results(compiled, "sage"), without)
    mask = nn.Parameter(torch.linspace(-2, 2, EDGES))
    found = []
    for layer in (eager, compiled):
        set_masks(layer, mask, graph()[1])
        found.append([*results(layer, "sage")[:2], mask.grad])
        mask.grad = None
        clear_masks(layer)
    assert not close(found[0][0], without[0])
    assert equal(*found)
    assert equal(results(compiled, "sage"), without)


def test_other_compilers_keep_what_pyg_does() -> None:
    """PyG leaves the hooks out of what torch.compile traces; that is not ours to change."""
    torch.manual_seed(1)
    layer = SAGEConv(WIDTH, CLASSES)
    gnnc.compile(copy.deepcopy(layer))(*graph())
    without = layer(*graph())
    layer.register_propagate_forward_hook(HOOKS["propagate_forward"])
    assert close(torch.compile(layer, backend="eager")(*graph()), without)
