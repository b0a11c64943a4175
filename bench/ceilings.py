"""What this machine can do at most: bytes read a second, in order and by rows that lie anywhere,
float32 operations a second, and exponential functions.

Reading is measured by the working set, summed over all threads, because caches are faster than
memory. Each thread reads a part of its own, in order; or rows of 64 and of 256 bytes at random
places of all of it, each asked for some rows before.
"""

from __future__ import annotations

import argparse
import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.openmp.printer import prelude
from ..frontend.tools.children import Message
from ..frontend.tools.memory import available
from ..frontend.tools.report import bytes_text, table
from ..runtime.cpu import toolchain
from ..runtime.cpu.threads import num_threads

KIB, MIB = 2**10, 2**20
SIZES = (
    *(32 * KIB, 64 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB, 10 * MIB),
    *(20 * MIB, 40 * MIB, 90 * MIB, 150 * MIB, 300 * MIB, 600 * MIB),
)
GATHERED = (64, 256)
"""Bytes of the rows that are gathered: a line of the caches, and a row of 64 numbers."""
TABLES = (MIB, 4 * MIB, 10 * MIB, 20 * MIB, 40 * MIB, 90 * MIB, 300 * MIB)
"""Bytes of the tables of these rows."""
AHEAD = 64
"""How many rows before it is read one is asked for: C reads so many entries behind their order."""
SECONDS = 0.03
"""How long one measurement takes at least; the best of `TRIES` counts."""
TRIES = 5
ELEMENT = 4


@dataclass(frozen=True)
class Ceilings:
    """`read` has (working set in bytes, bytes a second), ascending; `flops` is a second. `gather`
    has (bytes of a row, of the table, bytes a second), ascending, and `exps` is a second; they are
    empty and 0 in results of before they were measured."""

    threads: int
    read: tuple[tuple[int, float], ...]
    flops: float
    gather: tuple[tuple[int, int, float], ...] = ()
    exps: float = 0.0

    def bandwidth(self, working_set: float) -> float:
        """Bytes a second from a working set, between the measured ones by its logarithm."""
        return _between(self.read, working_set)

    def gathered(self, row: float, table: float) -> float:
        """Bytes a second of rows of so many bytes that lie anywhere in a table of so many; of
        narrower ones than a line of the caches a whole line is read."""
        if not self.gather:
            return self.bandwidth(table)
        by_row = [
            (width, _between([(t, rate) for w, t, rate in self.gather if w == width], table))
            for width in sorted({w for w, _, _ in self.gather})
        ]
        return _between(by_row, row) * min(row / by_row[0][0], 1)

    def higher(self, other: Ceilings) -> Ceilings:
        """The better of two measurements of equal working sets, one by one."""
        pairs = zip(self.read, other.read, strict=True)
        read = tuple((size, max(a, b)) for (size, a), (_, b) in pairs)
        both = zip(self.gather, other.gather, strict=True)
        gather = tuple((row, table, max(a, b)) for (row, table, a), (_, _, b) in both)
        flops, exps = max(self.flops, other.flops), max(self.exps, other.exps)
        return Ceilings(self.threads, read, flops, gather, exps)

    def data(self) -> Message:
        lists = {"read": [list(r) for r in self.read], "gather": [list(g) for g in self.gather]}
        return {"threads": self.threads, **lists, "flops": self.flops, "exps": self.exps}

    @staticmethod
    def of(data: Message) -> Ceilings:
        read = tuple((int(size), float(rate)) for size, rate in data["read"])
        gather = tuple((int(w), int(t), float(rate)) for w, t, rate in data.get("gather", ()))
        return Ceilings(data["threads"], read, data["flops"], gather, data.get("exps", 0.0))


def _between(known: Sequence[tuple[float, float]], size: float) -> float:
    """A rate at a size between those of known rates, by its logarithm."""
    logs = [math.log(at) for at, _ in known]
    return float(np.interp(math.log(max(size, 1)), logs, [rate for _, rate in known]))


def measure(threads: int | None = None, sizes: Sequence[int] = SIZES) -> Ceilings:
    """Measures with `threads` threads (None: as compiled programs use), in about eight seconds.

    Working sets that would take more than half of the memory that is left are skipped.

    Raises:
        NoCompiler, CompileError: from the tool chain.
    """
    threads = threads or num_threads()
    sizes = [size for size in sizes if size <= available() // 2]
    library = _library()
    sums = np.zeros(threads, np.float32)
    data = np.empty(max(sizes) // ELEMENT, np.float32)
    library.gnnc_fill(data.ctypes.data, data.size, threads)
    read: list[tuple[int, float]] = []
    for size in sizes:

        def seconds(repeats: int, count: int = size // ELEMENT) -> float:
            return library.gnnc_read(data.ctypes.data, count, repeats, threads, sums.ctypes.data)

        read.append((size, size * _best_rate(seconds)))
    flops = library.gnnc_round_flops() * threads

    def multiply_add(repeats: int) -> float:
        return library.gnnc_multiply_add(repeats, threads, sums.ctypes.data)

    def exp(repeats: int) -> float:
        return library.gnnc_exp(repeats, threads, sums.ctypes.data)

    gather = [
        (row, table, _gather_rate(library, data, row, table, sums))
        for row in GATHERED
        for table in TABLES
        if table <= max(sizes)
    ]
    exps = library.gnnc_round_exps() * threads * _best_rate(exp)
    rate = flops * _best_rate(multiply_add)
    return Ceilings(threads, tuple(read), rate, tuple(gather), exps)


def _gather_rate(
    library: ctypes.CDLL, data: NDArray[Any], row: int, table: int, sums: NDArray[Any]
) -> float:
    """Bytes a second of rows of so many bytes, at random places of the first so many of `data`."""
    rows = table // row
    count = max(rows, 1 << 16)  # all of the table, so that a part of it does not stay in a cache
    order = np.random.default_rng(0).integers(rows, size=count + AHEAD, dtype=np.int32)

    def seconds(repeats: int) -> float:
        given = data.ctypes.data, order.ctypes.data, count, row == max(GATHERED)
        return library.gnnc_gather(*given, repeats, sums.size, sums.ctypes.data)

    return count * row * _best_rate(seconds)


def _best_rate(seconds: Callable[[int], float]) -> float:
    """Repeats a second of work that `seconds(repeats)` does and times, in its best try."""
    repeats = 1
    while seconds(repeats) < SECONDS:
        repeats *= 2
    return max(repeats / seconds(repeats) for _ in range(TRIES))


def _library() -> ctypes.CDLL:
    text = (files("gnnc.bench") / "ceilings.c").read_text()
    narrow, wide = GATHERED
    sizes = f"enum {{ NARROW = {narrow}, WIDE = {wide}, AHEAD = {AHEAD} }};"
    source = f"{prelude(toolchain.vector_bytes())}\n{sizes}\n{text}"
    library = toolchain.load(toolchain.compile_source(source))
    address, count, threads = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    library.gnnc_fill.argtypes = [address, count, threads]
    library.gnnc_fill.restype = None
    library.gnnc_read.argtypes = [address, count, count, threads, address]
    library.gnnc_read.restype = ctypes.c_double
    library.gnnc_multiply_add.argtypes = [count, threads, address]
    library.gnnc_multiply_add.restype = ctypes.c_double
    library.gnnc_gather.argtypes = [address, address, count, threads, count, threads, address]
    library.gnnc_gather.restype = ctypes.c_double
    library.gnnc_exp.argtypes = [count, threads, address]
    library.gnnc_exp.restype = ctypes.c_double
    return library


# ---------------------------------------------------------------- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, help="None: as many as compiled programs use")


def measurements(args: argparse.Namespace) -> Iterator[Message]:
    yield measure(args.threads).data()


def report(result: Message, *, markdown: bool = False) -> str:
    """Tables of read bandwidths, in order and by rows, and the operations a second."""
    found = Ceilings.of(result)
    rows = [("working set", "GB/s"), *((bytes_text(s), f"{r / 1e9:.1f}") for s, r in found.read)]
    title = f"{found.threads} threads; {found.flops / 1e9:.0f} GFLOP/s of float32"
    title += f", {found.exps / 1e9:.1f} G/s of exp" if found.exps else ""
    lines = [title, "", table(rows, markdown=markdown)]
    if found.gather:
        by_row = [
            (bytes_text(of), f"{row} bytes", f"{rate / 1e9:.1f}") for row, of, rate in found.gather
        ]
        heading = "table", "of rows gathered", "GB/s"
        lines += ["", table([heading, *by_row], markdown=markdown)]
    return "\n".join(lines)
