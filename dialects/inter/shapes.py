"""Value ops on the row's own dimensions: contractions, views, sums over them."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, StringAttr
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, op_definition
from .base import OneOperand, Row, ValueOp, row_of
from .sets import Total
from .types import RowsType, is_bool, is_float, row_text, rows


@op_definition
class ContractOp(ValueOp):
    """`inter.contract "k,kf->f" %a, %b`: einsum over the row's own dimensions. Every letter occurs
    in two of the three terms, so its derivatives are contractions too."""

    name = "inter.contract"
    a = operand_def(RowsType)
    b = operand_def(RowsType)
    spec = prop_def(StringAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$spec $a `,` $b {TYPED}"

    def letters(self) -> tuple[str, str, str]:
        """The letters of the two operands and of the result."""
        return split_spec(self.spec.data)

    def row(self) -> Row:
        left, right, out = self.letters()
        size: dict[str, int] = {}
        for term, v in ((left, self.a), (right, self.b)):
            dims = rows(v).dims
            if len(term) != len(dims):
                raise VerifyException(
                    f"{len(term)} letters {term!r} for rows of {row_text(dims)}: give one letter "
                    "per dimension"
                )
            for c, n in zip(term, dims, strict=True):
                if size.setdefault(c, n) != n:
                    raise VerifyException(f"letter {c!r} stands for {size[c]} and for {n}")
        for term in (left, right, out):
            if len(set(term)) != len(term):
                raise VerifyException(f"a letter occurs twice in {term!r}: no diagonals")
        for c in sorted({*left, *right, *out}):
            if sum(c in term for term in (left, right, out)) < 2:
                how = "broadcast" if c in out else "sum it with inter.row_reduce"
                raise VerifyException(
                    f"letter {c!r} of {self.spec.data!r} occurs in one term only: {how} first"
                )
        if rows(self.a).elem != rows(self.b).elem or not is_float(rows(self.a).elem):
            raise VerifyException(
                f"a contraction takes floats of one type, not {rows(self.a).elem} and "
                f"{rows(self.b).elem}: insert inter.cast"
            )
        return Row(tuple(size[c] for c in out), rows(self.a).elem)


def split_spec(spec: str) -> tuple[str, str, str]:
    """`"k,kf->f"` as its three terms. Raises VerifyException where it is not of this form."""
    left, arrow, out = spec.partition("->")
    terms = left.split(",")
    words = [*terms, out]
    if not arrow or len(terms) != 2 or not all(t == "" or t.isalpha() for t in words):
        raise VerifyException(f'{spec!r} is no contraction: write letters like "k,kf->f"')
    return terms[0], terms[1], out


@op_definition
class ReshapeOp(OneOperand):
    """`inter.reshape %x`: the same numbers in another row shape (that of the result type)."""

    name = "inter.reshape"

    def row(self) -> Row:
        dims = rows(self.x).dims
        if math.prod(self.type.dims) != math.prod(dims):
            raise VerifyException(
                f"a row of {math.prod(dims)} numbers ({row_text(dims)}) cannot be reshaped to "
                f"{row_text(self.type.dims)}"
            )
        return Row(self.type.dims, rows(self.x).elem)


@op_definition
class BroadcastOp(OneOperand):
    """`inter.broadcast %x`: repeated along dimensions of 1 or new leading ones, to the result's
    row shape, aligned right."""

    name = "inter.broadcast"

    def row(self) -> Row:
        dims, want = rows(self.x).dims, self.type.dims
        tail = want[len(want) - len(dims) :]
        fits = len(dims) <= len(want) and all(m in (1, n) for m, n in zip(dims, tail, strict=True))
        if not fits:
            raise VerifyException(
                f"rows of {row_text(dims)} do not broadcast to {row_text(want)}: give "
                "them dimensions of 1 with inter.reshape"
            )
        return Row(want, rows(self.x).elem)


@op_definition
class TransposeOp(OneOperand):
    """`inter.transpose %x [1, 0]`: dimension i of the result is dimension perm[i] of the row."""

    name = "inter.transpose"
    perm = prop_def(ArrayAttr[IntAttr])
    assembly_format = f"$x custom<Ints>($perm) {TYPED}"

    @property
    def order(self) -> tuple[int, ...]:
        """The permutation."""
        return tuple(i.data for i in self.perm)

    def row(self) -> Row:
        t = rows(self.x)
        if sorted(self.order) != list(range(len(t.dims))):
            raise VerifyException(
                f"{list(self.order)} is no permutation of the {len(t.dims)} dimensions"
            )
        return Row(tuple(t.dims[i] for i in self.order), t.elem)


def need_dim(dim: int, dims: tuple[int, ...]) -> None:
    """Raises VerifyException where a row has no such dimension."""
    if not 0 <= dim < len(dims):
        raise VerifyException(
            f"rows of {row_text(dims)} have no dimension {dim}: dimensions count from 0"
        )


@op_definition
class SliceOp(OneOperand):
    """`inter.slice %x {dim = 0, lo = 0, hi = 4, step = 1}`: every `step`-th place from `lo` to
    before `hi` of one dimension (which stays, however short)."""

    name = "inter.slice"
    dim = prop_def(IntegerAttr)
    lo = prop_def(IntegerAttr)
    hi = prop_def(IntegerAttr)
    step = opt_prop_def(IntegerAttr)

    @property
    def bounds(self) -> tuple[int, int, int, int]:
        """dim, lo, hi and step as integers."""
        step = 1 if self.step is None else self.step.value.data
        return self.dim.value.data, self.lo.value.data, self.hi.value.data, step

    def row(self) -> Row:
        t = rows(self.x)
        dim, lo, hi, step = self.bounds
        need_dim(dim, t.dims)
        if not (0 <= lo < hi <= t.dims[dim] and step > 0):
            raise VerifyException(
                f"slice {lo}:{hi}:{step} of a dimension of {t.dims[dim]}: 0 <= lo < hi <= "
                f"{t.dims[dim]} and step > 0 are needed"
            )
        dims = list(t.dims)
        dims[dim] = len(range(lo, hi, step))
        return Row(tuple(dims), t.elem)


@op_definition
class ConcatOp(ValueOp):
    """`inter.concat %a, %b {dim = 0}`: rows side by side along one dimension."""

    name = "inter.concat"
    xs = var_operand_def(RowsType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$xs {TYPED}"

    @property
    def axis(self) -> int:
        """The dimension as an integer."""
        return self.dim.value.data

    def row(self) -> Row:
        if not self.xs:
            raise VerifyException("concat needs an operand")
        first, axis = row_of(self.xs[0]), self.axis
        need_dim(axis, first.dims)
        total = 0
        for x in self.xs:
            dims, elem = row_of(x)
            same = len(dims) == len(first.dims) and all(
                m == n for i, (m, n) in enumerate(zip(dims, first.dims, strict=True)) if i != axis
            )
            if not same or elem != first.elem:
                raise VerifyException(
                    f"rows {self.xs[0].type} and {x.type} differ in more than dimension {axis}"
                )
            total += dims[axis]
        return Row((*first.dims[:axis], total, *first.dims[axis + 1 :]), first.elem)


ROW_KINDS = ("sum", "max", "min")


@op_definition
class RowReduceOp(OneOperand):
    """`inter.row_reduce sum %x [0, 1]`: sum, max or min over dimensions of the row, which go."""

    name = "inter.row_reduce"
    kind = prop_def(StringAttr)
    dims = prop_def(ArrayAttr[IntAttr])
    assembly_format = f"custom<Name>($kind) $x custom<Ints>($dims) {TYPED}"

    @property
    def axes(self) -> tuple[int, ...]:
        """The dimensions that go."""
        return tuple(i.data for i in self.dims)

    def row(self) -> Row:
        t = rows(self.x)
        if self.kind.data not in ROW_KINDS:
            raise VerifyException(f"kind {self.kind.data!r} is none of {', '.join(ROW_KINDS)}")
        if is_bool(t.elem):
            raise VerifyException("row_reduce takes numbers: insert inter.cast")
        for d in self.axes:
            need_dim(d, t.dims)
        if len(set(self.axes)) != len(self.axes):
            raise VerifyException(f"a dimension occurs twice in {list(self.axes)}")
        return Row(tuple(n for i, n in enumerate(t.dims) if i not in self.axes), t.elem)


SHAPE_OPS = [
    ContractOp,
    ReshapeOp,
    BroadcastOp,
    TransposeOp,
    SliceOp,
    ConcatOp,
    RowReduceOp,
]
