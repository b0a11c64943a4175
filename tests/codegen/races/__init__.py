"""Compiled phases under ThreadSanitizer: calls are recorded here and replayed by a C program whose
threads the sanitizer sees (omp_threads.c, replay.c)."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.program import PhaseOnGraph
from gnnc.runtime.sets.tables import Tables

from ..compiled import call_together

FOLDER = Path(__file__).parent
THREADS = "omp_threads.c"
NO_RANDOM_ADDRESSES = 0x0040000
"""ADDR_NO_RANDOMIZE of <sys/personality.h>."""
FLAGS = ("-std=gnu11", "-O1", "-g", "-fsanitize=thread", "-ffp-contract=off")
LINES = 60
"""Of a report, for messages."""


@dataclass
class Recorder:
    """Calls of phases: what went in, as replay.c reads it, and what came out."""

    data: bytes = b""
    calls: int = 0
    results: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    """The place in the replayed results and the array of each output."""
    _written: int = 0

    def __call__(self, phase: PhaseOnGraph, tables: Tables, arrays: Mapping[int, Any]) -> None:
        """Run a phase and record the call."""
        parts = [f"gnnc_{phase.phase.name}".encode().ljust(32, b"\0")]
        parts.append(numbers(len(phase.sizes), *phase.sizes))
        parts.append(numbers(len(phase.fixed)))
        outputs = {b.slot for b in phase.phase.outputs}
        places: list[tuple[int, Any]] = []
        for k, b in enumerate(phase.phase.buffers):
            if b["kind"] == "temporary":
                content = bytes(phase.bytes[k])
            elif b["kind"] in ("input", "output"):
                content = arrays[k].tobytes()
            else:
                content = table(phase, k)
            parts += [numbers(len(content)), content]
            if k in outputs:
                places.append((self._written, arrays[k]))
            self._written += len(content)
        call_together(phase, tables, arrays)
        self.data += b"".join(parts)
        self.calls += 1
        self.results += [(at, x.copy()) for at, x in places]

    def text(self) -> bytes:
        """The file of calls."""
        return numbers(self.calls) + self.data


def table(phase: PhaseOnGraph, place: int) -> bytes:
    """What a table of a phase holds; one that counts up is none."""
    size, address = phase.bytes[place], phase.fixed[place]
    if address:
        return ctypes.string_at(address, size)
    return np.arange(size // 4, dtype=np.int32).tobytes()


def numbers(*values: int) -> bytes:
    return np.array(values, np.int64).tobytes()


def build(folder: Path, sources: Mapping[str, str]) -> Path:
    """A program of C sources (by file name) with our threads, all under ThreadSanitizer."""
    command = [*toolchain.compiler().command, *FLAGS]
    objects: list[str] = []
    for name, text in {**sources, THREADS: (FOLDER / THREADS).read_text()}.items():
        source, made = folder / name, folder / f"{name}.o"
        source.write_text(text)
        openmp = [] if name == THREADS else ["-fopenmp", f"-march={toolchain.default_march()}"]
        subprocess.run([*command, *openmp, "-c", str(source), "-o", str(made)], check=True)
        objects.append(str(made))
    program = folder / "program"
    link = ["-rdynamic", *objects, "-ldl", "-lpthread", "-lm"]  # no -fopenmp: our threads alone
    subprocess.run([*command, *link, "-o", str(program)], check=True)
    return program


def report(program: Path, *arguments: str) -> str:
    """Runs a program; what the sanitizer reports, empty for no race."""
    with fixed_addresses():
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env={"TSAN_OPTIONS": "exitcode=66"},
        )
    if done.returncode not in (0, 66):
        raise RuntimeError(f"{program} ended with {done.returncode}:\n{done.stderr}")
    # a race may also end in an address that nobody has
    told = any(word in done.stderr for word in ("data race", "DEADLYSIGNAL"))
    assert (done.returncode == 66) == told, done.stderr
    return "\n".join(done.stderr.splitlines()[:LINES])


@contextmanager
def fixed_addresses() -> Generator[None]:
    """Children of this thread get no random addresses, which the sanitizer may not know."""
    personality = ctypes.CDLL(None).personality
    before = personality(ctypes.c_ulong(0xFFFFFFFF))  # asks only
    personality(ctypes.c_ulong(before | NO_RANDOM_ADDRESSES))
    try:
        yield
    finally:
        personality(ctypes.c_ulong(before))


def replay(folder: Path, source: str, recorded: Recorder, threads: int = 4) -> str:
    """What the sanitizer reports of the recorded calls of a program with this C source.

    Where it reports nothing the results are those that were recorded, but for rounding.
    """
    sources = {"phases.c": source, "replay.c": (FOLDER / "replay.c").read_text()}
    program = build(folder, sources)
    calls, results = folder / "calls", folder / "results"
    calls.write_bytes(recorded.text())
    found = report(program, str(threads), str(calls), str(results))
    if not found:
        compare(results.read_bytes(), recorded)
    return found


def compare(data: bytes, recorded: Recorder) -> None:
    """Every output is what it was when it was recorded."""
    for at, want in recorded.results:
        got = np.frombuffer(data, want.dtype, want.size, at).reshape(want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
