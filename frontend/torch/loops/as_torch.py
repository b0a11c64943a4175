"""A program's module as a graph of torch's functions, to run in torch what is not compiled: second
derivatives, and gradients between results (frontend/torch/calls/replay.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import CountOp, ReduceOp, SoftmaxOp
from ....dialects.inter.shapes import ConcatOp, ContractOp, ReshapeOp, RowReduceOp
from ....dialects.inter.types import UNIT, rows, set_name
from ....dialects.inter.values import AsRowsOp, AtOp, ConstOp
from ....runtime.autograd import TORCH
from ..importer import Imported
from ..importer.binding import FromTensor, MapBinding

ROW = "Z"
"""The letter of the rows in an einsum; those of the dialect are small."""


def as_torch(imported: Imported) -> fx.GraphModule:
    """The graph, with the placeholders and results of the module."""
    return _Writer(imported).graph_module()


def pointwise(fn: str, *xs: Tensor, **parameters: float) -> Tensor:
    """A function of the pointwise vocabulary, on numbers that broadcast."""
    if fn in ("leaky_relu", "elu"):
        (value,) = parameters.values()
        return getattr(F, fn)(*xs, value)
    own = getattr(F, fn) if fn in ("gelu", "softplus", "relu") else getattr(torch, fn)
    return own(*xs)


def segment_reduce(kind: str, x: Tensor, index: Tensor, n: int) -> Tensor:
    """Rows that agree on an index, folded; 0 where there is none."""
    at = index.long()
    out = x.new_zeros((n, *x.shape[1:]))
    if kind in ("sum", "mean"):
        total = out.index_add(0, at, x)
        if kind == "sum":
            return total
        count = x.new_zeros(n).index_add(0, at, x.new_ones(x.shape[0])).clamp(min=1)
        return total / count.view(n, *(1 for _ in x.shape[1:]))
    wide = at.view(-1, *(1 for _ in x.shape[1:])).expand_as(x)
    return out.scatter_reduce(0, wide, x, f"a{kind}", include_self=False)


def segment_softmax(x: Tensor, index: Tensor, n: int) -> Tensor:
    """Softmax over the rows that agree on an index."""
    greatest = segment_reduce("max", x.detach(), index, n)
    e = (x - greatest.index_select(0, index)).exp()
    return e / segment_reduce("sum", e, index, n).index_select(0, index)


def count(indices: Sequence[Tensor], sizes: Sequence[int], like: torch.dtype) -> Tensor:
    """How many rows agree on an index: for each of its values, or on two: for each row."""
    key, n = indices[0].long(), sizes[0]
    for index, m in zip(indices[1:], sizes[1:], strict=True):
        key, n = key * m + index, n * m
    found = torch.zeros(n, dtype=like).index_add(0, key, torch.ones(key.shape[0], dtype=like))
    return found if len(indices) == 1 else found.index_select(0, key)


def reshaped(x: Tensor, dims: Sequence[int], n: int | None, spread: bool) -> Tensor:
    """Rows in another shape: `n` rows, which a single one is spread to; None: one row."""
    if n is None:
        return x.reshape(dims)
    return x.reshape(1, *dims).expand(n, *dims) if spread else x.reshape(n, *dims)


class _Writer:
    def __init__(self, imported: Imported) -> None:
        self.imported = imported
        self.graph = fx.Graph()
        self.given = [self.graph.placeholder(name) for name in imported.placeholders]
        self.sets = {s.name: s for s in imported.sets}
        self.done: dict[SSAValue, fx.Node] = {}
        block = imported.function.body.block
        of_names = {r.name: r for r in imported.rows}
        for a in block.args:
            if (r := of_names.get(a.name_hint or "")) is not None:
                assert isinstance(r.source, FromTensor)
                node = self.given[r.source.placeholder]
                node.meta["example_value"] = torch.empty(0, device="meta")
                self.done[a] = node

    def graph_module(self) -> fx.GraphModule:
        block = self.imported.function.body.block
        for op in block.ops:
            if isinstance(op, ValueOp):
                self.done[op.results[0]] = self.write(op)
        last = block.last_op
        assert isinstance(last, ReturnOp)
        found = [
            self.named(b.name, v) for b, v in zip(self.imported.results, last.operands, strict=True)
        ]
        single = not isinstance(self.imported.outputs, tuple)
        self.graph.output(found[0] if single else tuple(found))
        return fx.GraphModule(torch.nn.Module(), self.graph)

    def named(self, name: str, v: SSAValue) -> fx.Node:
        """A result under its name, by which a replay finds it."""
        node = self.call(torch.Tensor.view_as, self.done[v], self.done[v])
        node.name = name
        return node

    def call(self, function: Any, *args: Any, **kwargs: Any) -> fx.Node:
        return self.graph.call_function(function, args, kwargs)

    # ------------------------------------------------------------ sets

    def size(self, name: str) -> Any:
        """How many rows a set has."""
        _, position, dim = self.sets[name].size.names[0]
        node = self.given[position]
        return node if dim is None else self.call(torch.Tensor.size, node, dim)

    def index(self, name: str, path: str) -> tuple[fx.Node, str]:
        """A path of maps as integers, and the set that it leads to."""
        first, _, rest = path.partition(".")
        m = next(m for m in self.sets[name].maps if m.label == first)
        own = self.column(m)
        if not rest:
            return own, m.codomain
        further, end = self.index(m.codomain, rest)
        return self.call(torch.index_select, further, 0, own), end

    def column(self, m: MapBinding) -> fx.Node:
        node = self.given[m.placeholder]
        return self.call(torch.select, node, 0, m.index[0]) if m.index else node

    # ------------------------------------------------------------ ops

    def write(self, op: ValueOp) -> fx.Node:
        match op:
            case ConstOp():
                return self.call(torch.full, op.type.dims, op.number, dtype=self.dtype(op))
            case AsRowsOp():
                return self.done[op.x]
            case AtOp():
                index, _ = self.index(set_name(op.set), op.path.data)
                return self.call(torch.index_select, self.done[op.x], 0, index)
            case ContractOp():
                return self.contract(op)
            case ReshapeOp():
                return self.reshape(op)
            case ConcatOp():
                return self.concat(op)
            case RowReduceOp():
                dims = [d.data + self.is_rows(op.x) for d in op.dims]
                fold = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[op.kind.data]
                return self.call(fold, self.done[op.x], dims)
            case CountOp():
                found = [self.index(set_name(op.set), k) for k in op.along_keys]
                sizes = [self.size(end) for _, end in found]
                return self.call(count, [i for i, _ in found], sizes, self.dtype(op))
            case SoftmaxOp() | ReduceOp():
                return self.segments(op)
            case PointwiseOp():
                args = [self.aligned(x, op) for x in op.xs]
                return self.call(pointwise, op.SPEC.name, *args, **op.parameters())
        raise AssertionError(op.name)

    @staticmethod
    def dtype(op: ValueOp) -> torch.dtype:
        return TORCH[str(op.type.elem)]

    @staticmethod
    def is_rows(x: SSAValue) -> bool:
        return rows(x).dom.set != UNIT

    def contract(self, op: ContractOp) -> fx.Node:
        left, right, out = op.letters()
        spec = f"{ROW * self.is_rows(op.a)}{left},{ROW * self.is_rows(op.b)}{right}"
        spec += f"->{ROW * self.is_rows(op.results[0])}{out}"
        return self.call(torch.einsum, spec, self.done[op.a], self.done[op.b])

    def reshape(self, op: ReshapeOp) -> fx.Node:
        x = self.done[op.x]
        if not self.is_rows(op.results[0]):
            return self.call(reshaped, x, op.type.dims, None, False)
        alone = not self.is_rows(op.x)
        n = self.size(op.type.dom.set) if alone else self.call(torch.Tensor.size, x, 0)
        return self.call(reshaped, x, op.type.dims, n, alone)

    def concat(self, op: ConcatOp) -> fx.Node:
        together = any(self.is_rows(x) for x in op.xs)
        parts = [self.aligned(x, op) if together else self.done[x] for x in op.xs]
        return self.call(torch.cat, parts, op.dim.value.data + together)

    def segments(self, op: SoftmaxOp | ReduceOp) -> fx.Node:
        name = set_name(op.set)
        index, end = self.index(name, op.along_keys[0])
        x = self.done[op.x]
        if not self.is_rows(op.x):
            x = self.call(reshaped, x, rows(op.x).dims, self.size(name), True)
        if isinstance(op, SoftmaxOp):
            return self.call(segment_softmax, x, index, self.size(end))
        return self.call(segment_reduce, op.kind.data, x, index, self.size(end))

    def aligned(self, x: SSAValue, op: ValueOp) -> fx.Node:
        """An operand whose row has as many dimensions as the result's, so that rows meet rows."""
        missing = len(op.type.dims) - len(rows(x).dims)
        if not self.is_rows(x) or not missing:
            return self.done[x]
        node = self.done[x]
        n = self.call(torch.Tensor.size, node, 0)
        return self.call(reshaped, node, (*(1 for _ in range(missing)), *rows(x).dims), n, False)
