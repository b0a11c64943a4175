"""C for one nest: a loop over its rows, in which one op after the other computes its row.

A row of several numbers is an array, one of a single number a variable. Sums over all rows begin
before the loop and lie where they end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.bindings import pitch, root
from ...dialects.intra.syntax import buffer_dims, length
from ..common.scalars import START, combined, ctype_of, looked_up, start_text
from ..common.scratch import Scratch
from ..common.writer import Writer
from . import row_ops

STACK_ROW = 4096
"""Bytes of a row that lies on the stack; longer ones are scratch memory."""


class NestCode:
    """The body of the C function of a nest; `names` are those of its sizes and buffers."""

    def __init__(self, nest: rows.TraverseOp, names: Mapping[SSAValue, str]) -> None:
        self.nest = nest
        self.out = Writer(1)
        self.text: dict[SSAValue, str] = dict(names)
        """The C name of a row, or the expression of an index."""
        self.scratch: list[Scratch] = []
        self.written = nest.writes()

    def body(self) -> str:
        """The lines of the function. Raises PassFailedException for an op without C."""
        size = self.text[self.nest.size]
        self.start_sums(size)
        self.text[self.nest.row] = "i"
        with self.out.block(f"for (int64_t i = 0; i < {size}; ++i)"):
            self.ops(self.nest.body.block.ops)
        return self.out.text()

    def start_sums(self, size: str) -> None:
        """What is reduced over all rows, before the first. Of no rows, extremes are 0."""
        for op in self.nest.body.walk():
            if isinstance(op, rows.TotalOp):
                start = start_text(START[op.kind.data], ctype_of(op.value))
                if op.kind.data in ("max", "min"):
                    start = f"{size} ? {start} : 0"
                self.loop([length(op.value)], ["f"], f"{self.stored(op.buffer)('f')} = {start};")
            elif isinstance(op, rows.OuterOp):
                count = f"{self.text[op.at[1]]} * " if op.at else ""
                self.out.line(f"for (int64_t f = 0; f < {count}{_row_length(op.buffer)}; ++f)")
                self.out.line(f"    {self.text[op.buffer]}[f] = 0;")

    # ------------------------------------------------------------ rows

    def declare(self, v: SSAValue) -> None:
        """A variable for a row."""
        c, n = ctype_of(v), length(v)
        name = self.text[v] = self.out.name("v")
        if n * c.bytes > STACK_ROW:
            self.scratch.append(Scratch(name, c, n))
        else:
            self.out.line(f"{c.memory} {name}{'' if n == 1 else f'[{n}]'};")

    def element(self, v: SSAValue) -> row_ops.Element:
        """The numbers of a row."""
        name = self.text[v]
        return (lambda _: name) if length(v) == 1 else (lambda at: f"{name}[{at}]")

    def loop(self, dims: Sequence[int], letters: Sequence[str], line: str) -> None:
        """A line for every index; dimensions of 1 need no loop, and no letter in the line."""
        depth = self.out.depth
        for n, d in zip(dims, letters, strict=True):
            if n > 1:
                self.out.line(f"for (int {d} = 0; {d} < {n}; ++{d})")
                self.out.depth += 1
        self.out.line(line)
        self.out.depth = depth

    def index(self, v: SSAValue, text: str) -> None:
        """A variable for an index, or for one as a number."""
        self.text[v] = self.out.name("s")
        self.out.line(f"const int64_t {self.text[v]} = {text};")

    # ------------------------------------------------------------ ops

    def ops(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        match op:
            case rows.StageOp():
                self.ops(list(op.body.block.ops)[:-1])
                for r, x in zip(op.results, op.yielded.values, strict=True):
                    self.text[r] = self.text[x]
            case rows.SegmentOp():
                self.segment(op)
            case rows.FirstOp():
                self.text[op.result] = "0"
            case rows.LookupOp():
                table = self.text[op.table]
                self.index(op.result, looked_up(op.table, table, self.text[op.row]))
            case rows.LengthOp():
                offsets, row = self.text[op.offsets], self.text[op.row]
                self.index(op.result, f"{offsets}[{row} + 1] - {offsets}[{row}]")
            case rows.PositionOp():
                self.index(op.result, self.text[op.row])
            case rows.CountOp():
                self.index(op.result, self.text[op.size])
            case rows.LoadOp():
                self.load(op)
            case rows.StoreOp():
                self.store(op)
            case rows.TotalOp():
                self.total(op)
            case rows.MatmulOp():
                self.matmul(op)
            case rows.OuterOp():
                self.outer(op)
            case _:
                row_ops.emit(self, op)

    def segment(self, op: rows.SegmentOp) -> None:
        """A loop over the members of a group."""
        offsets, row = self.text[op.offsets], self.text[op.row]
        kinds = [k.data for k in op.kinds]
        for r, kind in zip(op.results, kinds, strict=True):
            self.declare(r)
            row_ops.clear(self, r, kind)
        p = self.text[op.position] = self.out.name("p")
        head = f"for (int64_t {p} = {offsets}[{row}]; {p} < {offsets}[{row} + 1]; ++{p})"
        with self.out.block(head):
            yielded = op.yielded
            self.ops([o for o in op.body.block.ops if o is not yielded])
            for r, x, kind in zip(op.results, yielded.values, kinds, strict=True):
                acc, c = self.element(r)("f"), ctype_of(r)
                line = f"{acc} = {combined(kind, acc, self.element(x)('f'), c)};"
                self.loop([length(r)], ["f"], line)
        for r, kind in zip(op.results, kinds, strict=True):
            if kind in ("max", "min"):
                with self.out.block(f"if ({offsets}[{row}] == {offsets}[{row} + 1])"):
                    row_ops.clear(self, r)

    def stored(self, buffer: SSAValue, row: SSAValue | None = None) -> row_ops.Element:
        """The numbers of a row of a buffer, by default of the only one."""
        name, apart = self.text[buffer], pitch(buffer)
        first = "0" if row is None else self.text[row] + f" * {apart}" * (apart > 1)
        if _row_length(buffer) == 1:
            return lambda _: f"{name}[{first}]"
        return lambda at: f"{name}[{at}]" if first == "0" else f"{name}[{first} + {at}]"

    def load(self, op: rows.LoadOp) -> None:
        """A row where it lies, or a copy where the nest writes rows of the buffer."""
        c, row, n = ctype_of(op.result), self.text[op.row], length(op.result)
        missing = None if op.otherwise is None else f"{row} < 0"
        if n > 1 and root(op.buffer) not in self.written:
            address = f"{self.text[op.buffer]} + {row} * {pitch(op.buffer)}"
            if op.otherwise is not None:
                address = f"{missing} ? {self.text[op.otherwise]} : {address}"
            self.text[op.result] = self.out.name("v")
            self.out.line(f"const {c.memory} *{self.text[op.result]} = {address};")
            return
        self.declare(op.result)
        x = self.stored(op.buffer, op.row)("f")
        if op.otherwise is not None:
            x = f"{missing} ? {self.element(op.otherwise)('f')} : {x}"
        self.loop([n], ["f"], f"{self.element(op.result)('f')} = {x};")

    def store(self, op: rows.StoreOp) -> None:
        to = self.stored(op.buffer, op.row)("f")
        self.loop([length(op.value)], ["f"], f"{to} = {self.element(op.value)('f')};")

    def total(self, op: rows.TotalOp) -> None:
        acc, x = self.stored(op.buffer)("f"), self.element(op.value)("f")
        line = f"{acc} = {combined(op.kind.data, acc, x, ctype_of(op.value))};"
        self.loop([length(op.value)], ["f"], line)

    def matmul(self, op: rows.MatmulOp) -> None:
        self.declare(op.result)
        row_ops.clear(self, op.result)
        y, x, w = self.element(op.result), self.element(op.x), self.stored(op.weight, op.index)
        row_ops.add_products(self, op.spec.data, op.sizes(), y, x, w)

    def outer(self, op: rows.OuterOp) -> None:
        total, a, b = self.stored(op.buffer, op.index), self.element(op.a), self.element(op.b)
        row_ops.add_products(self, op.spec.data, op.sizes(), total, a, b)


def _row_length(buffer: SSAValue) -> int:
    return math.prod(buffer_dims(buffer))
