"""The last backward of a call writes over what the call has saved for it, and no other does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import gnnc
from gnnc.runtime.cpu.pool import SMALL

NODES, WIDTH = 20_000, 32
"""Rows of so many numbers are not small, and far more than the scratch memory of threads."""
assert NODES * WIDTH * 4 >= SMALL


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (8, WIDTH, WIDTH, WIDTH, WIDTH)
        pairs = zip(widths, widths[1:], strict=False)
        self.layers = nn.ModuleList(GCNConv(a, b) for a, b in pairs)

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x, ends))
        return x


class Case:
    """A model, compiled and as it is, on one graph."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x = torch.randn(NODES, 8)
        self.ends = torch.randint(0, NODES, (2, 3 * NODES))
        self.model = Net()
        self.compiled = gnnc.compile(self.model)
        self.eager = self.gradients(self.model(self.x, self.ends))

    def call(self) -> Tensor:
        return self.compiled(self.x, self.ends)

    def gradients(self, y: Tensor, **options: Any) -> list[Tensor]:
        return list(torch.autograd.grad(y.square().sum(), list(self.model.parameters()), **options))

    def check(self, found: list[Tensor]) -> None:
        for a, b in zip(found, self.eager, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * float(b.abs().max()))

    @property
    def backward(self) -> Any:
        """The phase on the graph."""
        (program,) = gnnc.explain(self.compiled).programs
        return program.graphs()[-1].phases["backward"]


@pytest.fixture(scope="module")
def case() -> Case:
    made = Case()
    made.check(made.gradients(made.call()))
    return made


def written_over(case: Case) -> set[int]:
    """The inputs of @backward that temporaries lie in."""
    (spent,) = [s for s in case.backward.places if s]
    places = case.backward.placed(spent)
    rooms = {room for _, room, _ in places.within}
    inputs = {b.slot for b in case.backward.phase.inputs}
    return {k for room, k in places.lent if room in rooms} & inputs


def test_temporaries_lie_in_what_was_saved(case: Case) -> None:
    assert written_over(case)


def test_live_bytes_are_near_the_bound(case: Case) -> None:
    (found,) = gnnc.explain(case.compiled).footprints()
    assert found.bound <= found.live <= 1.2 * found.bound
    assert f"{found.over_bound:.2f} times" in str(gnnc.explain(case.compiled))


def test_a_graph_that_is_kept_stays(case: Case) -> None:
    y = case.call()
    case.check(case.gradients(y, retain_graph=True))
    case.check(case.gradients(y, retain_graph=True))
    case.check(case.gradients(y))
    with pytest.raises(RuntimeError, match="second time"):
        case.gradients(y)


def test_what_hooks_have_kept_stays(case: Case) -> None:
    """They get what is saved, and may give it back as it is."""
    seen: list[tuple[Tensor, Tensor]] = []

    def pack(x: Tensor) -> Tensor:
        seen.append((x, x.clone()))
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = case.call()
    case.check(case.gradients(y))
    assert seen and all(torch.equal(x, before) for x, before in seen)


def test_results_stay(case: Case) -> None:
    y = case.call()
    before = y.detach().clone()
    case.check(case.gradients(y))
    assert torch.equal(y, before)


def test_a_backward_that_failed_is_made_again(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """In torch: what was saved may be gone."""
    y = case.call()
    loss = y.square().sum()
    run = type(case.backward.phase.entry).run

    def interrupted(self: Any, *args: Any) -> None:
        run(self, *args)
        raise KeyboardInterrupt

    parameters = list(case.model.parameters())
    with monkeypatch.context() as patch:
        patch.setattr(type(case.backward.phase.entry), "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            torch.autograd.grad(loss, parameters)
    case.check(list(torch.autograd.grad(y, parameters, 2 * y.detach())))
