"""Where gnnc itself fails, a model runs in torch with right numbers, and asks for a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

import gnnc
from gnnc.frontend import compiler
from gnnc.frontend.torch.importer import ImportCrash
from gnnc.frontend.torch.importer.rules import RULES
from gnnc.passes.driver.runner import PassCrash
from gnnc.passes.inter.reorder_linear import ReorderLinearPass

REPORT = "This is a bug in gnnc: please report it"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(4, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.conv(x, edges).relu().sum()


def broken(*args: Any) -> None:
    raise KeyError("lost")


def in_importer(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(RULES, "relu", broken)


def in_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReorderLinearPass, "apply", broken)


def op_refused_in_pass(patch: pytest.MonkeyPatch) -> None:
    def applied(*args: Any) -> None:
        raise VerifyException("rows of no set")

    patch.setattr(ReorderLinearPass, "apply", applied)


def op_refused_in_printer(patch: pytest.MonkeyPatch) -> None:
    def printed(*args: Any) -> None:
        raise VerifyException("rows of no set")

    patch.setattr(compiler, "artifact_of", printed)


def left_wrong_by_importer(patch: pytest.MonkeyPatch) -> None:
    """The importer's module reads a value before it is there."""
    plain = compiler.run_passes

    def run_passes(module: ModuleOp, *rest: Any) -> None:
        (func,) = module.body.ops
        assert isinstance(func, FuncOp)
        last = func.body.block.last_op
        assert last is not None and last.prev_op is not None
        moved = last.prev_op
        moved.detach()
        func.body.block.insert_ops_before([moved], [*func.body.block.ops][0])
        plain(module, *rest)

    patch.setattr(compiler, "run_passes", run_passes)


def in_printer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiler, "artifact_of", broken)


def in_c(patch: pytest.MonkeyPatch) -> None:
    artifact = compiler.artifact_of
    patch.setattr(compiler, "artifact_of", lambda *args: artifact(*args).replace("void", "vold"))


@pytest.fixture(autouse=True)
def nothing_cached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(tmp_path)  # for reproducers


@pytest.mark.parametrize(
    "fails",
    [
        *(in_importer, left_wrong_by_importer, in_pass, op_refused_in_pass),
        *(in_printer, op_refused_in_printer, in_c),
    ],
)
def test_runs_in_torch(
    fails: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails(monkeypatch)
    torch.manual_seed(0)
    model = Model()
    x, edges = torch.randn(6, 4), torch.randint(0, 6, (2, 20))
    want = torch.autograd.grad(model(x, edges), list(model.parameters()))
    gnnc.compile(model)
    got = torch.autograd.grad(model(x, edges), list(model.parameters()))
    torch.testing.assert_close(got, want)
    told = gnnc.explain(model).fallbacks
    assert any(REPORT in text for text in told)
    assert REPORT in caplog.text
    assert not any("cannot be compiled" in text for text in told), "the user's mistake it is not"
    if fails is in_importer:
        assert any(text.startswith("relu: ") and "KeyError: 'lost'" in text for text in told)
        assert gnnc.explain(model).kernels, "the convolution is compiled"


@pytest.mark.parametrize(
    "fails, error",
    [(in_importer, ImportCrash), (in_pass, PassCrash), (op_refused_in_pass, PassCrash)],
)
def test_fullgraph_raises(
    fails: Callable[[pytest.MonkeyPatch], None],
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fails(monkeypatch)
    model = gnnc.compile(Model(), fullgraph=True)
    with pytest.raises(error, match="KeyError: 'lost'|VerifyException: rows of no set"):
        model(torch.randn(6, 4), torch.randint(0, 6, (2, 20)))


def test_a_step_trains_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    in_pass(monkeypatch)
    model = Model()
    before = model.conv.lin.weight.detach().clone()
    step = gnnc.train_step(model, torch.optim.SGD(model.parameters(), 0.1))
    x, edges = torch.randn(6, 4), torch.randint(0, 6, (2, 20))
    step(x, edges)
    assert not torch.equal(model.conv.lin.weight, before)
    assert any(REPORT in text or "raised KeyError" in text for text in gnnc.explain(step).fallbacks)
