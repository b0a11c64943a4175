"""Pointwise ops: one per entry of the vocabulary in dialects/pointwise, named `inter.<name>`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import FloatAttr, i1
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, op_definition
from ..pointwise import POINTWISE, OperandKind, PointwiseSpec
from .base import Row, ValueOp
from .sets import Total
from .types import RowsType, is_bool, is_float, is_integer, rows


def broadcast_dims(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """NumPy's broadcast of row shapes, aligned right. Raises VerifyException."""
    rank = max(map(len, shapes))
    out: list[int] = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            text = " and ".join("x".join(map(str, s)) or "scalar" for s in shapes)
            raise VerifyException(
                f"row shapes {text} do not broadcast (aligned right, equal or 1): insert "
                "inter.reshape"
            )
        out.append(wide.pop() if wide else 1)
    return tuple(out)


class PointwiseOp(ValueOp):
    """`mnemonic %a, %b {parameters}`; operands broadcast, aligned right."""

    SPEC: ClassVar[PointwiseSpec]
    xs = var_operand_def(RowsType)
    assembly_format = f"$xs {TYPED}"

    def parameters(self) -> dict[str, float]:
        """The constants that were given, by name."""
        out: dict[str, float] = {}
        for p in self.SPEC.parameters:
            attr = self.properties.get(p.name)
            if isinstance(attr, FloatAttr):
                out[p.name] = attr.value.data
        return out

    def row(self) -> Row:
        if len(self.xs) != self.SPEC.arity:
            raise VerifyException(f"takes {self.SPEC.arity} operands, got {len(self.xs)}")
        dims = broadcast_dims([rows(x).dims for x in self.xs])
        return Row(dims, self._elem(self.xs))

    def _elem(self, xs: Sequence[SSAValue]) -> TypeAttribute:
        elems = [rows(x).elem for x in xs]
        if self.SPEC.operands == "where":
            if not is_bool(elems[0]):
                raise VerifyException(f"the condition of where is i1, not {elems[0]}")
            elems = elems[1:]
        if len(set(elems)) > 1:
            raise VerifyException(
                f"operands of types {' and '.join(str(e) for e in elems)}: insert inter.cast"
            )
        if not _ACCEPTS[self.SPEC.operands](elems[0]):
            raise VerifyException(f"takes {_TEXT[self.SPEC.operands]}, not {elems[0]}")
        return i1 if self.SPEC.result == "bool" else elems[0]


_ACCEPTS: dict[OperandKind, Callable[[Attribute], bool]] = {
    "float": is_float,
    "integer": is_integer,
    "number": lambda elem: not is_bool(elem),
    "bool": is_bool,
    "any": lambda _: True,
    "where": lambda _: True,
}
_TEXT = {"float": "floats", "integer": "integers", "number": "numbers", "bool": "i1"}


def _define(spec: PointwiseSpec) -> type[PointwiseOp]:
    traits = traits_def(Pure(), Total()) if spec.total else traits_def(Pure())
    body: dict[str, object] = {
        "__doc__": f"`inter.{spec.name}`: see dialects/pointwise.",
        "__module__": __name__,
        "name": f"inter.{spec.name}",
        "SPEC": spec,
        "__annotations__": {"SPEC": ClassVar[PointwiseSpec]},
        "traits": traits,
    }
    for p in spec.parameters:
        body[p.name] = prop_def(FloatAttr) if p.required else opt_prop_def(FloatAttr)
    made: Any = op_definition(type(spec.class_name, (PointwiseOp,), body))
    return cast(type[PointwiseOp], made)


POINTWISE_OPS: dict[str, type[PointwiseOp]] = {n: _define(s) for n, s in POINTWISE.items()}
"""The op class of every pointwise function, by name."""

AddOp = POINTWISE_OPS["add"]
NegOp = POINTWISE_OPS["neg"]
