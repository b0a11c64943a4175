"""Every model of the zoo: the imported program, interpreted, gives what torch gives."""

import copy
import logging
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import Tensor, fx, nn  # noqa: E402

from gnnc.dialects.meaning.check import parse_module  # noqa: E402
from gnnc.frontend.torch.capture.capture import dynamo_compile  # noqa: E402
from gnnc.frontend.torch.importer import Imported, Unsupported, import_graph  # noqa: E402
from gnnc.tests.frontend.evaluate import evaluate  # noqa: E402

from . import zoo  # noqa: E402

SIZES = ((20, 20), (20, 64), (27, 80))
TRAINED = ("GCN2_bn", "GCN2_pygbn", "GCN2_ln", "GAT", "RGCN", "UserMP", "PyG_GAT_model", "fn_plain")


def equal(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.allclose(a.double(), b.double(), atol=1e-4, rtol=1e-4, equal_nan=True)


class Recorder:
    """A backend that runs each graph in torch, and its program beside it."""

    def __init__(self) -> None:
        self.programs: list[Imported] = []
        self.refused: list[str] = []
        self.wrong: list[str] = []

    def __call__(self, gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        try:
            program = import_graph(gm)
        except Unsupported as error:
            self.refused.append(str(error))
            return gm.forward
        self.programs.append(program)

        def run(*args: Any) -> Any:
            before = [a.detach().clone() if isinstance(a, Tensor) else a for a in args]
            out = gm.forward(*args)
            found, updates = evaluate(program, before)
            pairs = zip(zoo.tensors(out), zoo.tensors(found), strict=True)
            if not all(equal(a.detach(), b) for a, b in pairs):
                self.wrong.append("outputs")
            for i, (a, b) in enumerate(zip(args, before, strict=True)):
                if isinstance(a, Tensor) and not equal(a.detach(), updates.get(i, b)):
                    self.wrong.append(f"argument {program.placeholders[i]}")
            return out

        return run


def record(make: zoo.Make, arguments: zoo.Arguments, train: bool = False) -> Recorder:
    """Calls a model on several graphs through a recorder."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    recorder = Recorder()
    model = make()
    if isinstance(model, nn.Module):
        model.train(train)
    sizes = SIZES[:1] if getattr(model, "cached", False) else SIZES
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch's sparse CSR, Dynamo's graph breaks
        call = dynamo_compile(model, recorder, notice=recorder.refused.append)
        for seed, (nodes, edges) in enumerate(sizes):
            args = arguments(nodes, edges, seed + 1)
            expected = copy.deepcopy(model)(*args)
            found = call(*args)
            if not all(equal(a, b) for a, b in zip(zoo.tensors(expected), zoo.tensors(found))):
                recorder.wrong.append("the call itself")
    return recorder


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", zoo.ZOO)
def test_zoo(name: str):
    r = record(*zoo.ZOO[name])
    assert not r.wrong
    if name in zoo.EAGER:
        assert any(zoo.EAGER[name] in reason for reason in r.refused), r.refused
    else:
        assert not r.refused
        assert len(r.programs) == 1


def test_at_least_51_models_are_one_program():
    """test_zoo holds each model that is not listed as eager to be one program."""
    assert len(zoo.ZOO) == 54
    assert len(set(zoo.ZOO) - set(zoo.EAGER)) >= 51


@pytest.mark.parametrize("name", zoo.MORE)
def test_user_functions(name: str):
    r = record(*zoo.MORE[name])
    assert not r.wrong
    if name in zoo.EAGER:
        assert any(zoo.EAGER[name] in reason for reason in r.refused), r.refused
    else:
        assert not r.refused
        assert len(r.programs) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TRAINED)
def test_training_mode(name: str):
    r = record(*zoo.ZOO[name], train=True)
    assert not r.wrong and not r.refused
    if "bn" in name:
        updated = {u.argument for p in r.programs for u in p.updates}
        assert any("running_mean" in u for u in updated)
        assert any("num_batches_tracked" in u for u in updated)


@pytest.mark.parametrize("name", ("GCNConv", "GAT", "RGCN", "HGT", "pooled", "edits", "UserMP"))
def test_programs_print_and_parse(name: str):
    (program,) = record(*(zoo.ZOO | zoo.MORE)[name]).programs
    text = str(program.module)
    assert str(parse_module(text)) == text
