"""reorder-linear, distribute: a product of what comes from several places is done in parts.

`[x_i, x_j - x_i, e] W`, with rows read at both ends of an edge and the edge's own side by side (or
added up), is `x_i (W1 - W2) + x_j W2 + e W3`: two products on the nodes in place of one, longer, on
the edges (EdgeConv, PNA, CGConv, the scores of links). The parts are then read at the
edges, so the rule weighs what they cost to gather against the work.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import ConcatOp, ContractOp, ReshapeOp
from ....dialects.inter.types import rows
from ....dialects.inter.unit_dims import only_ones
from ...analysis.costs import element_bytes
from ...analysis.seconds import gather_seconds, product_seconds
from .function import LinearFunction, signed_sum, weight_of, width

MARGIN = 0.95
"""What the parts must cost at most, relative to the whole."""


@dataclass(frozen=True)
class Part:
    """A value that meets the rows `low` to `high` of the weight, added or subtracted."""

    value: SSAValue
    low: int
    high: int
    negative: bool


def distribute(fn: LinearFunction, op: ValueOp) -> bool:
    """Does a product in parts where that costs less; says whether it did."""
    if not isinstance(op, ContractOp) or (w := weight_of(op)) is None:
        return False
    x = op.operands[1 - w]
    letters = op.letters()
    if len(rows(x).dims) != 1 or letters[1 - w] in letters[2]:
        return False
    parts = _parts(x, 0, False)
    if len(parts) < 2 or not _pays(fn, op, x, parts):
        return False
    fn.replace(op.results[0], _build(fn.before(op), op, w, parts))
    return True


def _parts(v: SSAValue, low: int, negative: bool) -> list[Part]:
    """What `v` is put together from; its numbers start at row `low` of the weight. Dimensions of 1
    beside them do not matter."""
    owner = v.owner
    if isinstance(owner, ReshapeOp) and only_ones(owner):
        return _parts(owner.x, low, negative)
    if isinstance(owner, ConcatOp) and rows(v).dims[owner.axis] == width(v):
        out: list[Part] = []
        for x in owner.xs:
            out += _parts(x, low, negative)
            low += width(x)
        return out
    if isinstance(owner, PointwiseOp) and owner.SPEC.signs is not None:
        if all(rows(x).dims == rows(v).dims for x in owner.operands):
            pairs = zip(owner.operands, owner.SPEC.signs, strict=True)
            return [p for x, sign in pairs for p in _parts(x, low, negative != (sign < 0))]
    return [Part(v, low, low + width(v), negative)]


def _pays(fn: LinearFunction, op: ContractOp, x: SSAValue, parts: list[Part]) -> bool:
    size, out = element_bytes(op.type), width(op.results[0])
    count = fn.sizes.rows(fn.least(x))
    leaves = {p.value: p.high - p.low for p in parts}
    few = {v for v in leaves if fn.sizes.rows(fn.least(v)) < count}
    if not few:
        return False

    def gemm(rows_: float, k: int) -> float:
        return product_seconds(fn.target, rows_, k, out)

    def gather(numbers: int) -> float:
        return gather_seconds(fn.target, count, numbers * size)

    old = gemm(count, width(x)) + gather(sum(leaves[v] for v in few))
    new = sum(gemm(fn.sizes.rows(fn.least(v)), k) for v, k in leaves.items())
    return new + gather(out * len(few)) < MARGIN * old


def _build(b: Builder, op: ContractOp, w: int, parts: list[Part]) -> SSAValue:
    weight = op.operands[w]
    axis = op.letters()[w].index(op.letters()[1 - w])
    terms: list[tuple[SSAValue, bool]] = []
    for value in dict.fromkeys(p.value for p in parts):
        own, negative = _weight(b, weight, axis, [p for p in parts if p.value is value])
        row = b.reshape(value, (width(value),))
        operands = [row, row]
        operands[w] = own
        terms.append((b.contract(op.spec.data, *operands), negative))
    return signed_sum(b, terms)


def _weight(b: Builder, weight: SSAValue, axis: int, parts: list[Part]) -> tuple[SSAValue, bool]:
    """What one value is multiplied with in all, and whether the product is subtracted."""
    whole, negative = rows(weight).dims[axis], parts[0].negative
    pieces = [
        weight if (p.low, p.high) == (0, whole) else b.slice(weight, axis, p.low, p.high)
        for p in parts
    ]
    signs = [p.negative != negative for p in parts]
    return signed_sum(b, zip(pieces, signs, strict=True)), negative
