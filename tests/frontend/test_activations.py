"""Activations give torch's values and gradients, at their kinks too."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnc

from .equality import assert_interchangeable
from .function_checks import check, drawn
from .layer_checks import perturbed

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        f.__name__: f
        for f in (F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.gelu, F.silu, F.mish)
        + (F.hardsigmoid, F.hardswish, F.hardtanh, F.hardshrink, F.softshrink, F.tanhshrink)
        + (F.softsign, F.softplus, F.logsigmoid, F.glu)
    },
    "celu-steep": lambda x: F.celu(x, 0.3),
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardtanh-wide": lambda x: F.hardtanh(x, -3.0, 6.0),
    "softshrink-wide": lambda x: F.softshrink(x, 3.0),
    "hardshrink-wide": lambda x: F.hardshrink(x, 3.0),
    "rrelu": lambda x: F.rrelu(x, 0.1, 0.4),
    "softplus-steep": lambda x: F.softplus(x, 2.0, 3.0),
    "threshold": lambda x: F.threshold(x, 0.5, -7.0),
    "glu-rows": lambda x: F.glu(x.view(-1, 2, 3), 1),
    "ceil": lambda x: x.ceil() * x,
    "isfinite": lambda x: torch.where((1 / x).isfinite(), x, -1.0),
}

ROUNDED = ("hardsigmoid", "celu-steep")
"""torch's derivatives of these have a constant that is a float32 in both precisions."""


def inputs() -> Tensor:
    """Random numbers, and those where some activation has a kink."""
    x = drawn(17, 6)
    with torch.no_grad():
        x[0] = torch.tensor([0.0, 3.0, -3.0, 6.0, 0.5, -0.5])
        x[1] = torch.tensor([-0.0, 1.0, -1.0, 30.0, -30.0, 1.5])
    return x


@pytest.mark.parametrize("part", range(4))
def test_equal_to_torch(part: int) -> None:
    several = [f for name, f in ACTIVATIONS.items() if name not in ROUNDED][part::4]
    check(lambda x, w: [f(y) for f in several for y in (x, x @ w)], inputs(), drawn(6, 6, seed=3))


def test_equal_to_torch_but_for_its_constants() -> None:
    several = [ACTIVATIONS[name] for name in ROUNDED]
    args = inputs(), drawn(6, 6, seed=3)
    check(lambda x, w: [f(y) for f in several for y in (x, x @ w)], *args, relative=1e-6)


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_slopes_far_from_zero(name: str) -> None:
    """There the value is all but constant, and tells nothing of the slope."""
    x = torch.linspace(-30, -5, 40, requires_grad=True)
    slopes = [
        torch.autograd.grad(f(x).sum(), x)[0]
        for f in (gnnc.compile(lambda x: ACTIVATIONS[name](x)), ACTIVATIONS[name])
    ]
    assert torch.allclose(*slopes, rtol=1e-5, atol=0)


def test_no_number_stays_none() -> None:
    several = [f for name, f in ACTIVATIONS.items() if name not in ("ceil", "isfinite")]
    x = torch.full((3, 6), torch.nan)
    assert all(f(x).isnan().all() for f in several)
    compiled = gnnc.compile(lambda x: [f(x) for f in several])
    assert all(y.isnan().all() for y in compiled(x))
    assert gnnc.explain(compiled).fallbacks == []


def test_a_function_without_a_rule_for_its_argument_runs_in_torch() -> None:
    compiled = gnnc.compile(lambda x: F.celu(x, -0.5) + 1)
    x = torch.randn(4, 6)
    assert torch.equal(compiled(x), F.celu(x, -0.5) + 1)
    assert "celu with alpha -0.5, which is not positive" in str(gnnc.explain(compiled))


class Slopes(nn.Module):
    """Learned slopes: one, one a column, and one for each position of the second dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.each = nn.PReLU(), nn.PReLU(6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.one(x), self.each(x), self.each(x.view(-1, 6, 1).expand(-1, 6, 2))


def test_learned_slopes() -> None:
    eager = perturbed(Slopes).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    assert assert_interchangeable(eager, compiled, (inputs(),))
    assert gnnc.explain(compiled).fallbacks == []
