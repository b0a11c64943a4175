"""Every layer of gnnc.dgl.nn is DGL's: state, first values, results and gradients."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

import gnnc.dgl
import gnnc.dgl.nn
from gnnc.bench.dgl_shim import install

from .cases import CASES
from .layer_case import Case, called_with, named_tensors

pytestmark = [
    pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed"),
    pytest.mark.filterwarnings("ignore"),
]

TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-10}


@pytest.fixture(scope="module")
def dgl() -> ModuleType:
    install()
    return pytest.importorskip("dgl", reason="DGL is not installed")


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        (case, dtype)
        for case in CASES
        for dtype in TOLERANCES
        if case.doubles or dtype != torch.float64
    ],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_results_and_gradients(dgl: ModuleType, case: Case, dtype: torch.dtype):
    theirs, ours = made_alike(dgl, case, dtype)
    expected, found = run(theirs, dgl, case, dtype), run(ours, gnnc.dgl, case, dtype)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        # LabelPropagation is in float32 whatever the features are.
        of = dtype if value is None else value.dtype
        assert_close(found[name], value, TOLERANCES.get(of, 0.0), name)


def made_alike(dgl: ModuleType, case: Case, dtype: torch.dtype) -> tuple[nn.Module, nn.Module]:
    """DGL's layer and ours from one seed, then with other numbers, carried over both ways."""
    modules = []
    for library in (dgl.nn.pytorch, gnnc.dgl.nn):
        torch.manual_seed(0)
        modules.append(case.layer.made(library))
    theirs, ours = modules
    assert_same_state(ours, theirs)
    assert [p.requires_grad for p in ours.parameters()] == [
        p.requires_grad for p in theirs.parameters()
    ]
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    for module in modules:
        module.to(dtype).train(case.train)
    return theirs, ours


def assert_same_state(ours: nn.Module, theirs: nn.Module) -> None:
    found, expected = ours.state_dict(), theirs.state_dict()
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def run(layer: nn.Module, library: ModuleType, case: Case, dtype: torch.dtype) -> dict[str, Tensor]:
    """Results, gradients of inputs and parameters, and the layer's state afterwards."""
    leaves: dict[str, Tensor] = {}
    args, kwargs = called_with(library, case, dtype, leaves)
    torch.manual_seed(3)  # for dropout
    results = named_tensors(layer(*args, **kwargs))
    leaves |= {name: p for name, p in layer.named_parameters() if p.requires_grad}
    values = dict(results)
    if any(value.requires_grad for value in results.values()):
        _scalar(results).backward()
        values |= {f"gradient of {name}": leaf.grad for name, leaf in leaves.items()}
    values |= {f"{name} afterwards": value for name, value in layer.named_buffers()}
    return values


def _scalar(results: dict[str, Tensor]) -> Tensor:
    """A sum of the results in which each number has another weight."""
    draw = torch.Generator().manual_seed(11)
    weighted = (
        (value * torch.randn(value.shape, generator=draw, dtype=torch.float64).to(value)).sum()
        for value in results.values()
        if value.requires_grad
    )
    return torch.stack([value.to(torch.float64) for value in weighted]).sum()


def assert_close(found: Tensor | None, expected: Tensor | None, tolerance: float, name: str):
    """Equal up to `tolerance` of the largest number; where DGL has no gradient there is none."""
    if expected is None or found is None:
        assert (found is None or not found.any()) and (expected is None or not expected.any()), name
        return
    assert found.shape == expected.shape and found.dtype == expected.dtype, name
    assert torch.isfinite(expected).all(), f"{name} of DGL is not finite"
    scale = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
    worst = (found - expected).abs().max().item() if expected.numel() else 0.0
    assert worst <= tolerance * scale, f"{name} differs by {worst}, numbers up to {scale}"
