"""Value ops: constants, reads across sets, maps as integers, unions and tables as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import RESULT, TYPED, op_definition
from .base import FixedOp, OneOperand, Row, ValueOp, row_of
from .sets import SetEnv, Total
from .syntax import (
    float_text,
    number,
    number_value,
)
from .types import (
    ONE,
    UNIT,
    Dom,
    RowsType,
    SetType,
    is_bool,
    is_float,
    row_text,
    rows,
    set_name,
    set_type,
)

# ---------------------------------------------------------------- constants


@op_definition
class ConstOp(FixedOp):
    """`inter.const 0.0 : !inter.rows<unit, 8xf32>`: a row filled with one number (a double for
    floats, an integer for i32 and i64, 0 or 1 for i1)."""

    name = "inter.const"
    value = prop_def(FloatAttr | IntegerAttr)
    assembly_format = f"custom<Constant>($value) {RESULT}"

    @property
    def number(self) -> float | int:
        """The constant as a Python number."""
        return number_value(self.value)

    def infer(self, env: SetEnv) -> Dom:
        return ONE

    def row(self) -> Row:
        t, value = self.type, self.value
        if t.dom != ONE:
            raise VerifyException(f"a constant lives on unit, its type says {t.dom}")
        if isinstance(value, FloatAttr) != is_float(t.elem):
            text = float_text(float(self.number)) if is_float(t.elem) else "an integer"
            raise VerifyException(f"a constant of {t.elem} is written {text}")
        if is_bool(t.elem) and self.number not in (0, 1):
            raise VerifyException(f"a constant of i1 is 0 or 1, not {self.number}")
        return Row(t.dims, t.elem)


@op_definition
class TableOp(FixedOp):
    """`inter.table [0.5, 1.0] : !inter.rows<unit, 2xf32>`: a small literal row, its numbers in C
    order (tables of relations, scalers). Weights are arguments, never literals."""

    name = "inter.table"
    values = prop_def(ArrayAttr[FloatAttr | IntegerAttr])
    assembly_format = f"custom<Numbers>($values) {RESULT}"

    def numbers(self) -> NDArray[Any]:
        """The numbers as an array of the row's shape: float64, int64 or bool."""
        dtype = np.float64 if is_float(self.type.elem) else np.int64
        flat = np.array([number_value(v) for v in self.values], dtype)
        return flat.reshape(self.type.dims).astype(np.bool_ if is_bool(self.type.elem) else dtype)

    @staticmethod
    def literal(a: NDArray[Any]) -> ArrayAttr[FloatAttr | IntegerAttr]:
        """An array as the property `values`."""
        return ArrayAttr(number(x) for x in a.reshape(-1).tolist())

    def infer(self, env: SetEnv) -> Dom:
        return ONE

    def row(self) -> Row:
        t = self.type
        size = int(np.prod(t.dims, dtype=np.int64))
        if len(self.values) != size:
            raise VerifyException(
                f"rows of {row_text(t.dims)} take {size} numbers, the table has {len(self.values)}"
            )
        if any(isinstance(v, FloatAttr) != is_float(t.elem) for v in self.values):
            kind = "floats (1.0)" if is_float(t.elem) else "integers (1)"
            raise VerifyException(f"the numbers of a table of {t.elem} are {kind}")
        return Row(t.dims, t.elem)


# ---------------------------------------------------------------- reads


@op_definition
class AtOp(ValueOp):
    """`inter.at %g[src], %x`: rows of the codomain seen from `g`, a view. Through a partial map,
    `inter.at %l[old], %w else %y` takes `y` where the map has no value."""

    name = "inter.at"
    set = operand_def(SetType)
    x = operand_def(RowsType)
    otherwise = opt_operand_def(RowsType)
    path = prop_def(StringAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$set `[` custom<Name>($path) `]` `,` $x (`else` $otherwise^)? {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        s, path = set_name(self.set), self.path.data
        d = env.at(s, path, rows(self.x).dom)
        partial = env.is_partial(s, path)
        if self.otherwise is None:
            if partial:
                raise VerifyException(
                    f"map {path} of {s} is partial: say what to read where it has no value, "
                    "`else %y`"
                )
            return d
        if not partial:
            raise VerifyException(f"map {path} of {s} has a value on every row: drop the `else`")
        env.readable(rows(self.otherwise).dom, Dom(s), "the value of `else`")
        return Dom(s)

    def cap(self, env: SetEnv) -> Dom | None:
        return Dom(set_name(self.set))

    def row(self) -> Row:
        if self.otherwise is not None and row_of(self.otherwise) != row_of(self.x):
            raise VerifyException(
                f"the value and that of `else` have different rows: {self.x.type} and "
                f"{self.otherwise.type}"
            )
        return row_of(self.x)


@op_definition
class IndexOp(ValueOp):
    """`inter.index %g[src] : !inter.rows<g, i64>`: a map as integers, -1 where it has no value."""

    name = "inter.index"
    set = operand_def(SetType)
    path = prop_def(StringAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$set `[` custom<Name>($path) `]` {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        s = set_name(self.set)
        env.codomain(s, self.path.data)
        return env.norm(s, [self.path.data])

    def cap(self, env: SetEnv) -> Dom | None:
        return Dom(set_name(self.set))

    def row(self) -> Row:
        return Row((), i64)


class NumbersOfSet(FixedOp):
    """`mnemonic %S`: integers that tell of a set."""

    set = operand_def(SetType)
    assembly_format = f"$set {TYPED}"

    def row(self) -> Row:
        return Row((), i64)


@op_definition
class IotaOp(NumbersOfSet):
    """`inter.iota %S : !inter.rows<S, i64>`: the number of each row, from 0."""

    name = "inter.iota"

    def infer(self, env: SetEnv) -> Dom:
        return Dom(set_name(self.set))


@op_definition
class SizeOp(NumbersOfSet):
    """`inter.size %S : !inter.rows<unit, i64>`: how many rows a set has."""

    name = "inter.size"

    def infer(self, env: SetEnv) -> Dom:
        return ONE


# ---------------------------------------------------------------- unions and tables


@op_definition
class StackOp(FixedOp):
    """`inter.stack %u, %a, %b`: rows of the parts of a union, one after the other."""

    name = "inter.stack"
    set = operand_def(SetType)
    xs = var_operand_def(RowsType)
    assembly_format = f"$set `,` $xs {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        t = set_type(self.set)
        for i, (x, part) in enumerate(zip(self.xs, t.part_names, strict=True)):
            env.readable(rows(x).dom, Dom(part), f"operand {i}")
        return Dom(t.label)

    def row(self) -> Row:
        t = set_type(self.set)
        if len(t.parts) != len(self.xs) or not self.xs:
            raise VerifyException(
                f"set {t.label} has {len(t.parts)} parts, but there are {len(self.xs)} values: "
                "give one per part, in order"
            )
        first = row_of(self.xs[0])
        for x in self.xs:
            if row_of(x) != first:
                raise VerifyException(
                    f"the values have different rows: {self.xs[0].type} and {x.type}"
                )
        return first


@op_definition
class PartOp(FixedOp):
    """`inter.part 0 of %u, %x`: the rows of one part of a union."""

    name = "inter.part"
    set = operand_def(SetType)
    x = operand_def(RowsType)
    index = prop_def(IntAttr)
    assembly_format = f"custom<Count>($index) `of` $set `,` $x {TYPED}"

    @property
    def part_name(self) -> str:
        """The name of the part's set."""
        return set_type(self.set).part_names[self.index.data]

    def infer(self, env: SetEnv) -> Dom:
        env.readable(rows(self.x).dom, Dom(set_name(self.set)))
        return Dom(self.part_name)

    def row(self) -> Row:
        t = set_type(self.set)
        if not 0 <= self.index.data < len(t.parts):
            raise VerifyException(
                f"set {t.label} has {len(t.parts)} parts, there is no part {self.index.data}"
            )
        return row_of(self.x)


@op_definition
class AsRowsOp(FixedOp):
    """`inter.as_rows %R, %x`: the leading dimension of a single row as the rows of a set, in the
    same memory: rows<unit, 3x8xf32> becomes rows<R, 8xf32>. R must have 3 rows (checked)."""

    name = "inter.as_rows"
    set = operand_def(SetType)
    x = operand_def(RowsType)
    assembly_format = f"$set `,` $x {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        return Dom(set_name(self.set))

    def row(self) -> Row:
        t = rows(self.x)
        if t.dom.set != UNIT or not t.dims:
            raise VerifyException(f"as_rows takes rows<unit, NxKx..>, not {t}")
        return Row(t.dims[1:], t.elem)


@op_definition
class AsUnitOp(FixedOp):
    """`inter.as_unit %R, %x : !inter.rows<unit, 3x8xf32>`: the inverse of `inter.as_rows`; the
    result's leading dimension is the size that R must have (checked)."""

    name = "inter.as_unit"
    set = operand_def(SetType)
    x = operand_def(RowsType)
    assembly_format = f"$set `,` $x {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        env.readable(rows(self.x).dom, Dom(set_name(self.set)))
        return ONE

    def row(self) -> Row:
        x = rows(self.x)
        if not self.type.dims:
            raise VerifyException("the result's leading dimension is the size of the set")
        return Row((self.type.dims[0], *x.dims), x.elem)


# ---------------------------------------------------------------- element types and gradients


@op_definition
class CastOp(OneOperand):
    """`inter.cast %x : new element type`. Floats become integers by dropping the fraction; numbers
    become i1 by comparing with 0."""

    name = "inter.cast"

    def row(self) -> Row:
        return Row(rows(self.x).dims, self.type.elem)


@op_definition
class StopOp(OneOperand):
    """`inter.stop %x`: the value without its gradient."""

    name = "inter.stop"

    def row(self) -> Row:
        return row_of(self.x)


VALUE_OPS = [
    ConstOp,
    TableOp,
    AtOp,
    IndexOp,
    IotaOp,
    SizeOp,
    StackOp,
    PartOp,
    AsRowsOp,
    AsUnitOp,
    CastOp,
    StopOp,
]
