"""C for products whose matrix, or whose sum, belongs to the group of a row: `%W[%i]`, `%sum[%i]`.

Rows of one group lie together, so a block of rows is cut into runs of equal index. A matrix is
packed when the index changes, unless it lies in memory as it is used. A sum is kept while the index
stays; that of a group which lies in one chunk of rows goes straight to the output, those that
chunks share go to two places a chunk, and are added in the order of the chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import buffer_dims
from ..common.c_types import CType
from ..common.products import Text, letter_steps, table_of
from ..common.writer import Writer
from .products import Operand, ProductCode

Take = Callable[[CType, str, int], None]


@contextmanager
def runs(out: Writer, table: str) -> Generator[None]:
    """A loop over the runs `r0` to `r1` of a block's rows with one index `group`."""
    with out.block("for (int r0 = 0, r1; r0 < rows; r0 = r1)"):
        out.line(f"const int64_t group = {table}[i0 + r0];")
        out.line("r1 = r0 + 1;")
        out.line(f"while (r1 < rows && {table}[i0 + r1] == group) ++r1;")
        yield


def shifted(at: Operand) -> Operand:
    """The rows from `r0` on."""
    return Operand(f"({at.address} + (int64_t)r0 * {at.pitch})", at.pitch)


class GroupedMatmul:
    """One `intra.matmul %x, %W[%i]` of a kernel."""

    def __init__(
        self, op: rows.MatmulOp, code: ProductCode, table: str, weight: str, name: str
    ) -> None:
        self.op, self.code, self.table, self.weight, self.name = op, code, table, weight, name

    def declare(self, out: Writer) -> None:
        """The packed matrix of the thread, and whose it is."""
        if self.op.packed is None:
            return
        size = self.code.padded_size(self.op)
        out.line(f"{self.code.c.name} {self.name}[{size}] __attribute__((aligned(64)));")
        out.line(f"int64_t {self.name}_g = -1;")

    def run(self, out: Writer, x: Operand, y: Operand, stream: bool) -> None:
        """The products of a block of rows."""
        matrix = f"({self.weight} + group * {math.prod(buffer_dims(self.op.weight))})"
        with runs(out, self.table):
            if self.op.packed is not None:
                with out.block(f"if (group != {self.name}_g)"):
                    self.code.pack(out, self.op, matrix, self.name)
                    out.line(f"{self.name}_g = group;")
                matrix = self.name
            at, into = shifted(x), shifted(y)
            self.code.matmul(out, self.op, at, into, matrix, "(r1 - r0)", stream)


class GroupedOuter:
    """One `intra.outer %a, %b, %sum[%i of %n]` of a kernel; `take` gives it scratch memory for
    each chunk."""

    def __init__(self, op: rows.OuterOp, code: ProductCode, text: Text, row: SSAValue) -> None:
        assert op.index is not None
        self.op, self.code = op, code
        self.table = table_of(op.index, row, text)
        self.output, self.count = text(op.buffer), text(op.at[1])
        self.size = code.padded_size(op)
        self.name = ""

    def prepare(self, out: Writer, take: Take, keys: CType) -> None:
        """Places for the sums that chunks share."""
        self.name = out.name("sums")
        take(self.code.c, f"{self.name}_shared", 2 * self.size)
        take(keys, f"{self.name}_key", 2)

    def declare(self, out: Writer) -> None:
        """The sum at hand of the thread; every row of the output is 0 to begin with."""
        c, row = self.code.c.name, math.prod(buffer_dims(self.op.buffer))
        out.line(f"{c} {self.name}[{self.size}] __attribute__((aligned(64)));")
        out.line("#pragma omp for schedule(static)")
        at = f"{self.output} + group * {row}"
        out.line(f"for (int64_t group = 0; group < {self.count}; ++group)")
        out.line(f"    memset({at}, 0, sizeof({c}) * {row});")

    def start(self, out: Writer) -> None:
        """At the start of chunk `c`."""
        out.line(f"int64_t {self.name}_g = -1;")
        out.line(f"{self.name}_key[2 * c] = {self.name}_key[2 * c + 1] = -1;")

    def run(self, out: Writer, a: Operand, b: Operand, stream: bool) -> None:
        """Add the products of a block of rows."""
        with runs(out, self.table):
            with out.block(f"if (group != {self.name}_g)"):
                self.finish(out)
                out.line(f"memset({self.name}, 0, sizeof({self.name}));")
                out.line(f"{self.name}_g = group;")
            at, by = shifted(a), shifted(b)
            self.code.outer(out, self.op, at, by, self.name, "(r1 - r0)", stream)

    def finish(self, out: Writer) -> None:
        """Put the sum at hand where it belongs: chunk `c` has the rows `lo` to `hi` of `n`."""
        name, c = self.name, self.code.c.name
        with out.block(f"if ({name}_g >= 0)"):
            out.line(f"const int before = lo > 0 && {self.table}[lo - 1] == {name}_g;")
            out.line(f"const int after = hi < size && {self.table}[hi] == {name}_g;")
            with out.block("if (before || after)"):
                out.line("const int64_t s = 2 * c + !before;")
                out.line(f"{name}_key[s] = {name}_g;")
                into = f"{name}_shared + s * {self.size}"
                out.line(f"memcpy({into}, {name}, sizeof({c}) * {self.size});")
            with out.block("else"):
                with self.numbers(out):
                    out.line(f"{self.at(f'{name}_g')} = {name}[{self.place()}];")

    def combine(self, out: Writer) -> None:
        """Add up the sums that chunks share, in order; those of one group follow each other."""
        n, c, name = self.op.sizes(), self.code.c.name, self.name
        pitch = self.code.sum_pitch(self.op)
        store = f"for (int f = 0; f < {n['f']}; ++f) {self.at('last')} = row[f];"
        out.line("#pragma omp for schedule(static)")
        with out.block(f"for (int m = 0; m < {n['b'] * n['k']}; ++m)"):
            out.line(f"{c} row[{pitch}];")
            out.line("int64_t last = -1;")
            with out.block("for (int64_t s = 0; s < 2 * chunks; ++s)"):
                out.line(f"const int64_t group = {name}_key[s];")
                out.line("if (group < 0) continue;")
                out.line(f"const {c} *shared = {name}_shared + s * {self.size} + m * {pitch};")
                with out.block("if (group != last)"):
                    out.line(f"if (last >= 0) {store}")
                    out.line("memset(row, 0, sizeof(row));")
                    out.line("last = group;")
                out.line(f"for (int f = 0; f < {pitch}; ++f) row[f] += shared[f];")
            out.line(f"if (last >= 0) {store}")

    @contextmanager
    def numbers(self, out: Writer) -> Generator[None]:
        """A loop over the numbers of a sum: row `m` of its matrices, column `f`."""
        n = self.op.sizes()
        with out.block(f"for (int m = 0; m < {n['b'] * n['k']}; ++m)"):
            with out.block(f"for (int f = 0; f < {n['f']}; ++f)"):
                yield

    def place(self) -> str:
        """Where number (m, f) of a sum in panels lies."""
        return f"m * {self.code.sum_pitch(self.op)} + f"

    def at(self, group: str) -> str:
        """Number (m, f) of the output's row for a group, whatever the order of its letters."""
        n, row = self.op.sizes(), math.prod(buffer_dims(self.op.buffer))
        step = letter_steps(self.op.spec.data.split("->")[1], self.op.buffer)
        batch = f"m / {n['k']} * {step.get('b', 0)}"
        inside = f"{batch} + m % {n['k']} * {step['k']} + f * {step['f']}"
        return f"{self.output}[{group} * {row} + {inside}]"
