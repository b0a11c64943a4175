"""Products of tiles of rows: calls of the templates in products.cuh, and sums that blocks keep.

Where a matrix or a sum belongs to the group of a row, a tile is cut into runs of equal index, for
rows of one group lie together. A sum stays in registers while the index does. That of a group which
lies in one block's rows goes straight to the output, those that blocks share go to two places a
block, and are added in the order of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.schedule import WARP
from ...dialects.intra.syntax import buffer_dims, length
from ..common.c_types import I64, CType
from ..common.products import Text, letter_steps, table_of
from ..common.scalars import ctype_of
from ..common.writer import Writer
from .rooms import Workspace
from .tiles import far_numbers


@dataclass(frozen=True)
class Operand:
    """A tile: its name, and the line that declares it."""

    name: str
    declaration: str


@contextmanager
def runs(out: Writer, table: str) -> Generator[None]:
    """A loop over the runs `r0` to `r1` of a tile's rows with one index `group`."""
    with out.block("for (int r0 = 0, r1; r0 < rows; r0 = r1)"):
        out.line(f"const int64_t group = {table}[i0 + r0];")
        out.line("r1 = r0 + 1;")
        out.line(f"while (r1 < rows && {table}[i0 + r1] == group) ++r1;")
        yield


class Products:
    """The products of one kernel: tiles of at most `rows` rows, by blocks of `threads`."""

    def __init__(self, threads: int, rows: int) -> None:
        self.threads, self.rows = threads, rows
        self.element: CType | None = None
        """Of the slab that they take while they run, where there is a product."""

    def matmul(
        self, out: Writer, op: rows.MatmulOp, x: str, y: str, text: Text, row: SSAValue
    ) -> None:
        """The products of a tile."""
        c, n = ctype_of(op.x), op.sizes()
        step = letter_steps(op.spec.data.split("->")[0].split(",")[1], op.weight)
        sizes = [c.name, self.threads, self.rows, n["l"], n["b"], n["k"], n["f"]]
        sizes += [step.get("b", 0), step["k"], step["f"], length(op.x), length(op.result)]
        given = ", ".join(map(str, sizes))
        self.need(c)
        call, weight = f"matmul_tile<{given}>", text(op.weight)
        if op.index is None:
            out.line(f"{call}(rows, {x}, {weight}, {y}, slab);")
            return
        with runs(out, table_of(op.index, row, text)):
            at, into = f"{x} + r0 * {length(op.x)}", f"{y} + r0 * {length(op.result)}"
            matrix = f"{weight} + group * {math.prod(buffer_dims(op.weight))}"
            out.line(f"{call}(r1 - r0, {at}, {matrix}, {into}, slab);")

    def outer(self, op: rows.OuterOp) -> str:
        """The type of a sum of outer products."""
        c, n = ctype_of(op.a), op.sizes()
        sizes = [c.name, self.threads, self.rows, n["l"], n["b"], n["k"], n["f"]]
        kind = f"OuterTile<{', '.join(map(str, [*sizes, length(op.a), length(op.b)]))}>"
        self.need(c)
        return kind

    def need(self, c: CType) -> None:
        """Note that a product of a type needs a slab."""
        if self.element is None or c.bytes > self.element.bytes:
            self.element = c


class Sum:
    """One `intra.outer` of a kernel: the block's sum, and its place for all blocks."""

    def __init__(
        self,
        op: rows.OuterOp,
        products: Products,
        workspace: Workspace,
        text: Text,
        row: SSAValue,
        chunks: int,
    ) -> None:
        self.op, self.text, self.chunks = op, text, chunks
        self.c = ctype_of(op.a)
        self.kind = products.outer(op)
        self.count = math.prod(buffer_dims(op.buffer))
        self.name = f"sum{workspace.bytes // 256}"
        self.partial = workspace.take(self.c, self.places() * self.count)
        self.far = f"({self.c.name} *)nullptr"
        if apart := far_numbers(self.c.bytes, products.threads, self.count):
            far = workspace.take(self.c, chunks * apart)
            self.far = f"({far} + chunk * {apart})"
        step = letter_steps(op.spec.data.split("->")[1], op.buffer)
        self.steps = f"{step.get('b', 0)}, {step['k']}, {step['f']}"

    def places(self) -> int:
        """Sums that all blocks hand on."""
        return self.chunks

    def declare(self, out: Writer) -> None:
        """The sum at hand."""
        out.line(f"{self.kind} {self.name};")
        out.line(f"{self.name}.clear({self.far});")

    def add(self, out: Writer, a: str, b: str) -> None:
        """Add the products of a tile."""
        out.line(f"{self.name}.add(rows, {a}, {b}, slab, {self.far});")

    def store(self, to: str) -> str:
        """The line that writes the sum at hand."""
        return f"{self.name}.template store<{self.steps}>({to}, {self.far});"

    def finish(self, out: Writer) -> None:
        """Hand the block's sum on."""
        out.line(self.store(f"{self.partial} + chunk * {self.count}"))

    def zero(self) -> tuple[str, str, str] | None:
        """The buffer that begins as 0, the numbers of its rows, and their count."""
        return None

    def combine(self, out: Writer) -> list[int]:
        """Add up the sums of all blocks; returns how many columns there are."""
        into = self.text(self.op.buffer)
        c = self.c.name
        out.line(f"add_chunks<{c}>({self.partial}, chunks, {self.count}, {into}, shared_memory);")
        return [self.count]


class GroupedSum(Sum):
    """One `intra.outer .. %sum[%i of %n]`."""

    def __init__(
        self,
        op: rows.OuterOp,
        products: Products,
        workspace: Workspace,
        text: Text,
        row: SSAValue,
        chunks: int,
    ) -> None:
        super().__init__(op, products, workspace, text, row, chunks)
        assert op.index is not None
        self.table = table_of(op.index, row, text)
        self.a, self.b = length(op.a), length(op.b)
        self.keys = workspace.take(I64, self.places())

    def places(self) -> int:
        return 2 * self.chunks

    def declare(self, out: Writer) -> None:
        super().declare(out)
        out.line(f"int64_t {self.name}_g = -1;")
        out.line(f"if (threadIdx.x < 2) {self.keys}[2 * chunk + threadIdx.x] = -1;")
        out.line("__syncthreads();")

    def add(self, out: Writer, a: str, b: str) -> None:
        with runs(out, self.table):
            with out.block(f"if (group != {self.name}_g)"):
                self.finish(out)
                out.line(f"{self.name}.clear({self.far});")
                out.line(f"{self.name}_g = group;")
            at, by = f"{a} + r0 * {self.a}", f"{b} + r0 * {self.b}"
            out.line(f"{self.name}.add(r1 - r0, {at}, {by}, slab, {self.far});")

    def finish(self, out: Writer) -> None:
        name, size = self.name, self.text_size()
        with out.block(f"if ({name}_g >= 0)"):
            out.line(f"const bool before = lo > 0 && {self.table}[lo - 1] == {name}_g;")
            out.line(f"const bool after = hi < {size} && {self.table}[hi] == {name}_g;")
            with out.block("if (before || after)"):
                out.line("const int64_t s = 2 * chunk + !before;")
                out.line(f"if (threadIdx.x == 0) {self.keys}[s] = {name}_g;")
                out.line(self.store(f"{self.partial} + s * {self.count}"))
            with out.block("else"):
                into = f"{self.text(self.op.buffer)} + {name}_g * {self.count}"
                out.line(self.store(into))

    def text_size(self) -> str:
        """The size of the nest, whose rows the table has."""
        nest = self.op.parent_op()
        assert isinstance(nest, rows.TraverseOp)
        return self.text(nest.size)

    def zero(self) -> tuple[str, str, str] | None:
        return self.text(self.op.buffer), str(self.count), self.text(self.op.at[1])

    def combine(self, out: Writer) -> list[int]:
        into, c = self.text(self.op.buffer), self.c.name
        given = f"{self.partial}, {self.keys}, chunks, {self.count}, {into}"
        out.line(f"add_shared<{c}>({given});")
        return [min(self.count, 64 * WARP)]
