"""A model asks for a target, or the environment does for all that ask for none."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, SAGEConv

import gnnc
from gnnc.passes.targets import DEFAULT, TARGETS
from gnnc.runtime.program import ON_HOST

RUN_HERE = [name for name, record in TARGETS.items() if record.runtime in ON_HOST]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GATConv(5, 3, heads=2), SAGEConv(6, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.second(nn.functional.gelu(self.first(x, edges)), edges)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", RUN_HERE)
def test_a_model_on_every_target(target: str) -> None:
    torch.manual_seed(0)
    model = Model()
    x, edges = torch.randn(12, 5), torch.randint(0, 12, (2, 60))
    want = torch.autograd.grad(model(x, edges).square().sum(), list(model.parameters()))
    compiled = gnnc.compile(copy.deepcopy(model), target=target)
    got = torch.autograd.grad(compiled(x, edges).square().sum(), list(compiled.parameters()))
    torch.testing.assert_close(got, want)
    assert gnnc.explain(compiled).fallbacks == []


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNC_TARGET", raising=False)
    assert gnnc.Options().target == DEFAULT
    monkeypatch.setenv("GNNC_TARGET", "reference")
    assert gnnc.Options().target == "reference"
    assert gnnc.Options(target="openmp").target == "openmp"


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(ValueError, match="no target 'abacus': the targets are openmp, cuda"):
        gnnc.compile(Model(), target="abacus")
