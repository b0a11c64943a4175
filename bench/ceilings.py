"""What this machine can do at most: bytes read a second, and float32 operations a second.

Reading is measured by the working set, summed over all threads, because caches are faster than
memory. Each thread reads a part of its own, in order.
"""

from __future__ import annotations

import argparse
import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

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
SECONDS = 0.03
"""How long one measurement takes at least; the best of `TRIES` counts."""
TRIES = 5
ELEMENT = 4


@dataclass(frozen=True)
class Ceilings:
    """`read` has (working set in bytes, bytes a second), ascending; `flops` is a second."""

    threads: int
    read: tuple[tuple[int, float], ...]
    flops: float

    def bandwidth(self, working_set: float) -> float:
        """Bytes a second from a working set, between the measured ones by its logarithm."""
        sizes = [math.log(size) for size, _ in self.read]
        rates = [rate for _, rate in self.read]
        return float(np.interp(math.log(max(working_set, 1)), sizes, rates))

    def higher(self, other: Ceilings) -> Ceilings:
        """The better of two measurements of equal working sets, one by one."""
        pairs = zip(self.read, other.read, strict=True)
        read = tuple((size, max(a, b)) for (size, a), (_, b) in pairs)
        return Ceilings(self.threads, read, max(self.flops, other.flops))

    def data(self) -> Message:
        return {"threads": self.threads, "read": [list(r) for r in self.read], "flops": self.flops}

    @staticmethod
    def of(data: Message) -> Ceilings:
        read = tuple((int(size), float(rate)) for size, rate in data["read"])
        return Ceilings(data["threads"], read, data["flops"])


def measure(threads: int | None = None, sizes: Sequence[int] = SIZES) -> Ceilings:
    """Measures with `threads` threads (None: as compiled programs use), in about three seconds.

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

    return Ceilings(threads, tuple(read), flops * _best_rate(multiply_add))


def _best_rate(seconds: Callable[[int], float]) -> float:
    """Repeats a second of work that `seconds(repeats)` does and times, in its best try."""
    repeats = 1
    while seconds(repeats) < SECONDS:
        repeats *= 2
    return max(repeats / seconds(repeats) for _ in range(TRIES))


def _library() -> ctypes.CDLL:
    prelude = (files("gnnc.codegen.openmp") / "prelude.h").read_text()
    text = (files("gnnc.bench") / "ceilings.c").read_text()
    source = f"#define VECTOR_BYTES {toolchain.vector_bytes()}\n{prelude}\n{text}"
    library = toolchain.load(toolchain.compile_source(source))
    address, count, threads = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    library.gnnc_fill.argtypes = [address, count, threads]
    library.gnnc_fill.restype = None
    library.gnnc_read.argtypes = [address, count, count, threads, address]
    library.gnnc_read.restype = ctypes.c_double
    library.gnnc_multiply_add.argtypes = [count, threads, address]
    library.gnnc_multiply_add.restype = ctypes.c_double
    return library


# ---------------------------------------------------------------- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, help="None: as many as compiled programs use")


def measurements(args: argparse.Namespace) -> Iterator[Message]:
    yield measure(args.threads).data()


def report(result: Message, *, markdown: bool = False) -> str:
    """A table of read bandwidths, and the operations a second."""
    found = Ceilings.of(result)
    rows = [("working set", "GB/s"), *((bytes_text(s), f"{r / 1e9:.1f}") for s, r in found.read)]
    title = f"{found.threads} threads; {found.flops / 1e9:.0f} GFLOP/s of float32"
    return "\n".join([title, "", table(rows, markdown=markdown)])
