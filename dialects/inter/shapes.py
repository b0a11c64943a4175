"""Value ops on the row's own dimensions: contractions, views, sums over them."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .base import Operands, Row, ValueOp, row_of
from .sets import Total
from .syntax import parse_ints, parse_value, parse_values, print_ints, print_values
from .types import RowsType, is_bool, is_float, row_text, rows


class OneOperand(ValueOp):
    """`mnemonic %x`"""

    x = operand_def(RowsType)
    traits = traits_def(Pure(), Total())

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[Operands, dict[str, Attribute]]:
        return [parse_value(parser)], {}

    def print_body(self, p: Printer) -> None:
        p.print_ssa_value(self.operands[0])


@irdl_op_definition
class ContractOp(ValueOp):
    """`inter.contract "k,kf->f" %a, %b`: einsum over the row's own dimensions. Every letter occurs
    in two of the three terms, so its derivatives are contractions too."""

    name = "inter.contract"
    a = operand_def(RowsType)
    b = operand_def(RowsType)
    spec = prop_def(StringAttr)
    traits = traits_def(Pure(), Total())
    BODY_PROPS: ClassVar[tuple[str, ...]] = ("spec",)

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[Operands, dict[str, Attribute]]:
        spec = parser.parse_str_literal(' for the letters, such as "k,kf->f"')
        pos = parser.pos
        operands = parse_values(parser)
        if len(operands) != 2:
            parser.raise_error("a contraction takes two operands", pos)
        return operands, {"spec": StringAttr(spec)}

    def print_body(self, p: Printer) -> None:
        p.print_string_literal(self.spec.data)
        p.print_string(" ")
        print_values(p, self.operands)

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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
class TransposeOp(OneOperand):
    """`inter.transpose %x [1, 0]`: dimension i of the result is dimension perm[i] of the row."""

    name = "inter.transpose"
    perm = prop_def(ArrayAttr[IntAttr])
    BODY_PROPS: ClassVar[tuple[str, ...]] = ("perm",)

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[Operands, dict[str, Attribute]]:
        x = parse_value(parser)
        return [x], {"perm": parse_ints(parser)}

    def print_body(self, p: Printer) -> None:
        p.print_ssa_value(self.x)
        print_ints(p, self.perm)

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


@irdl_op_definition
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


@irdl_op_definition
class ConcatOp(ValueOp):
    """`inter.concat %a, %b {dim = 0}`: rows side by side along one dimension."""

    name = "inter.concat"
    xs = var_operand_def(RowsType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure(), Total())

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[Operands, dict[str, Attribute]]:
        return [parse_values(parser)], {}

    def print_body(self, p: Printer) -> None:
        print_values(p, self.xs)

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


@irdl_op_definition
class RowReduceOp(OneOperand):
    """`inter.row_reduce sum %x [0, 1]`: sum, max or min over dimensions of the row, which go."""

    name = "inter.row_reduce"
    kind = prop_def(StringAttr)
    dims = prop_def(ArrayAttr[IntAttr])
    BODY_PROPS: ClassVar[tuple[str, ...]] = ("kind", "dims")

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[Operands, dict[str, Attribute]]:
        kind = parser.parse_keyword_in(ROW_KINDS)
        x = parse_value(parser)
        return [x], {"kind": StringAttr(kind), "dims": parse_ints(parser)}

    def print_body(self, p: Printer) -> None:
        p.print_string(f"{self.kind.data} ")
        p.print_ssa_value(self.x)
        print_ints(p, self.dims)

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
