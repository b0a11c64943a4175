"""What Dynamo traces in place of functions of graphs while one of our captures runs: in place of
DGL's own the functions of the same name in `gnnc.dgl`, and in place of those of `gnnc.dgl` whose
meaning would be hard to read back a leaf."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.variables import builtin

from ..active import clone, is_active
from ..replaced_methods import replace
from . import (
    graphs,
    leaves,  # noqa: F401
)

OURS = "gnnc.dgl"


def install() -> None:
    """Registers what is to be traced once DGL or `gnnc.dgl` has been imported; before that there is
    nothing to do."""
    real = sys.modules.get("dgl")
    if real is not None and real is not sys.modules.get(OURS) and hasattr(real, "DGLGraph"):
        _install_functions()
    if OURS in sys.modules:
        _install_leaves()


@functools.cache
def _install_functions() -> None:
    graphs.install()
    for original, ours in _pairs(sys.modules["dgl"], importlib.import_module(OURS)):
        _register(original, ours)
    _patch_layers()


def _patch_layers() -> None:
    """The linear layer of types, of which DGL's blocks are rows of edges x blocks, and its rows in
    order one of its C kernels: one rule serves both as `gnnc.dgl` writes them."""
    theirs = importlib.import_module("dgl.nn.pytorch.linear").TypedLinear
    ours = importlib.import_module(f"{OURS}.nn.pytorch.linear").TypedLinear.forward
    plain = theirs.forward

    def forward(self: Any, x: Tensor, x_type: Tensor, sorted_by_type: bool = False) -> Tensor:
        if is_active() and torch.compiler.is_compiling():
            return ours(self, x, x_type, sorted_by_type)
        return plain(self, x, x_type, sorted_by_type)

    replace(theirs, "forward", forward)
    _patch_edge_weights()


def _patch_edge_weights() -> None:
    """The norm of weights, whose check of them would end the trace."""
    theirs = importlib.import_module("dgl.nn.pytorch.conv.graphconv").EdgeWeightNorm
    ours = importlib.import_module(f"{OURS}.nn.pytorch.conv.graphconv")
    plain, raised = theirs.forward, sys.modules["dgl"].DGLError
    name = f"{raised.__module__}.{raised.__qualname__}"

    def forward(self: Any, graph: Any, edge_weight: Tensor) -> Tensor:
        tracing = is_active() and torch.compiler.is_compiling()
        if not tracing or edge_weight.dim() > 1 or self._norm == "none":
            return plain(self, graph, edge_weight)
        if self._norm == "both":
            bad = (edge_weight <= 0).any()
            torch.ops.gnnc.require(bad.logical_not(), ours.NOT_POSITIVE, name)
        return ours.normalized(graph, edge_weight, self._norm, self._eps)

    replace(theirs, "forward", forward)


@functools.cache
def _install_leaves() -> None:
    graphs.install_ours()
    _register(importlib.import_module(f"{OURS}.reduce").softmax_by, _softmax_by)
    _register(importlib.import_module(f"{OURS}.segments").gather_mm, _gather_mm)
    _register(importlib.import_module(f"{OURS}.one_node").one_node, _one_node)
    _register(importlib.import_module(f"{OURS}.nn.pytorch.helpers").refuse_values, _refuse)
    _keep_the_order_of_products()
    _know_products_of_objects()
    _keep_what_is_edited(importlib.import_module(f"{OURS}.traced_values").Traced)


def _keep_the_order_of_products() -> None:
    """Of an object with `__torch_function__` and a tensor, Dynamo gives `object @ tensor` to the
    tensor's operator with the operands swapped, but has no operator for that, and takes `@`."""
    if hasattr(builtin, "populate_builtin_to_tensor_fn_map"):
        builtin.populate_builtin_to_tensor_fn_map()
        swapped = builtin.BUILTIN_TO_TENSOR_RFN_MAP
        swapped.setdefault(operator.matmul, torch.Tensor.__rmatmul__)


def _know_products_of_objects() -> None:
    """Of the operators of two objects that are no tensors, Dynamo lacks `@`."""
    if hasattr(builtin.BuiltinVariable, "_binops"):
        names = ["__matmul__", "__rmatmul__", "__imatmul__"]
        known = builtin.BuiltinVariable._binops()
        known.setdefault(operator.matmul, (names, operator.imatmul))
        builtin.BuiltinVariable._binop_handlers.cache_clear()


IN_PLACE = {
    operator.iadd: "__iadd__",
    operator.isub: "__isub__",
    operator.imul: "__imul__",
    operator.itruediv: "__itruediv__",
}
"""The operators in place that a traced mailbox has."""


def _keep_what_is_edited(of: type) -> None:
    """Of `object += tensor`, Dynamo takes the object's `+`, and makes another object."""
    if not hasattr(builtin.BuiltinVariable, "_handle_insert_op_in_graph"):
        return
    plain = builtin.BuiltinVariable._handle_insert_op_in_graph

    def handled(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        if self.fn in IN_PLACE and getattr(args[0], "value_type", None) is of:
            return args[0].call_method(tx, IN_PLACE[self.fn], list(args[1:]), {})
        return plain(self, tx, args, kwargs)

    builtin.BuiltinVariable._handle_insert_op_in_graph = handled  # type: ignore[method-assign]


def _softmax_by(logits: Tensor, index: Tensor, rows: int) -> Tensor:
    return torch.ops.gnnc.segment_softmax(logits, index, rows)


def _gather_mm(a: Tensor, b: Tensor, *, idx_b: Tensor) -> Tensor:
    return torch.ops.gnnc.typed_linear(a, idx_b.long(), b, None)


def _one_node(values: Sequence[Tensor]) -> list[Tensor]:
    return torch.ops.gnnc.one_node(list(values)) if len(values) > 1 else list(values)


def _refuse(bad: Tensor, message: str) -> None:
    torch.ops.gnnc.require(bad.any().logical_not(), message, f"{OURS}.base.DGLError")


def _pairs(real: Any, ours: Any) -> Iterator[tuple[FunctionType, Callable[..., Any]]]:
    """DGL's functions, and those of `gnnc.dgl` that do the same."""
    seen: set[int] = set()
    for theirs, mine in ((real, ours), (real.ops, ours.ops)):
        for name, function in inspect.getmembers(theirs, inspect.isfunction):
            other = vars(mine).get(name)
            if inspect.isfunction(other) and id(function) not in seen:
                seen.add(id(function))
                yield function, other


def _register(original: FunctionType, ours: Callable[..., Any]) -> None:
    plain = clone(original)

    def substitute(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) if is_active() else plain(*args, **kwargs)

    torch._dynamo.substitute_in_graph(original, skip_signature_check=True)(substitute)
