"""The leaf op of sparse matrices, and what it means."""

from __future__ import annotations

import torch
from torch import Tensor

from ..importer.errors import NoRule
from ..importer.rules.layers import dropout
from ..importer.rules.registry import Call, rule, size_expr
from ..importer.values.tensors import Arr
from ..libraries.pyg.leaves import leaf, segment_reduce


@leaf(
    "sparse_matmul(Tensor row, Tensor col, Tensor value, Tensor x, SymInt rows, str reduce) "
    "-> Tensor"
)
def sparse_matmul(
    row: Tensor, col: Tensor, value: Tensor, x: Tensor, rows: int, reduce: str
) -> Tensor:
    """The product of a sparse matrix of `rows` rows, given by its entries, with `x`, m or m x F;
    the terms of a row are reduced by "sum", "mean", "max" or "min". A row without any is 0."""
    terms = x.index_select(0, col)
    weights = value if x.dim() == 1 else value.unsqueeze(1)
    return segment_reduce(weights * terms, row, 0, rows, reduce)


@leaf("sparse_dropout(Tensor row, Tensor col, Tensor value, float p) -> Tensor")
def sparse_dropout(row: Tensor, col: Tensor, value: Tensor, p: float) -> Tensor:
    """Dropout of the entries of a matrix. Compiled, each has the mask that it has in the rows of
    the dense matrix (dialects/meaning/philox.py)."""
    return torch.nn.functional.dropout(value, p)


@leaf("pointer(Tensor index, SymInt groups) -> Tensor")
def pointer(index: Tensor, groups: int) -> Tensor:
    """Where each group begins among numbers of groups in order, and where the last one ends."""
    ends = index.new_zeros(groups).scatter_add_(0, index, torch.ones_like(index)).cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


@leaf("index_of_pointer(Tensor ptr, SymInt size) -> Tensor")
def index_of_pointer(ptr: Tensor, size: int) -> Tensor:
    """The group of each of `size` members, from where groups begin."""
    return torch.repeat_interleave(ptr.diff(), output_size=size)


@rule("gnnc.sparse_matmul", counts="rows")
def _sparse_matmul(c: Call) -> Arr:
    row, col, value, x = (c.tensor(name) for name in ("row", "col", "value", "x"))
    reduce, ctx = c.arg("reduce"), c.ctx
    if reduce not in ("sum", "mean", "max", "min"):
        raise NoRule(f"the product of a sparse matrix reduced by {reduce!r}")
    terms = ctx.gather(x, 0, col)
    weights = value if x.rank == 1 else ctx.unsqueeze(value, 1)
    product = ctx.binary("mul", weights, terms)
    ties = reduce in ("max", "min")
    return ctx.segment(product, row, 0, size_expr(c.arg("rows")), reduce, zero_ties=ties)


@rule("gnnc.sparse_dropout")
def _sparse_dropout(c: Call) -> Arr:
    value, p = c.tensor("value"), float(c.number("p"))
    return dropout(c, value, p, [c.tensor("row"), c.tensor("col")])


@rule("gnnc.pointer", "gnnc.index_of_pointer")
def _pointers(c: Call) -> Arr:
    raise NoRule("where the entries of a row begin (what is made of that again is the rows)")
