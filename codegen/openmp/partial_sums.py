"""C for sums of which chunks of a nest's rows, or blocks of a round, have one each: cleared where
one begins, added up in order in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import length
from ..common.c_types import CType
from ..common.products import Text
from ..common.scalars import START, ctype_of, start_text
from ..common.writer import Writer
from .products import ProductCode
from .row_values import combine

LINE = 64
"""Bytes of a cache line, and of the longest vector."""
Sum = rows.OuterOp | rows.TotalOp


class PartialSums:
    """The partial sums of a kernel; `products` prints those of a type."""

    def __init__(self, out: Writer, text: Text, products: Callable[[CType], ProductCode]) -> None:
        self.out, self.text, self.products = out, text, products
        self.names: dict[Sum, str] = {}
        self.outputs: dict[Sum, str] = {}

    def add(self, op: Sum) -> tuple[str, int]:
        """The name of a sum's memory, and the numbers of a chunk there."""
        name = self.names[op] = self.out.name("partial")
        self.outputs[op] = self.text(op.buffer)
        if isinstance(op, rows.OuterOp):
            return name, self.products(ctype_of(op.a)).padded_size(op)
        return name, pitch(op)

    def of(self, without: Iterable[Sum]) -> list[tuple[Sum, str]]:
        """The sums and their names, but for some."""
        return [(op, name) for op, name in self.names.items() if op not in without]

    def start(self, without: Iterable[Sum] = (), condition: str = "") -> dict[SSAValue, str]:
        """Nothing yet in the partial sums of part `c`, where the condition holds: the names of what
        rows add to, by their buffers."""
        where = f"if ({condition}) " if condition else ""
        added: dict[SSAValue, str] = {}
        for op, name in self.of(without):
            if isinstance(op, rows.OuterOp):
                c = ctype_of(op.a)
                n = self.products(c).padded_size(op)
                self.out.line(f"{c.name} *{name}_c = {name} + c * {n};")
                self.out.line(f"memset({name}_c, 0, sizeof({c.name}) * {n});")
            else:
                c, n = ctype_of(op.value), length(op.value)
                start = start_text(START[op.kind.data], c)
                self.out.line(f"{c.name} *{name}_c = {name} + c * {pitch(op)};")
                self.out.line(f"{where}for (int f = 0; f < {n}; ++f) {name}_c[f] = {start};")
                added[op.buffer] = f"{name}_c"
        return added

    def combine(self, parts: str, without: Iterable[Sum] = ()) -> None:
        """Add up those of so many parts."""
        for op, name in self.of(without):
            if isinstance(op, rows.OuterOp):
                code = self.products(ctype_of(op.a))
                code.sum_partials(self.out, op, name, self.outputs[op], parts)
                continue
            c, n = ctype_of(op.value), length(op.value)
            start = start_text(START[op.kind.data], c)
            self.out.line("#pragma omp for schedule(static)")
            with self.out.block(f"for (int f = 0; f < {n}; ++f)"):
                self.out.line(f"{c.name} sum = {start};")
                step = combine(op.kind.data, "sum", f"{name}[k * {pitch(op)} + f]", c)
                self.out.line(f"for (int64_t k = 0; k < {parts}; ++k) sum = {step};")
                guard = "size ? sum : 0" if op.kind.data in ("max", "min") else "sum"
                self.out.line(f"{self.outputs[op]}[f] = {guard};")


def pitch(op: rows.TotalOp) -> int:
    """Numbers from one chunk's partial total to the next: whole cache lines, as each row adds to it
    while another thread's rows add to the next one.
    """
    c = ctype_of(op.value)
    return -(-length(op.value) * c.bytes // LINE) * LINE // c.bytes
