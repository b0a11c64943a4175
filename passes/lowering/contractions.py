"""Contractions of `inter`: products with one matrix or one a group, sums of outer products,
multiplications.
"""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from ...dialects.inter import reduce, shapes
from ...dialects.inter.types import ONE, UNIT, Dom, RowsType, rows
from ...dialects.intra.syntax import row_dims
from ..analysis.costs import element_bytes
from .context import Lowering
from .nests import Nest
from .products import Product, Roles, extent, is_matmul, outer_roles

FEW_GROUPS = 1024
"""So many groups are long ones: relations or types, not nodes."""


def lower_contract(low: Lowering, op: shapes.ContractOp) -> None:
    if is_summed_outer(low, op):
        return  # the reduction that reads it makes the sum without the products
    a, b, spec = op.a, op.b, op.spec.data
    la, lb, out = op.letters()
    t = rows(op.results[0])
    one_row = t.dom.set == UNIT
    if rows(a).dom == ONE and not one_row:
        a, b, spec = b, a, f"{lb},{la}->{out}"
    if rows(b).dom == ONE and not one_row and rows(a).dom != ONE and is_matmul(spec):
        if is_thin(spec, rows(a), rows(b)):
            return low.rowwise(op, lambda n: thin_product(n, low.read(n, a), low.read(n, b), t))
        product = Product.of(low.host, spec, rows(a).dims, low.buffer(b))
        low.rowwise(op, lambda nest: product.emit(nest, low.read(nest, a)))
        return
    for x, w, text in ((op.a, op.b, op.spec.data), (op.b, op.a, f"{lb},{la}->{out}")):
        if is_grouped_product(low, t.dom, x, w, text):
            return lower_grouped_product(low, op, x, w, text)
    for x, by, long, short in ((op.a, op.b, la, lb), (op.b, op.a, lb, la)):
        if long == out and out.startswith(short):
            return low.rowwise(op, lambda n: multiplied(n, low.read(n, x), low.read(n, by)))
    low.rowwise(op, lambda nest: nest.dot(op.spec.data, low.read(nest, op.a), low.read(nest, op.b)))


def is_thin(spec: str, x: RowsType, w: RowsType) -> bool:
    """Whether the matrix is a single column or row: tiles would be padded to whole vectors."""
    ins, out = spec.split("->")
    lx, lw = ins.split(",")
    r = Roles.of(lx, lw, out)
    size = dict(zip(lx, x.dims, strict=True)) | dict(zip(lw, w.dims, strict=True))
    if r.lead or r.batch:
        return False
    alike = [c for c in lw if c in r.summed] == list(r.summed) and out == r.columns
    return alike and 1 in (extent(size, r.summed), extent(size, r.columns))


def thin_product(nest: Nest, x: SSAValue, w: SSAValue, t: RowsType) -> SSAValue:
    """A row times a matrix of one column, a dot product, or of one row, a multiple of it."""
    numbers = math.prod(row_dims(x.type))
    if numbers == 1:
        return nest.apply("mul", nest.reshape(x, ()), nest.reshape(w, t.dims))
    y = nest.dot("k,k->", nest.reshape(x, (numbers,)), nest.reshape(w, (numbers,)))
    return nest.reshape(y, t.dims)


def multiplied(nest: Nest, x: SSAValue, by: SSAValue) -> SSAValue:
    """A row times one of its leading dimensions only: a number for each head, say."""
    dims = row_dims(by.type)
    missing = len(row_dims(x.type)) - len(dims)
    return nest.apply("mul", x, nest.reshape(by, (*dims, *[1] * missing)))


def is_grouped_product(low: Lowering, dom: Dom, x: SSAValue, w: SSAValue, spec: str) -> bool:
    """Rows of `dom` times matrices that many of them share: a matrix a relation, or a node type."""
    keys = rows(w).dom.keys
    shared = len(keys) == 1 and rows(w).dom.set == dom.set and len(dom.keys) != 1
    return shared and rows(x).dom != ONE and is_matmul(spec) and is_small(low, rows(w))


def is_small(low: Lowering, t: RowsType) -> bool:
    """Whether a matrix for a group of rows stays in the second-level cache and on a thread's stack,
    whichever of its dimensions is padded to whole vectors.
    """
    numbers, lanes = math.prod(t.dims), low.target.vector_bytes // 4
    padded = max(numbers // n * (n + lanes - 1) for n in t.dims)
    return padded * element_bytes(t) <= low.target.nests.group_matrix


def lower_grouped_product(
    low: Lowering, op: shapes.ContractOp, x: SSAValue, w: SSAValue, spec: str
) -> None:
    t, matrices = rows(op.results[0]), rows(w).dom
    at = low.host.storage(matrices)
    product = Product.of(low.host, spec, rows(x).dims, low.buffer(w), at)
    source = low.buffer(x)
    out = low.host.buffer(t.dom, t.dims, t.elem)
    nest, index = low.host.grouped_nest(t.dom, matrices.keys[0])
    row = nest.load(source, nest.index(rows(x).dom))
    nest.store(product.emit(nest, row, index), out)
    low.alias(op, out)


def is_summed_outer(low: Lowering, op: shapes.ContractOp) -> bool:
    """The contraction is only read by sums over all rows, or over those of a group, so its products
    need not be kept.
    """
    t = rows(op.results[0])
    users = [u.operation for u in op.results[0].uses]
    if not users or outer_roles(op) is None or t.dom == ONE:
        return False
    if all(isinstance(u, reduce.ReduceOp) and not u.along_keys for u in users) and is_multiple(op):
        return False
    return all(isinstance(u, reduce.ReduceOp) and sums_outer(low, u, t) for u in users)


def is_multiple(op: shapes.ContractOp) -> bool:
    """Whether one of the factors of an outer product is a single number."""
    return 1 in (math.prod(rows(op.a).dims), math.prod(rows(op.b).dims))


def sums_outer(low: Lowering, op: reduce.ReduceOp, products: RowsType) -> bool:
    """Whether a reduction is a sum of outer products that printers block over rows; in one over all
    rows they may be the same for several of these."""
    if op.kind.data not in ("sum", "mean"):
        return False
    if not op.along_keys:
        return low.env.le(products.dom, op.over)
    if op.over != products.dom:
        return False
    several = op.kind.data == "sum" and len(op.along_keys) == 1 and len(op.over.keys) != 1
    if not several or not is_small(low, products):
        return False
    long_groups = low.sizes.set(low.env.codomain(op.over.set, op.along_keys[0])) <= FEW_GROUPS
    # where groups are short, a loop over the group's members does without a block
    return long_groups or low.target.nests.register_sums < math.prod(products.dims)
