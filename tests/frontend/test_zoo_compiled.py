"""Every model of the zoo that imports as one program runs as generated C and trains like eager PyG.

Attention, relational and heterogeneous models are in it, so that what later work makes fast is
right from the start.
"""

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import Tensor, nn  # noqa: E402

import gnnc  # noqa: E402

from . import zoo  # noqa: E402

QUICK = (  # layers alone have tests of their own
    "GCNConv_ew",
    "SAGE_max",
    "PNA",
    "to_hetero_sage",
    "GCN2_bn",
    "UserMP",
    "UserAttn",
    "fn_rel_loop",
)
COMPILED = [n for n in zoo.ZOO if n not in zoo.EAGER]
SIZES = ((20, 64), (64, 64), (27, 9))


def cases() -> list[Any]:
    """A cross-section always, the others among the long tests."""
    mark = pytest.mark.long
    return [pytest.param(n, marks=[] if n in QUICK else [mark]) for n in COMPILED]


def loss_of(outputs: list[Tensor]) -> Tensor:
    """A scalar whose gradient differs from entry to entry."""
    return torch.stack([(y * torch.cos(3 * y.detach())).sum() for y in outputs]).sum()


def agree(got: Tensor, want: Tensor, scale: float, what: str) -> None:
    error = (got - want).abs().max().item() if want.numel() else 0.0
    assert error <= 2e-4 * max(scale, 1.0), f"{what}: {error} of {scale}"


@pytest.mark.parametrize("name", cases())
def test_compiled_model_equals_eager(name: str) -> None:
    make, arguments = zoo.ZOO[name]
    torch.manual_seed(0)
    eager = make()
    torch.manual_seed(0)
    compiled = make()
    is_module = isinstance(eager, nn.Module)
    if is_module:
        compiled.load_state_dict(eager.state_dict())
        eager.eval(), compiled.eval()
    compiled = gnnc.compile(compiled)
    for nodes, edges in SIZES:
        args = arguments(nodes, edges, 1)
        want = [t for t in zoo.tensors(eager(*args)) if t.is_floating_point()]
        got = [t for t in zoo.tensors(compiled(*copy.deepcopy(args))) if t.is_floating_point()]
        assert len(got) == len(want)
        for k, (y, z) in enumerate(zip(got, want, strict=True)):
            assert y.shape == z.shape
            agree(y, z, z.abs().max().item() if z.numel() else 0.0, f"{name}, output {k}")
        if not is_module or not any(y.requires_grad for y in want):
            continue
        eager.zero_grad(), compiled.zero_grad()
        loss_of(want).backward(), loss_of(got).backward()
        scale = max(p.grad.abs().max().item() for p in eager.parameters() if p.grad is not None)
        for (key, p), q in zip(eager.named_parameters(), compiled.parameters(), strict=True):
            got_grad, want_grad = (
                torch.zeros_like(t) if t.grad is None else t.grad for t in (q, p)
            )
            agree(got_grad, want_grad, scale, key)
    told = gnnc.explain(compiled)
    assert told.fallbacks == [] and told.kernels
