"""Layers whose parameters get their shapes in the first call, which runs eagerly: later ones are
compiled as if they had had them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, HeteroConv, Linear, SAGEConv

import gnnc
from gnnc.frontend.torch.capture import shapeless
from gnnc.frontend.torch.capture.capture import RunsEagerly

from .models import close, graph

Ends = dict[tuple[str, str, str], Tensor]


class OfKinds(nn.Module):
    """A layer of a heterogeneous graph, as PyG's tutorial makes it, and a head of torch's."""

    def __init__(self) -> None:
        super().__init__()
        kinds = [("a", "to", "b"), ("b", "to", "a")]
        self.layer = HeteroConv({kind: SAGEConv((-1, -1), 8) for kind in kinds})
        self.head = nn.LazyLinear(3)

    def forward(self, x: dict[str, Tensor], ends: Ends) -> Tensor:
        return self.head(self.layer(x, ends)["a"].relu())


def of_kinds() -> tuple[dict[str, Tensor], Ends]:
    edge_index = torch.randint(5, (2, 12))
    x = {"a": torch.randn(5, 3), "b": torch.randn(6, 4)}
    return x, {("a", "to", "b"): edge_index, ("b", "to", "a"): edge_index.flip(0)}


def layer() -> nn.Module:
    return GATConv(-1, 4, heads=2)


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[object, ...]]]] = {
    "kinds": (OfKinds, of_kinds),
    "layer": (layer, graph),
    "linear": (lambda: Linear(-1, 4), lambda: graph()[:1]),
    "torch": (lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU()), lambda: graph()[:1]),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_behind_the_first_are_one_program(case: str) -> None:
    make, given = CASES[case]
    args = given()
    models, outs = list[nn.Module](), list[Tensor]()
    for compiled in (False, True):
        torch.manual_seed(0)
        model = gnnc.compile(make()) if compiled else make()
        models.append(model)
        outs += [model(*args), model(*args)]
    assert all(close(outs[0], out) for out in outs)
    report = gnnc.explain(models[1])
    assert report.graphs == 1
    assert report.fallbacks == [f"runs eagerly, {shapeless.CAUSE}"]
    for model, out in zip(models, outs[1::2], strict=True):
        out.sum().backward()
    for mine, theirs in zip(models[1].parameters(), models[0].parameters(), strict=True):
        assert (mine.grad is None) is (theirs.grad is None)
        assert mine.grad is None or close(mine.grad, theirs.grad)


def test_functions_of_lazy_layers_and_steps_of_them() -> None:
    x, edge_index = graph()
    kept = nn.ModuleList([SAGEConv(-1, 8), SAGEConv(-1, 3)])

    def out(x: Tensor, edge_index: Tensor) -> Tensor:
        return kept[1](kept[0](x, edge_index).relu(), edge_index)

    compiled = gnnc.compile(out)
    optimizer = torch.optim.SGD(kept.parameters(), lr=0.1)
    step = gnnc.train_step(lambda x, edge_index: out(x, edge_index).square().mean(), optimizer)
    losses = [step(x, edge_index) for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]
    report = gnnc.explain(step)
    assert report.graphs == 1 and report.fallbacks == [f"runs eagerly, {shapeless.CAUSE}"]

    kept[0], kept[1] = SAGEConv(-1, 8), SAGEConv(-1, 3)
    first = compiled(x, edge_index)
    assert close(first, compiled(x, edge_index))
    assert gnnc.explain(compiled).graphs == 1


def test_fullgraph_refuses_the_call_that_gives_shapes() -> None:
    x, edge_index = graph()
    kept = SAGEConv(-1, 8)
    for call in (gnnc.compile(SAGEConv(-1, 8), fullgraph=True), lambda *args: kept(*args)):
        if not isinstance(call, nn.Module):
            call = gnnc.compile(call, fullgraph=True)
        with pytest.raises(RunsEagerly, match="gives parameters of lazy layers their shapes"):
            call(x, edge_index)
