"""Gradients of imported programs: autodiff and the interpreter against torch's autograd."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import Tensor, fx, nn  # noqa: E402
from xdsl.dialects.builtin import StringAttr  # noqa: E402
from xdsl.dialects.func import FuncOp  # noqa: E402

from gnnc.dialects.attributes import GRAD  # noqa: E402
from gnnc.dialects.meaning import run  # noqa: E402
from gnnc.dialects.signature import result_attributes  # noqa: E402
from gnnc.frontend.torch.capture.capture import dynamo_compile  # noqa: E402
from gnnc.frontend.torch.importer import Imported, import_graph  # noqa: E402
from gnnc.frontend.torch.importer.binding import FromTensor, Result, ResultBinding  # noqa: E402
from gnnc.passes.inter.autodiff import autodiff  # noqa: E402
from gnnc.tests.frontend.evaluate import bound  # noqa: E402

from . import zoo  # noqa: E402

MODELS = [n for n in {**zoo.ZOO, **zoo.MORE} if n not in zoo.EAGER]


def as_rows(b: ResultBinding, x: Tensor) -> np.ndarray[Any, Any]:
    """A tensor shaped as a result, as the rows that the program gives for it."""
    if b.row_axis is None:
        return x[None].numpy()
    if b.merge == 1:
        return x.movedim(b.row_axis, 0).numpy()
    apart = x.unflatten(b.row_axis, (-1, b.merge) if b.within else (b.merge, -1))
    return apart.movedim(b.row_axis + (not b.within), 0).numpy()


def differences(program: Imported, gm: fx.GraphModule, args: tuple[Any, ...]) -> list[str]:
    """The arguments whose gradients are not torch's, for random cotangents."""
    own = [
        a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a
        for a in args
    ]
    rows = bound(program, [a.detach().clone() if isinstance(a, Tensor) else a for a in args])
    with torch.enable_grad():
        outputs = gm.forward(*own)
    results = [x for x, o in zip(outputs, program.outputs, strict=True) if isinstance(o, Result)]
    torch.manual_seed(7)
    floats = [(x, b) for x, b in zip(results, program.results, strict=True) if b.elem[0] == "f"]
    wanted_of = [torch.randn_like(x) * x.requires_grad for x, _ in floats]
    given = [as_rows(b, c.detach()) for (_, b), c in zip(floats, wanted_of, strict=True)]
    outputs = [x for x, _ in floats if x.requires_grad]
    cotangents = [c for (x, _), c in zip(floats, wanted_of, strict=True) if x.requires_grad]
    module = program.module.clone()
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    autodiff(func)
    values = run(module, "main", *rows, *given)
    found = {
        of.data: g
        for attrs, g in zip(result_attributes(func), values, strict=True)
        if isinstance(of := attrs.get(GRAD), StringAttr)
    }
    wrong = []
    for r in (r for r in program.rows if r.needs_grad):
        assert isinstance(r.source, FromTensor)
        leaf, axis = own[r.source.placeholder], r.source.row_axis
        (expected,) = torch.autograd.grad(
            outputs, leaf, cotangents, retain_graph=True, allow_unused=True
        )
        if expected is None or r.name not in found:
            if expected is not None or r.name in found:
                wrong.append(f"{r.name} has a gradient here only, or in torch only")
            continue
        rows_of = expected[None] if axis is None else expected.movedim(axis, 0)
        if not np.allclose(found[r.name], rows_of.numpy(), atol=2e-4, rtol=2e-4):
            wrong.append(r.name)
    return wrong


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MODELS)
def test_gradients(name: str):
    make, arguments = {**zoo.ZOO, **zoo.MORE}[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = make()
    if isinstance(model, nn.Module):
        model.train()
    wrong: list[str] = []
    compared = 0

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        program = import_graph(gm)

        def call(*args: Any) -> Any:
            nonlocal compared
            wrong.extend(differences(program, gm, args))
            compared += 1
            return gm.forward(*args)

        return call

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = dynamo_compile(model, backend, fullgraph=True)
        args = arguments(11, 37, 3)
        for t in zoo.tensors(args):
            if type(t) is Tensor and t.is_floating_point() and t.layout is torch.strided:
                t.requires_grad_()
        compiled(*args)
    assert compared == 1
    assert not wrong
