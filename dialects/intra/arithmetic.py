"""Arithmetic on whole rows. A row is one SSA value, a scalar or a vector: printers choose
registers, tiles and tails."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, var_operand_def

from ..assembly import RESULT, op_definition
from ..pointwise import POINTWISE, PointwiseSpec
from .syntax import FLOATS, INTEGERS, RowOp, element, need, need_row, one_element, row_dims

FOLDS = ("sum", "max", "min")
"""How row dimensions are reduced."""


@op_definition
class ConstOp(RowOp):
    """A row filled with one number: a double for floats, an i64 for integers and i1."""

    name = "intra.const"
    value = prop_def(FloatAttr | IntegerAttr)
    assembly_format = RESULT

    def verify_(self) -> None:
        need_row(self.result.type, "the result")
        elem = element(self.result.type)
        is_float = isinstance(self.value, FloatAttr)
        text = "1.0 : f64" if elem in FLOATS else "1 : i64"
        need(is_float == (elem in FLOATS), lambda: f"a constant of {elem} is spelled like `{text}`")


@op_definition
class ApplyOp(RowOp):
    """`intra.apply %a, %b {fn = "add"}`: a pointwise function, broadcast aligned right."""

    name = "intra.apply"
    xs = var_operand_def()
    fn = prop_def(StringAttr)
    params = opt_prop_def(DictionaryAttr)

    def verify_(self) -> None:
        fn = self.fn.data
        spec = POINTWISE.get(fn)
        if spec is None:
            need(False, f"{fn!r} is not in the pointwise vocabulary (dialects/pointwise)")
            return
        need(len(self.xs) == spec.arity, f"{fn} takes {spec.arity} operands, got {len(self.xs)}")
        for x in self.xs:
            need_row(x.type, f"an operand of {fn}")
        self.check_parameters(spec)
        types = [x.type for x in self.xs]
        want = broadcast_dims([row_dims(t) for t in types])
        have = row_dims(self.result.type)
        need(have == want, f"operands broadcast to {want}, the result is {have}")
        elem = result_element(spec, types)
        got = element(self.result.type)
        need(got == elem, lambda: f"{fn} of these operands gives {elem}, the result is {got}")

    def parameters(self) -> dict[str, float]:
        """The constants of the function by name."""
        out: dict[str, float] = {}
        if self.params is not None:
            for k, v in self.params.data.items():
                assert isinstance(v, FloatAttr)
                out[k] = v.value.data
        return out

    def check_parameters(self, spec: PointwiseSpec) -> None:
        """Raises VerifyException for a parameter that is missing or unknown."""
        given = dict(self.params.data) if self.params is not None else {}
        for p in spec.parameters:
            text = f"{spec.name} needs `params = {{{p.name} = 0.1 : f64}}`"
            need(p.name in given or not p.required, text)
        known = {p.name for p in spec.parameters}
        for k, v in given.items():
            need(k in known, f"{spec.name} has no parameter {k!r}: drop it")
            need(isinstance(v, FloatAttr), f"parameter {k} is a double, as in `{k} = 0.1 : f64`")


def broadcast_dims(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """NumPy's broadcast of row shapes, aligned right. Raises VerifyException for others."""
    rank = max(map(len, shapes))
    out: list[int] = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        wide = {n for n in sizes if n != 1}
        text = ", ".join(map(str, shapes))
        need(len(wide) < 2, f"row shapes {text} do not broadcast: reshape or broadcast one")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def result_element(spec: PointwiseSpec, types: Sequence[Attribute]) -> Attribute:
    """The element type that a function gives. Raises VerifyException for types it does not take."""
    if spec.operands == "where":
        condition = element(types[0])
        need(
            condition == i1,
            lambda: f"the condition of where is i1, not {condition}: compare first",
        )
        return one_element(types[1:])
    elem = one_element(types)
    takes = {"float": FLOATS, "integer": INTEGERS, "number": (*FLOATS, *INTEGERS), "bool": (i1,)}
    allowed = takes.get(spec.operands)
    need(
        allowed is None or elem in allowed,
        lambda: f"{spec.name} takes {', '.join(map(str, allowed or ()))}, not {elem}: cast first",
    )
    return i1 if spec.result == "bool" else elem


@op_definition
class CastOp(RowOp):
    """Another element type."""

    name = "intra.cast"
    x = operand_def()

    def verify_(self) -> None:
        need_row(self.x.type, "the operand")
        need_row(self.result.type, "the result")
        a, b = row_dims(self.x.type), row_dims(self.result.type)
        need(a == b, f"a cast keeps the row shape {a}, the result is {b}")


@op_definition
class FoldOp(RowOp):
    """`intra.fold %x {kind = "sum", dims = [0]}`: reduce row dimensions."""

    name = "intra.fold"
    x = operand_def()
    kind = prop_def(StringAttr)
    dims = prop_def(ArrayAttr[IntAttr])

    def verify_(self) -> None:
        need_row(self.x.type, "the operand")
        kind, shape = self.kind.data, row_dims(self.x.type)
        dims = [d.data for d in self.dims]
        need(kind in FOLDS, f"kind {kind!r} is none of {', '.join(FOLDS)}")
        inside = all(0 <= d < len(shape) for d in dims) and len(set(dims)) == len(dims)
        need(inside, f"{dims} are not distinct dimensions of a row of {len(shape)}")
        want = tuple(n for i, n in enumerate(shape) if i not in dims)
        need(row_dims(self.result.type) == want, f"the result is a row of shape {want}")
        one_element([self.x.type, self.result.type])


SPEC = re.compile(r"^([a-zA-Z]*),([a-zA-Z]*)->([a-zA-Z]*)$")


@op_definition
class DotOp(RowOp):
    """`intra.dot %a, %b {spec = "hk,hk->h"}`: an einsum of two rows."""

    name = "intra.dot"
    a = operand_def()
    b = operand_def()
    spec = prop_def(StringAttr)

    def letters(self) -> tuple[str, str, str]:
        """The letters of both operands and of the result."""
        found = SPEC.match(self.spec.data)
        need(found is not None, f'spec {self.spec.data!r} is not like "hk,hk->h"')
        a, b, out = found.groups() if found else ("", "", "")
        return a, b, out

    def sizes(self) -> dict[str, int]:
        """Extent of each letter."""
        a, b, out = self.letters()
        n = letter_sizes([(a, row_dims(self.a.type)), (b, row_dims(self.b.type))])
        need(set(out) <= set(n), f"letters of the result {out!r} must occur in an operand")
        need(len(set(out)) == len(out), f"a letter of the result {out!r} is named twice")
        return n

    def verify_(self) -> None:
        n = self.sizes()
        want = tuple(n[c] for c in self.letters()[2])
        need(row_dims(self.result.type) == want, f"the result is a row of shape {want}")
        need_floats([self.a.type, self.b.type, self.result.type])


def letter_sizes(operands: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, int]:
    """Extent of each letter of (letters, dimensions). Raises VerifyException where two differ."""
    n: dict[str, int] = {}
    for letters, dims in operands:
        need(len(letters) == len(dims), f"{letters!r} does not fit a row of shape {dims}")
        need(len(set(letters)) == len(letters), f"a letter of {letters!r} is named twice")
        for c, d in zip(letters, dims, strict=True):
            need(n.setdefault(c, d) == d, f"letter {c!r} stands for {n[c]} and {d}")
    return n


def need_floats(types: Sequence[Attribute]) -> None:
    """Raises VerifyException unless all rows have one floating element type."""
    elem = one_element(types)
    need(elem in FLOATS, f"products are of f32 or f64, not {elem}: cast first")


@op_definition
class DropoutOp(RowOp):
    """`intra.dropout %x, %key, %row`: the mask is a function of (key, site, row, column). The row
    is that of the nest, or any number; so is the column of a single number, which comes last."""

    name = "intra.dropout"
    x = operand_def()
    key = operand_def(i64)
    row = operand_def()
    column = opt_operand_def(i64)
    p = prop_def(FloatAttr)
    site = prop_def(IntegerAttr)

    def verify_(self) -> None:
        need_floats([self.x.type])
        need(self.result.type == self.x.type, f"dropout keeps the row's type {self.x.type}")
        t = self.row.type
        need(t in (IndexType(), i64), f"the row is an index or an i64, not {t}")
        single = self.column is None or self.x.type in FLOATS
        need(single, f"what has a column is one number, not {self.x.type}")
        p, site = self.p.value.data, self.site.value.data
        need(0 <= p <= 1, f"p is a probability, not {p}")
        need(0 <= site < 2**32, f"site is a number of 32 bits, not {site}")
