"""A backend without a C compiler: graphs are imported, differentiated and interpreted in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx
from xdsl.dialects.builtin import StringAttr

from gnnc.dialects.attributes import GRAD
from gnnc.dialects.meaning import run
from gnnc.dialects.signature import result_attributes
from gnnc.frontend.torch.calls.outputs import Outputs, tensor_of
from gnnc.frontend.torch.capture.capture import dynamo_compile
from gnnc.frontend.torch.compile import imported_graph
from gnnc.frontend.torch.importer import Imported, Unsupported
from gnnc.frontend.torch.importer.binding import FromTensor
from gnnc.frontend.torch.importer.values.elements import FLOATS
from gnnc.frontend.torch.importer.values.tensors import DTYPES
from gnnc.passes.inter.autodiff import autodiff
from gnnc.tests.frontend.evaluate import bound


class Interpreted:
    """A function through importer and interpreter; `torch` says what runs there instead."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.torch: list[str] = []
        self.call = dynamo_compile(function, self.backend, notice=self.torch.append)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def backend(self, graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        try:
            program = imported_graph(graph, examples)
        except Unsupported as error:
            self.torch.append(str(error))
            return graph.forward
        return _Callable(program, graph)


class _Callable:
    def __init__(self, program: Imported, graph: fx.GraphModule) -> None:
        self.program, self.graph = program, graph
        self.outputs = Outputs(program.outputs)
        self.backward = _differentiated(program)
        self.bindings = [*program.results, *(u.result for u in program.updates)]
        self.tensors = [r for r in program.rows if isinstance(r.source, FromTensor)]

    def __call__(self, *args: Any) -> Any:
        tensors = [args[r.source.placeholder] for r in self.tensors]
        try:
            found = _Call.apply(self, args, *tensors) if self.takes(args) else None
        except IndexError:
            found = None
        if found is None:  # torch takes such arguments, or has an exception of its own
            return self.graph.forward(*args)
        results = [tensor_of(b, y) for b, y in zip(self.bindings, found, strict=True)]
        count = len(self.program.results)
        for u, value in zip(self.program.updates, results[count:], strict=True):
            with torch.set_grad_enabled(u.recorded and torch.is_grad_enabled()):
                args[u.placeholder].copy_(value)
        return self.outputs.rebuild(results[:count], args)

    def takes(self, args: Sequence[Any]) -> bool:
        """Whether sizes that have to agree do."""
        try:
            self.program.check(args)
        except ValueError:
            return False
        return True


class _Call(torch.autograd.Function):
    """Rows in, rows out: those of a single row without an axis for it."""

    @staticmethod
    def forward(ctx: Any, call: _Callable, args: Sequence[Any], *tensors: Tensor) -> Any:
        rows = bound(call.program, [x.detach() if isinstance(x, Tensor) else x for x in args])
        values = run(call.program.module, "main", *rows)
        found = tuple(
            torch.from_numpy(np.array(v if b.row_axis is not None else v[0], order="C"))
            for b, v in zip(call.bindings, values, strict=True)
        )
        found = tuple(x.to(DTYPES[b.elem]) for b, x in zip(call.bindings, found, strict=True))
        ctx.call, ctx.rows = call, rows
        ctx.mark_non_differentiable(*(x for x in found if not x.is_floating_point()))
        return found

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        call = ctx.call
        given = [
            d.numpy() if b.row_axis is not None else d[None].numpy()
            for b, d in zip(call.program.results, cotangents, strict=False)  # not of updates
            if b.elem in FLOATS
        ]
        module, names = call.backward
        values = run(module, "main", *ctx.rows, *given)
        found = {n: v for n, v in zip(names, values, strict=True) if n is not None}
        gradients = [
            _as_tensor(r.source, found[r.name]) if r.name in found else None for r in call.tensors
        ]
        return None, None, *gradients


def _differentiated(program: Imported) -> Any:
    """The program with gradients among its results, and for each result the argument whose
    gradient it is."""
    if not any(r.needs_grad for r in program.rows):
        return None
    module = program.module.clone()
    func = module.body.block.first_op
    autodiff(func)
    of = [attrs.get(GRAD) for attrs in result_attributes(func)]
    return module, [a.data if isinstance(a, StringAttr) else None for a in of]


def _as_tensor(source: FromTensor, x: np.ndarray[Any, Any]) -> Tensor:
    x = x[0] if source.row_axis is None else np.moveaxis(x, 0, source.row_axis)
    return torch.from_numpy(np.array(x, order="C"))
