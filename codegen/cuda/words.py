"""Numbers of rows in memory, several at once where they lie so."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.c_types import I1, CType
from ..common.writer import Writer
from .indices import Index
from .rooms import VECTOR


class WordCode:
    """Prints how numbers of a row are read and written."""

    def __init__(self, out: Writer) -> None:
        self.out = out

    def bind(self, c: CType, text: str) -> str:
        """A fresh variable."""
        name = self.out.name("v")
        self.out.line(f"const {c.name} {name} = {text};")
        return name

    def read(self, c: CType, address: str, aligned: int, at: Index, tile: int) -> list[str]:
        """Read numbers of a row in memory, several at once where they lie so."""
        together = self.together(c, aligned, at, tile)
        out: list[str] = []
        for j in range(0, tile, together):
            place = f"{address} + {at.plus(Index.at(j * at.step)).text}"
            if together == 1:
                out.append(self.bind(c, f"*({place})"))
                continue
            name = self.out.name("q")
            kind = f"tiles::Pack<{c.memory}, {together}>"
            self.out.line(f"const {kind} {name} = *(const {kind} *)({place});")
            out += [f"{name}.v[{k}]" for k in range(together)]
        return out

    def store(self, c: CType, address: str, aligned: int, at: Index, xs: Sequence[str]) -> None:
        """Write numbers of a row."""
        together = self.together(c, aligned, at, len(xs))
        for j in range(0, len(xs), together):
            place = f"{address} + {at.plus(Index.at(j)).text}"
            if together == 1:
                cast = "(uint8_t)" if c is I1 else ""
                self.out.line(f"*({place}) = {cast}({xs[j]});")
                continue
            kind, cast = f"tiles::Pack<{c.memory}, {together}>", f"({c.memory})"
            text = ", ".join(f"{cast}({x})" for x in xs[j : j + together])
            self.out.line(f"*({kind} *)({place}) = {kind}{{{{{text}}}}};")

    @staticmethod
    def together(c: CType, aligned: int, at: Index, tile: int) -> int:
        """Numbers of a tile that lie in one aligned vector."""
        most = min(tile, VECTOR // c.bytes)
        lie = at.step == 1 and at.multiple % most == 0 and aligned % most == 0
        return most if lie else 1
