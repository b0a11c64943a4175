"""Value ops over the rows of a set: reductions, softmax, counts, dropout."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, op_definition
from .base import FixedOp, Row, ValueOp, row_of
from .sets import SetEnv, Total
from .types import ONE, UNIT, Dom, RowsType, SetType, is_bool, is_float, rows, set_name, unstrs

REDUCE_KINDS = ("sum", "mean", "max", "min", "mul", "last")
OVER = "`over` $set `` custom<Keys>($over_keys) `along` custom<Groups>($along)"
"""The rows that an op visits, and its groups."""


class OverAlong(ValueOp):
    """An op over the rows of a set (`over %g[keys]`: over the stored rows of that domain), in the
    groups that `along` gives."""

    set = operand_def(SetType)
    over_keys = prop_def(ArrayAttr[StringAttr])
    along = prop_def(ArrayAttr[StringAttr])

    @property
    def over(self) -> Dom:
        """The rows that are visited. No retyping may change it."""
        return Dom(set_name(self.set), unstrs(self.over_keys))

    @property
    def along_keys(self) -> tuple[str, ...]:
        """The maps whose values make the groups."""
        return unstrs(self.along)

    def check_over(self, env: SetEnv) -> None:
        """Raises VerifyException where `over` is not in normal form."""
        over = self.over
        if over.keys and (n := env.norm(over.set, over.keys)) != over:
            raise VerifyException(f"over {over} is not in normal form: it means {n}")
        for k in self.along_keys:
            env.codomain(over.set, k)


@op_definition
class ReduceOp(OverAlong):
    """`inter.reduce KIND %x over %g[keys] along dst | () | (a, b)`

    Empty groups give 0 (mul: 1). `last` takes the value of each group's last row and needs
    `else %y` for groups without one. {zero_ties} on max and min only matters for the derivative:
    torch's scatter starts from 0, which counts as one more tie where the result is 0. {every} on
    last also matters for the derivative alone: each row of a group gets the whole cotangent, as
    torch's assignment to repeated indices does.
    """

    name = "inter.reduce"
    x = operand_def(RowsType)
    set = operand_def(SetType)
    otherwise = opt_operand_def(RowsType)
    kind = prop_def(StringAttr)
    zero_ties = opt_prop_def(UnitAttr)
    every = opt_prop_def(UnitAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"custom<Name>($kind) $x {OVER} (`else` $otherwise^)? {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        self.check_over(env)
        d = env.reduced(self.over, self.along_keys)
        env.readable(rows(self.x).dom, self.over)
        if self.otherwise is not None:
            env.readable(rows(self.otherwise).dom, d, "the value of `else`")
        return d

    def cap(self, env: SetEnv) -> Dom | None:
        return None

    def row(self) -> Row:
        kind, elem = self.kind.data, rows(self.x).elem
        if kind not in REDUCE_KINDS:
            raise VerifyException(f"kind {kind!r} is none of {', '.join(REDUCE_KINDS)}")
        if (kind == "last") != (self.otherwise is not None):
            raise VerifyException(
                "reduce last needs `else %y` for groups without a row"
                if kind == "last"
                else f"reduce {kind} of an empty group is known: drop the `else`"
            )
        if self.otherwise is not None and row_of(self.otherwise) != row_of(self.x):
            raise VerifyException(
                f"the value and that of `else` have different rows: {self.x.type} and "
                f"{self.otherwise.type}"
            )
        if self.zero_ties is not None and kind not in ("max", "min"):
            raise VerifyException(f"zero_ties is for max and min, reduce {kind} has no ties")
        if self.every is not None and kind != "last":
            raise VerifyException(f"every is for last, reduce {kind} takes all rows anyway")
        if kind == "mean" and not is_float(elem):
            raise VerifyException(f"a mean of {elem}: insert inter.cast to a float type")
        if kind != "last" and is_bool(elem):
            raise VerifyException(f"reduce {kind} of i1: insert inter.cast to a number type")
        return row_of(self.x)


@op_definition
class SoftmaxOp(OverAlong):
    """`inter.softmax %x over %g along dst`: exp(x - m) / sum of it, m the group's maximum; the
    groups are the rows of `over` that agree on `along`."""

    name = "inter.softmax"
    x = operand_def(RowsType)
    set = operand_def(SetType)
    traits = traits_def(Pure())
    assembly_format = f"$x {OVER} {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        self.check_over(env)
        over = self.over
        for k in self.along_keys:
            if env.is_partial(over.set, k):
                raise VerifyException(f"map {k} of {over.set} is partial: filter the set first")
        groups = env.along(over.set, self.along_keys)
        env.readable(groups, over, f"along ({', '.join(self.along_keys)})")
        env.readable(rows(self.x).dom, over)
        d = env.join([rows(self.x).dom, groups])
        return env.total(self, d if env.le(d, over) else over, over)

    def cap(self, env: SetEnv) -> Dom | None:
        return self.over

    def row(self) -> Row:
        if not is_float(rows(self.x).elem):
            raise VerifyException(f"softmax takes floats, not {rows(self.x).elem}")
        return row_of(self.x)


@op_definition
class CountOp(OverAlong):
    """`inter.count over %g along dst`: how many rows each group has, as a number of the result's
    element type."""

    name = "inter.count"
    set = operand_def(SetType)
    traits = traits_def(Pure(), Total())
    assembly_format = f"{OVER} {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        self.check_over(env)
        return env.reduced(self.over, self.along_keys)

    def cap(self, env: SetEnv) -> Dom | None:
        return None

    def row(self) -> Row:
        if is_bool(self.type.elem):
            raise VerifyException("a count is a number, not i1")
        return Row((), self.type.elem)


@op_definition
class DropoutOp(FixedOp):
    """`inter.dropout %x, %key over %N as %i at %c {p = 0.5, site = 0}`: each number is 0 with
    probability p, else it is divided by 1 - p.

    Which ones are dropped is a function of the key (rows<unit, i64>), the site, the number of the
    row and the number's place in the row; dialects/meaning/philox.py spells it out. The number of a
    row is its %i (one i64 a row), or without `as` its number in %N. Without `over` the operand is a
    single row, number 0. With `at` each row is one number, and its place that %c (an entry of a
    matrix in row %i and column %c is dropped as in the rows of the whole matrix).
    """

    name = "inter.dropout"
    x = operand_def(RowsType)
    key = operand_def(RowsType)
    where = var_operand_def(SetType | RowsType)  # a set, numbers of rows, of columns: or less
    p = prop_def(FloatAttr)
    site = prop_def(IntegerAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$x `,` $key custom<Where>($where) {TYPED}"

    @property
    def set(self) -> SSAValue | None:
        """The set of the rows; None where the operand is a single row."""
        return next((v for v in self.where if isinstance(v.type, SetType)), None)

    @property
    def numbers(self) -> SSAValue | None:
        """The number of each row where it is not the one in its set."""
        return next((v for v in self.where if isinstance(v.type, RowsType)), None)

    @property
    def column(self) -> SSAValue | None:
        """The place of each row's number in the row that it is of."""
        given = [v for v in self.where if isinstance(v.type, RowsType)]
        return given[1] if len(given) > 1 else None

    @property
    def probability(self) -> float:
        """p as a float."""
        return self.p.value.data

    @property
    def site_number(self) -> int:
        """The site as an integer."""
        return self.site.value.data

    def infer(self, env: SetEnv) -> Dom:
        d = ONE if self.set is None else Dom(set_name(self.set))
        env.readable(rows(self.x).dom, d)
        for v, what in ((self.numbers, "the number of a row"), (self.column, "its column")):
            if v is not None:
                env.readable(rows(v).dom, d, what)
        return d

    def row(self) -> Row:
        given = (self.set, self.numbers, self.column)
        if [v for v in given if v is not None] != list(self.where):
            raise VerifyException(
                "dropout is over at most one set, as at most one number a row at one column"
            )
        for v, what in ((self.numbers, "number"), (self.column, "column")):
            if v is not None and row_of(v) != Row((), i64):
                raise VerifyException(f"the {what} of a row is one i64, not {v.type}")
        if self.column is not None and rows(self.x).dims:
            raise VerifyException(f"what has a column is one number a row, not {rows(self.x)}")
        key = rows(self.key)
        if key.dom.set != UNIT or key.dims or key.elem != i64:
            raise VerifyException(f"the key is rows<unit, i64>, not {key}")
        if not 0 <= self.probability <= 1:
            raise VerifyException(f"p is a probability, not {self.probability}")
        if not 0 <= self.site_number < 2**32:
            raise VerifyException(f"the site is a number below 2^32, not {self.site_number}")
        if not is_float(rows(self.x).elem):
            raise VerifyException(f"dropout takes floats, not {rows(self.x).elem}")
        return row_of(self.x)


REDUCE_OPS = [ReduceOp, SoftmaxOp, CountOp, DropoutOp]
