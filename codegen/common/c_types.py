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
    """Neighbouring numbers of a row from `offset` on: one C vector of `width` lanes, or a scalar
    where width is 1. The last `dead` lanes lie behind the end of the row: what they hold is no
    number of it, and is neither read nor written there.
    """

    offset: int
    width: int
    dead: int = 0

    @property
    def count(self) -> int:
        """Numbers of the row."""
        return self.width - self.dead

    def type(self, c: CType) -> str:
        return c.name if self.width == 1 else f"{c.vector}{self.width}"

    def mask(self, c: CType) -> str:
        return "int" if self.width == 1 else f"{c.mask}{self.width}"


def pieces(length: int, lanes: int, offset: int = 0, *, masked: bool = False) -> list[Piece]:
    """Cut `length` numbers into vectors of `lanes`, and the rest into falling powers of two, so
    that no access leaves the row; where accesses are `masked`, the rest is the shortest vector that
    holds it.
    """
    whole = length // lanes
    out = [Piece(offset + k * lanes, lanes) for k in range(whole)]
    offset, length = offset + whole * lanes, length % lanes
    while length:
        width = 1 << (length.bit_length() - 1)
        if masked and width < length:
            return [*out, Piece(offset, 2 * width, 2 * width - length)]
        out.append(Piece(offset, width))
        offset += width
        length -= width
    return out


@dataclass(frozen=True)
class Vectors:
    """The vectors of a nest: their bytes, and whether parts of them are read and written."""

    bytes: int
    masked: bool

    def lanes(self, c: CType) -> int:
        return self.bytes // c.bytes

    def pieces(self, length: int, c: CType, offset: int = 0) -> list[Piece]:
        """A row of `length` numbers, or that behind its first `offset`."""
        return pieces(length, self.lanes(c), offset, masked=self.masked)

    def padded(self, length: int, c: CType) -> int:
        """Numbers that a row takes in memory whose last vector is read and written as a whole."""
        if c is I1:  # as many in a vector as there are numbers beside them, of either type
            return -(-length // self.lanes(F32)) * self.lanes(F32) if self.masked else length
        found = self.pieces(length, c) if c.vector else []
        return found[-1].offset + found[-1].width if found else length
