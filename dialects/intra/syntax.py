"""What the ops of `intra` share: types of rows and buffers, checks, the base of the ops."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Self, TypeGuard

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, Braces, FormattedOp, KnownTypes
from ..limits import need_short_row
from .directives import Group, IntraBraces, Loop, RowOf, Schedule

FLOATS = (f32, f64)
INTEGERS = (i32, i64)
ELEMENTS = (*FLOATS, *INTEGERS, i1)


def row_type(dims: Sequence[int], elem: Attribute) -> Attribute:
    """The type of one row inside a nest: a scalar for `()`, else a vector."""
    return _vector_type(tuple(dims), elem) if dims else elem


@functools.lru_cache(1 << 14)
def _vector_type(dims: tuple[int, ...], elem: Attribute) -> VectorType[Attribute]:
    """A type is made, and verified, once: types never change."""
    return VectorType(elem, dims)


def row_dims(t: Attribute) -> tuple[int, ...]:
    """Row dimensions of a scalar or vector type."""
    return tuple(t.get_shape()) if isinstance(t, VectorType) else ()


def length(v: SSAValue) -> int:
    """How many numbers a row holds."""
    return math.prod(row_dims(v.type))


def element_bytes(elem: Attribute) -> int:
    """What one number takes in a buffer; a truth value takes a byte."""
    return 1 if elem == i1 else 4 if elem in (f32, i32) else 8


def element(t: Attribute) -> Attribute:
    """Element type of a scalar, vector or memref type."""
    if isinstance(t, VectorType | MemRefType):
        return t.element_type  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return t


def row_bytes(v: SSAValue) -> int:
    """What a row takes in a buffer."""
    return element_bytes(element(v.type)) * length(v)


def buffer_type(dims: Sequence[int], elem: Attribute) -> MemRefType[Attribute]:
    """`memref<?x8x64xf32>`: rows with static row dimensions."""
    return _memref_type(tuple(dims), elem)


@functools.lru_cache(1 << 14)
def _memref_type(dims: tuple[int, ...], elem: Attribute) -> MemRefType[Attribute]:
    return MemRefType(elem, (DYNAMIC_INDEX, *dims))


def buffer_dims(v: SSAValue) -> tuple[int, ...]:
    """Row dimensions of a buffer: its shape without the leading row axis."""
    t = v.type
    assert isinstance(t, MemRefType)
    return tuple(t.get_shape()[1:])


def is_buffer_type(t: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """Whether `t` is that of a buffer."""
    return isinstance(t, MemRefType)


def row_of(buffer: SSAValue) -> Attribute:
    """The type of one row of a buffer."""
    return row_type(buffer_dims(buffer), element(buffer.type))


# ---------------------------------------------------------------- checks


def need(condition: bool, message: str | Callable[[], str]) -> None:
    """Raise a VerifyException with `message` unless `condition` holds; one that spells types is a
    function, for to print them takes longer than the check."""
    if not condition:
        raise VerifyException(message if isinstance(message, str) else message())


def need_row(t: Attribute, what: str) -> None:
    """Raise a VerifyException unless `t` is the type of a row: a scalar or a static vector."""
    elem = element(t)
    need(
        elem in ELEMENTS and not is_buffer_type(t),
        lambda: f"{what} is a row of f32, f64, i32, i64 or i1, not {t}: load it, or cast it",
    )
    need_short_row(row_dims(t))


def need_buffer(t: Attribute, what: str) -> None:
    """Raise a VerifyException unless `t` is `memref<?x..>` with static row dimensions."""
    shape = t.get_shape() if is_buffer_type(t) else ()
    rows_last = bool(shape) and shape[0] == DYNAMIC_INDEX and all(n > 0 for n in shape[1:])
    need(
        rows_last and element(t) in ELEMENTS,
        lambda: (
            f"{what} is memref<?x..> with constant row dimensions and rows of f32, f64, i32, i64 "
            f"or i1, not {t}"
        ),
    )
    need_short_row(shape[1:])


def one_element(types: Sequence[Attribute]) -> Attribute:
    """The element type that rows share. Raises a VerifyException where they have several."""
    found = list(dict.fromkeys(map(element, types)))
    need(
        len(found) == 1,
        lambda: f"rows of {' and '.join(map(str, found))} do not mix: add intra.cast",
    )
    return found[0]


# ---------------------------------------------------------------- ops


class IntraOp(FormattedOp):
    """Base of the ops of `intra`, written `mnemonic BODY {properties} : result-type`."""

    BRACES: ClassVar[type[Braces]] = IntraBraces
    custom_directives = (KnownTypes, RowOf, Loop, Group, Schedule)

    @classmethod
    def make(
        cls,
        operands: Sequence[SSAValue | Sequence[SSAValue] | None],
        types: Sequence[Attribute | Sequence[Attribute]] = (),
        **properties: Attribute | None,
    ) -> Self:
        """Build the op from its operands, result types and properties; None is one left out."""
        return cls.of_parts(operands, types, properties, {})


class RowOp(IntraOp):
    """A pure op on rows with one result."""

    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands {TYPED}"


def inside(op: Operation, parent: type[Operation]) -> Operation | None:
    """The nearest enclosing op of class `parent`, or None."""
    up = op.parent_op()
    while up is not None and not isinstance(up, parent):
        up = up.parent_op()
    return up
