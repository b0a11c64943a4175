"""How element types and row pieces are spelled in C."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, f32, f64, i1, i32, i64
from xdsl.ir import Attribute


@dataclass(frozen=True)
class CType:
    """An element type: its C name in registers, in memory, its size, and whether vectors of it
    exist.
    """

    name: str
    memory: str
    bytes: int
    suffix: str
    vector: str | None = None
    mask: str | None = None


F32 = CType("float", "float", 4, "f", "f32x", "m32x")
F64 = CType("double", "double", 8, "", "f64x", "m64x")
I32 = CType("int32_t", "int32_t", 4, "i")
I64 = CType("int64_t", "int64_t", 8, "i")
I1 = CType("int", "uint8_t", 1, "i")

_TYPES: dict[Attribute, CType] = {f32: F32, f64: F64, i1: I1, i32: I32, i64: I64}


def ctype(elem: Attribute) -> CType:
    """The C spelling of an element type; indices are int64_t."""
    if isinstance(elem, IndexType):
        return I64
    if elem not in _TYPES:
        raise TypeError(f"no C type for {elem}; cast to f32, f64, i32, i64 or i1")
    return _TYPES[elem]


@dataclass(frozen=True)
class Piece:
    """`width` neighbouring numbers of a row from `offset` on: one C vector, or a scalar where width
    is 1.
    """

    offset: int
    width: int

    def type(self, c: CType) -> str:
        return c.name if self.width == 1 else f"{c.vector}{self.width}"

    def mask(self, c: CType) -> str:
        return "int" if self.width == 1 else f"{c.mask}{self.width}"


def pieces(length: int, lanes: int, offset: int = 0) -> list[Piece]:
    """Cut `length` numbers into powers of two, `lanes` at most, so that no access leaves the
    row.
    """
    out: list[Piece] = []
    width = lanes
    while length:
        while width > length:
            width //= 2
        out.append(Piece(offset, width))
        offset += width
        length -= width
    return out
