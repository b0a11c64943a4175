"""C for products over a block of rows: row times matrix, and sums of outer products.

Tiles are `MR` rows by `NV` vectors of accumulators, as many as the register file holds (prelude.h
has the loops).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.intra import rows
from ..common.c_types import CType
from ..common.products import letter_steps
from ..common.writer import Writer

# rows of a tile by its number of vectors, for 32 and for 16 vector registers
TILE_ROWS = {64: {1: 12, 2: 12, 3: 8, 4: 6}, 32: {1: 8, 2: 6, 3: 4}, 16: {1: 8, 2: 6, 3: 4}}
# columns of the left operand in a tile of outer products: they divide a cache line, which is
# then used up by the next tile
TILE_COLUMNS = {64: {1: 16, 2: 8, 3: 8, 4: 4}, 32: {1: 8, 2: 4, 3: 4}, 16: {1: 8, 2: 4, 3: 4}}

PANEL_BYTES = 256 * 1024
"""What a panel of the matrix may take of the second-level cache while the tiles of a block of rows
go over it; a longer one is used in pieces.
"""
LINE_BYTES = 64
"""A cache line."""
PAGE_BYTES = 4096
"""Rows so far apart lie in the same lines of the first-level cache, which has few of each."""
SLAB_LINES = 2
"""Lines of each row in a slab of the left operand: with the right one and the sums it stays in the
first-level cache while all panels use it.
"""
PART_BYTES = 64 * 1024
"""Sums that a thread adds up in one go, where threads share them: they stay in the second-level
cache.
"""
STREAM_BYTES = 8 * 1024
"""Rows fetched ahead must not push out what is in use; longer rows the hardware fetches by
itself.
"""


@dataclass(frozen=True)
class Panels:
    """`width` columns cut into panels of at most `most` vectors of `lanes` numbers."""

    width: int
    lanes: int
    most: int

    @property
    def vectors(self) -> int:
        return -(-self.width // self.lanes)

    @property
    def padded(self) -> int:
        return self.vectors * self.lanes

    def runs(self) -> list[Run]:
        """Runs of equal panels: those of whole vectors, then the one with the rest."""
        many = self.width // self.lanes // self.most
        rest = self.vectors - many * self.most
        out: list[Run] = []
        end = many * self.most * self.lanes
        if many:
            out.append(Run(0, end, self.most, self.lanes))
        if rest:
            last = self.width - end - (rest - 1) * self.lanes
            out.append(Run(end, end + rest * self.lanes, rest, last))
        return out


@dataclass(frozen=True)
class Run:
    """Panels of `vectors` vectors over the columns `begin` to `end`; the last vector of each holds
    `last` numbers."""

    begin: int
    end: int
    vectors: int
    last: int

    def loop(self, lanes: int) -> str:
        """The head of a loop over the panels: `f` is a panel's first column."""
        return f"for (int f = {self.begin}; f < {self.end}; f += {self.vectors * lanes})"


def apart(numbers: int, lanes: int, c: CType) -> int:
    """Numbers from one row to the next, of as many that are whole vectors: rows a page apart, or
    several, would lie in the same lines of the cache."""
    return numbers + lanes if numbers * c.bytes % PAGE_BYTES == 0 else numbers


def tiles(count: int, tile: int) -> list[tuple[int, int, int]]:
    """(begin, end, tile) runs that cover `count`: whole tiles, then one of what is left."""
    whole = count // tile * tile
    runs = [(0, whole, tile)] if whole else []
    return runs if whole == count else [*runs, (whole, count, count - whole)]


def shorter(rows: int) -> list[int]:
    """Rows of a tile and of those for the rest of a block: one row alone waits for each of its sums
    before it adds to it again."""
    return sorted({rows, max(rows // 3, 1), 1}, reverse=True)


@dataclass(frozen=True)
class Operand:
    """A block of rows in memory: address of row 0, numbers from row to row."""

    address: str
    pitch: int


class ProductCode:
    """Prints the products of one kernel. `meanwhile` is a statement that tiles carry out now and
    then."""

    def __init__(self, c: CType, vector_bytes: int, panel: int, meanwhile: str = "(void)0") -> None:
        self.c, self.meanwhile = c, meanwhile
        self.panel = panel
        self.lanes = vector_bytes // c.bytes
        self.rows = TILE_ROWS[vector_bytes]
        self.columns = TILE_COLUMNS[vector_bytes]
        self.vector = f"{c.vector}{self.lanes}"

    def panels(self, width: int) -> Panels:
        return Panels(width, self.lanes, self.panel)

    # ------------------------------------------------------------ matmul

    def padded_size(self, op: rows.MatmulOp | rows.OuterOp) -> int:
        """Numbers of the packed matrix, or of one chunk's partial sum: (b, k, padded f)."""
        n = op.sizes()
        matrix = isinstance(op, rows.MatmulOp)
        columns = self.panels(n["f"]).padded if matrix else self.sum_pitch(op)
        return n["b"] * n["k"] * columns

    def sum_pitch(self, op: rows.OuterOp) -> int:
        """Numbers from one row of a partial sum to the next."""
        return apart(self.panels(op.sizes()["f"]).padded, self.lanes, self.c)

    def pack(self, out: Writer, op: rows.MatmulOp, weight: str, packed: str) -> None:
        """Copy the matrix into panels, zero-padded to whole vectors, whatever the order of its
        letters.
        """
        n = op.sizes()
        step = letter_steps(op.spec.data.split("->")[0].split(",")[1], op.weight)
        panels = self.panels(n["f"])
        with out.block(f"for (int b = 0; b < {n['b']}; ++b)"):
            for run in panels.runs():
                width = run.vectors * self.lanes
                with (
                    out.block(run.loop(self.lanes)),
                    out.block(f"for (int k = 0; k < {n['k']}; ++k)"),
                    out.block(f"for (int j = 0; j < {width}; ++j)"),
                ):
                    source = f"b * {step.get('b', 0)} + k * {step['k']} + (f + j) * {step['f']}"
                    into = f"b * {n['k'] * panels.padded} + f * {n['k']} + k * {width} + j"
                    out.line(f"{packed}[{into}] = f + j < {n['f']} ? {weight}[{source}] : 0;")

    def matmul(
        self,
        out: Writer,
        op: rows.MatmulOp,
        x: Operand,
        y: Operand,
        packed: str,
        count: str,
        stream: bool,
    ) -> None:
        """`y[r] = x[r] . W` for `count` rows of the block; with `stream` the next tile's rows are
        fetched ahead.
        """
        n = op.sizes()
        panels = self.panels(n["f"])
        lead, batch = n["l"], n["b"]
        assert lead == 1 or (x.pitch == lead * batch * n["k"] and y.pitch == lead * batch * n["f"])
        lda, ldc = (x.pitch, y.pitch) if lead == 1 else (batch * n["k"], batch * n["f"])
        with out.block(f"for (int b = 0; b < {batch}; ++b)"):
            for run in panels.runs():
                with out.block(run.loop(self.lanes)):
                    out.line(f"const int m = {count} * {lead};")
                    whole = y.pitch >= panels.padded and lead == batch == 1
                    cut = self.lanes if whole else run.last
                    width = run.vectors * self.lanes
                    for begin, end, depth in tiles(n["k"], self.depth(width)):
                        more = "k > 0" if depth < n["k"] else "0"
                        with out.block(f"for (int k = {begin}; k < {end}; k += {depth})"):
                            out.line("int r = 0;")
                            for mr in shorter(self.rows[run.vectors]):
                                a = f"{x.address} + b * {n['k']} + k + (int64_t)r * {lda}"
                                w = f"{packed} + b * {n['k'] * panels.padded} + f * {n['k']}"
                                c = f"{y.address} + b * {n['f']} + f + (int64_t)r * {ldc}"
                                short = mr * lda * self.c.bytes <= STREAM_BYTES
                                streams = stream and mr == self.rows[run.vectors]
                                ahead = "f == 0" if streams and short else "0"
                                shape = f"{self.vector}, {self.lanes}, {mr}, {run.vectors}, {depth}"
                                args = f"A, {lda}, W, C, {ldc}, {cut}, {ahead}, {more}"
                                with out.block(f"for (; r + {mr} <= m; r += {mr})"):
                                    out.line(f"const {self.c.name} *A = {a};")
                                    out.line(f"const {self.c.name} *W = {w} + k * {width};")
                                    out.line(f"{self.c.name} *C = {c};")
                                    out.line(f"MATMUL_TILE({shape}, {args}, {self.meanwhile});")

    def depth(self, width: int) -> int:
        """Rows of a panel of `width` columns that the cache keeps; whole cache lines of the left
        operand."""
        return max(PANEL_BYTES // (width * self.c.bytes) // 16 * 16, 64)

    # ------------------------------------------------------------ outer

    def outer(
        self,
        out: Writer,
        op: rows.OuterOp,
        a: Operand,
        b: Operand,
        partial: str,
        count: str,
        stream: bool,
    ) -> None:
        """`partial += a[r] (x) b[r]` over `count` rows of the block.

        Tiles walk `a` across its rows, a slab of a few columns after the other. All panels of `b`
        use a slab while it is near, so a block of long rows is read once. With `stream` the slab
        that follows is fetched meanwhile: the hardware does not foresee it.
        """
        n = op.sizes()
        lead, batch = n["l"], n["b"]
        assert lead == 1 or (a.pitch == lead * batch * n["k"] and b.pitch == lead * batch * n["f"])
        lda, ldb = (a.pitch, b.pitch) if lead == 1 else (batch * n["k"], batch * n["f"])
        panels, line = self.panels(n["f"]), LINE_BYTES // self.c.bytes
        ldc = self.sum_pitch(op)
        members = f"(int64_t){count} * {lead}"
        pointers = (
            f"const {self.c.name} *A = {a.address} + b * {n['k']} + k;",
            f"const {self.c.name} *B = {b.address} + b * {n['f']} + f;",
            f"{self.c.name} *C = {partial} + (b * {n['k']} + k) * {ldc} + f;",
        )
        where = f"{members}, A, {lda}, B, {ldb}, C, {ldc}"
        with out.block(f"for (int b = 0; b < {batch}; ++b)"):
            for begin, end, slab in tiles(n["k"], SLAB_LINES * line):
                with out.block(f"for (int s = {begin}; s < {end}; s += {slab})"):
                    fetch = "0, 0"
                    if stream:  # behind the last slab comes the first of the next block
                        first = f"{members} * {lda} - s"
                        out.line(f"const int64_t next = s + {slab} < {n['k']} ? {slab} : {first};")
                        fetch = f"f == 0 && (k - s) % {line} == 0, next"
                    for run in panels.runs():
                        with out.block(run.loop(self.lanes)):
                            arguments = f"{where}, {fetch}, {self.meanwhile}"
                            self.outer_tiles(out, run, slab, pointers, arguments)

    def outer_shared(
        self, out: Writer, op: rows.OuterOp, a: Operand, b: Operand, total: str, block: int
    ) -> None:
        """`total += a[r] (x) b[r]` over the rows from `lo` to `hi`, which threads share by the
        columns of `a`; they do not wait for each other.

        A thread sums the rows up near by, `block` at a time, and adds that to the output, whatever
        the order of its letters: where `lo` is 0, there was nothing before. The slab that follows
        is fetched meanwhile.
        """
        n, c = op.sizes(), self.c.name
        lead, batch = n["l"], n["b"]
        assert lead == 1 or (a.pitch == lead * batch * n["k"] and b.pitch == lead * batch * n["f"])
        lda, ldb = (a.pitch, b.pitch) if lead == 1 else (batch * n["k"], batch * n["f"])
        panels, line = self.panels(n["f"]), LINE_BYTES // self.c.bytes
        pointers = (
            f"const {c} *A = {a.address} + b * {n['k']} + k;",
            f"const {c} *B = {b.address} + b * {n['f']} + f;",
            f"{c} *C = near + (k - p) * {panels.padded} + f;",
        )
        where = f"(int64_t)rows * {lead}, A, {lda}, B, {ldb}, C, {panels.padded}"
        fetch = f"f == 0 && (k - s) % {line} == 0, next, (void)0"
        for begin, end, part in tiles(n["k"], self.part_columns(n["k"], panels.padded)):
            out.line("#pragma omp for schedule(dynamic, 1) collapse(2) nowait")
            with (
                out.block(f"for (int b = 0; b < {batch}; ++b)"),
                out.block(f"for (int p = {begin}; p < {end}; p += {part})"),
            ):
                out.line(f"{c} near[{part * panels.padded}] __attribute__((aligned(64)));")
                out.line("memset(near, 0, sizeof(near));")
                with out.block(f"for (int64_t i0 = lo; i0 < hi; i0 += {block})"):
                    out.line(f"const int rows = (int)min64({block}, hi - i0);")
                    for start, stop, slab in tiles(part, SLAB_LINES * line):
                        with out.block(f"for (int s = p + {start}; s < p + {stop}; s += {slab})"):
                            first = f"(int64_t)rows * {lead} * {lda} - (s - p)"
                            ahead = f"s + {slab} < p + {part} ? {slab} : {first}"
                            out.line(f"const int64_t next = {ahead};")
                            for run in panels.runs():
                                with out.block(run.loop(self.lanes)):
                                    self.outer_tiles(out, run, slab, pointers, f"{where}, {fetch}")
                self.add_near(out, op, total, part)

    def part_columns(self, columns: int, padded: int) -> int:
        """Columns of the left operand that are one thread's: whole slabs. There are four parts or
        more where there are as many slabs, and an even number, for two threads."""
        slab = SLAB_LINES * LINE_BYTES // self.c.bytes
        slabs = -(-columns // slab)
        most = max(min(PART_BYTES // (slab * padded * self.c.bytes), -(-slabs // 4)), 1)
        parts = 2 * -(-slabs // (2 * most))
        return -(-slabs // parts) * slab

    def add_near(self, out: Writer, op: rows.OuterOp, total: str, part: int) -> None:
        """Add the sums of a part to the output; numbers that follow each other there one after the
        other."""
        n, step = op.sizes(), letter_steps(op.spec.data.split("->")[1], op.buffer)
        loops = {
            "k": f"for (int k = 0; k < {part}; ++k)",
            "f": f"for (int f = 0; f < {n['f']}; ++f)",
        }
        outer, inner = ("k", "f") if step["f"] == 1 else ("f", "k")
        at = f"b * {step.get('b', 0)} + (p + k) * {step['k']} + f * {step['f']}"
        with out.block(loops[outer]), out.block(loops[inner]):
            out.line(f"{self.c.name} *into = {total} + {at};")
            padded = self.panels(n["f"]).padded
            out.line(f"*into = (lo > 0 ? *into : 0) + near[k * {padded} + f];")

    def outer_tiles(
        self, out: Writer, run: Run, slab: int, pointers: Sequence[str], arguments: str
    ) -> None:
        """The tiles of a slab of `slab` columns from `s` on, in one panel."""
        for begin, end, mr in tiles(slab, self.columns[run.vectors]):
            with out.block(f"for (int k = s + {begin}; k < s + {end}; k += {mr})"):
                for pointer in pointers:
                    out.line(pointer)
                shape = f"{self.vector}, {self.lanes}, {mr}, {run.vectors}"
                out.line(f"OUTER_TILE({shape}, {arguments});")

    def sum_partials(
        self, out: Writer, op: rows.OuterOp, partials: str, total: str, chunks: str
    ) -> None:
        """Add the chunks' partial sums in order into the output, whatever the order of its
        letters; a vector of columns at a time, or each number would take a cache line.
        """
        n, step = op.sizes(), letter_steps(op.spec.data.split("->")[1], op.buffer)
        pitch, size = self.sum_pitch(op), self.padded_size(op)
        out.line("#pragma omp for schedule(static)")
        with out.block(f"for (int m = 0; m < {n['b'] * n['k']}; ++m)"):
            with out.block(f"for (int f = 0; f < {n['f']}; f += {self.lanes})"):
                out.line(f"{self.vector} sum = {{0}};")
                at = f"{partials} + (int64_t)c * {size} + (int64_t)m * {pitch} + f"
                add = f"sum += LOAD({self.vector}, {at});"
                out.line(f"for (int64_t c = 0; c < {chunks}; ++c) {add}")
                batch = f"m / {n['k']} * {step.get('b', 0)}"
                into = f"{batch} + m % {n['k']} * {step['k']} + (f + j) * {step['f']}"
                columns = f"j < {self.lanes} && f + j < {n['f']}"
                out.line(f"for (int j = 0; {columns}; ++j) {total}[{into}] = sum[j];")
