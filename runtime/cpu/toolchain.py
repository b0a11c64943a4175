"""The system C compiler: found and probed once, its results cached and loaded.

`compile_source` turns C text into a shared object in the cache directory (see `cache`) under a hash
of the text, the flags, the compiler and, for ``-march=native``, the processor. The source is kept
beside it with the suffix ``.c``. Compiled code may assume what its flags say: OpenMP, no ``errno``
and no traps from math functions, but IEEE arithmetic otherwise (no ``-ffast-math``). Products and
sums are never contracted on the compiler's own account: a backward phase that computes a value
again would find other bits, and no tie with the maximum that the forward phase kept.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import cache
from ..cache import get_bytes, put_bytes
from . import threads

__all__ = [
    "CompileError",
    "Compiler",
    "NoCompiler",
    "Stats",
    "compile_source",
    "compiler",
    "default_march",
    "get_bytes",
    "load",
    "program_flags",
    "put_bytes",
    "sanitizer_environment",
    "stats",
    "vector_bytes",
]

FLAGS_VARIABLE = "GNNC_CFLAGS"
"""The environment variable with further flags, behind gnnc's own."""
_BASE = ("-std=gnu11", "-O3", "-fopenmp", "-fPIC", "-shared")
_OPTIONAL = (
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    # GCC 12 makes wrong numbers of choices by masks in small loops
    "-fno-tree-loop-if-convert",
    # and of rows of small products that it makes vectors of, beside vectors of ours
    "-fno-tree-forwprop",
    # where a loop over edges begins is a matter of luck else: up to 7 % of a GAT epoch
    "-falign-loops=32",
)
_SANITIZE = (
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
)
# GCC spreads the functions of one source over processes (through make)
_SPREAD = ("-flto=2", "-flto-partition=max")
_LIBRARIES = ("-lm",)
_PROBE = (
    "#include <math.h>\n#include <omp.h>\nint gnnc_probe(void) { return omp_get_max_threads(); }\n"
)


class NoCompiler(RuntimeError):
    """No usable C compiler; the message says what to install or which variable to set."""


class CompileError(RuntimeError):
    """The compiler rejected a source. The message holds the command, the compiler's output and the
    place of the source.
    """

    def __init__(self, command: list[str], output: str, source: Path) -> None:
        super().__init__(
            f"the C compiler failed; this is a bug in gnnc unless the compiler itself is broken\n"
            f"  command: {shlex.join(command)}\n  source: {source}\n{output.rstrip()}"
        )
        self.command = command
        self.output = output
        self.source = source


@dataclass(frozen=True)
class Compiler:
    """A probed compiler: what to run, what it is, the flags it takes and the vector width of the
    code it makes.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    march: str
    vector_bytes: int
    target: str
    """A hash of the compiler and of the instructions that its code may use; part of every cache
    key.
    """
    spreads: bool
    """Whether it compiles the functions of one source in several processes."""


@dataclass
class Stats:
    """How many sources this process compiled, and how many it found compiled (in memory or on
    disk).
    """

    compiled: int = 0
    hits: int = 0


@dataclass(frozen=True)
class _Recipe:
    source: str
    march: str
    sanitize: bool


_lock = threading.RLock()
_stats = Stats()
_compilers: dict[tuple[str, str], Compiler] = {}
_recipes: dict[Path, _Recipe] = {}
_loaded: dict[Path, ctypes.CDLL] = {}


def stats() -> Stats:
    """A copy of this process's counters."""
    with _lock:
        return Stats(_stats.compiled, _stats.hits)


def default_march() -> str:
    """``GNNC_MARCH``, else ``native``."""
    return os.environ.get("GNNC_MARCH") or "native"


def vector_bytes(march: str | None = None) -> int:
    """The width of a vector register in bytes: 64 with AVX-512, 32 with AVX, else 16."""
    return compiler(march).vector_bytes


def compiler(march: str | None = None) -> Compiler:
    """The C compiler (``$CC``, else ``cc``), probed for `march`. Raises :class:`NoCompiler`."""
    march = march or default_march()
    request = os.environ.get("CC") or "cc"
    with _lock:
        if (request, march) not in _compilers:
            _compilers[request, march] = _probe_cached(request, march)
        return _compilers[request, march]


def compile_source(source: str, *, march: str | None = None, sanitize: bool = False) -> Path:
    """The shared object of a C source, from the cache where it is there.

    `march` is a value of the compiler's ``-march`` (default: :func:`default_march`). With
    `sanitize` the object is built with the address and undefined-behaviour sanitizers; a process
    that loads it needs :func:`sanitizer_environment`. Raises :class:`CompileError` and
    :class:`NoCompiler`.
    """
    recipe = _Recipe(source, march or default_march(), sanitize)
    path = cache.directory() / f"{_key(recipe)}.so"
    with _lock:
        if path in _loaded:
            _stats.hits += 1
            return path
        _recipes[path] = recipe
    if cache.lookup(path) is None:
        with cache.exclusive(path):
            if cache.lookup(path) is None:
                _build(recipe, path)
                with _lock:
                    _stats.compiled += 1
                return path
    with _lock:
        _stats.hits += 1
    return path


def program_flags(march: str | None = None) -> tuple[str, ...]:
    """The flags for a program of its own, that runs as the shared objects do; without -march.

    Raises:
        NoCompiler: no usable compiler.
    """
    return tuple(f for f in compiler(march).flags if f not in ("-fPIC", "-shared"))


def load(path: Path) -> ctypes.CDLL:
    """Load a shared object made by :func:`compile_source`, once per process; calls release the
    interpreter lock.

    An entry that vanished since, or that the loader refuses, is built again once; a second refusal
    is raised as ``OSError``.
    """
    with _lock:
        if path not in _loaded:
            try:
                _loaded[path] = ctypes.CDLL(str(path))
            except OSError:
                if path not in _recipes:
                    raise
                _build(_recipes[path], path)
                _stats.compiled += 1
                _loaded[path] = ctypes.CDLL(str(path))
        return _loaded[path]


def sanitizer_environment() -> dict[str, str]:
    """Environment variables for a process that loads objects built with ``sanitize=True`` (leaks of
    the interpreter are not reported).
    """
    found = compiler()
    names = ["libasan.so"]
    if _is_clang(found):  # the name depends on how clang was built
        names = [f"libclang_rt.asan{suffix}.so" for suffix in (f"-{platform.machine()}", "")]
    paths = [_run([*found.command, f"-print-file-name={name}"]).strip() for name in names]
    runtime = next((path for path in paths if Path(path).is_absolute()), paths[0])
    return {
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _flags(recipe: _Recipe) -> list[str]:
    found = compiler(recipe.march)
    flags = [*found.flags, f"-march={recipe.march}"]
    if recipe.sanitize:
        flags += [*_SANITIZE, *(["-shared-libasan"] if _is_clang(found) else [])]
    return [*flags, *shlex.split(os.environ.get(FLAGS_VARIABLE, ""))]


def _processes(recipe: _Recipe) -> list[str]:
    """Flags for a compilation by as many processes as compiled code has threads."""
    count = threads.num_threads()
    if recipe.sanitize or count == 1 or not compiler(recipe.march).spreads:
        return []
    return [f"-flto={count}", *_SPREAD[1:]]


def _is_clang(found: Compiler) -> bool:
    return "clang" in found.version


def _key(recipe: _Recipe) -> str:
    parts = [recipe.source, compiler(recipe.march).target, *_flags(recipe)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _build(recipe: _Recipe, path: Path) -> None:
    source = path.with_suffix(".c")
    cache.write(source, recipe.source.encode())
    with tempfile.TemporaryDirectory(prefix="gnnc-") as scratch:
        output = Path(scratch) / "module.so"
        command = [
            *compiler(recipe.march).command,
            *_processes(recipe),
            *_flags(recipe),
            "-o",
            str(output),
            str(source),
            *_LIBRARIES,
        ]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise CompileError(command, result.stderr or result.stdout, source)
        cache.publish(path, output.read_bytes())


def _probe_cached(request: str, march: str) -> Compiler:
    """A probe runs the compiler a few times, so its result is kept for later processes, until
    compiler or processor change.
    """
    command = shlex.split(request)
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise NoCompiler(
            f"no C compiler: {request!r} was not found. Install one with OpenMP (Debian and "
            "Ubuntu: apt install gcc libc6-dev; Fedora: dnf install gcc; conda: conda install "
            "c-compiler), or set CC to the one to use"
        )
    real = Path(program).resolve()
    info = real.stat()
    wrapped = [request, str(real), str(info.st_size), str(info.st_mtime_ns), march, _processor()]
    makes = str(shutil.which("make"))
    key = "\0".join(["compiler-3", *wrapped, *_BASE, *_OPTIONAL, *_SPREAD, makes])
    if (data := get_bytes(key)) is not None:
        return _decoded(data)
    found = _probe(command, march)
    put_bytes(key, json.dumps(asdict(found)).encode())
    return found


def _decoded(data: bytes) -> Compiler:
    fields: dict[str, Any] = json.loads(data)
    return Compiler(
        command=tuple(fields["command"]),
        version=fields["version"],
        flags=tuple(fields["flags"]),
        march=fields["march"],
        vector_bytes=fields["vector_bytes"],
        target=fields["target"],
        spreads=fields["spreads"],
    )


def _probe(command: list[str], march: str) -> Compiler:
    fixed = [*command, *_BASE, f"-march={march}"]
    if failure := _try(fixed):
        raise NoCompiler(
            f"the C compiler {shlex.join(command)} cannot build an OpenMP library for "
            f"-march={march}. Install the C headers and the OpenMP library (Debian and Ubuntu: "
            "apt install gcc libc6-dev; for clang: libomp-dev), set CC to another compiler, or "
            f"set GNNC_MARCH to what it knows. It said:\n{failure}"
        )
    optional = list(_OPTIONAL)
    if _try([*fixed, *optional]):
        optional = [flag for flag in optional if not _try([*fixed, flag])]
    version = _run([*command, "--version"]).splitlines()[0]
    spreads = "clang" not in version and shutil.which("make") is not None
    spreads = spreads and not _try([*fixed, *optional, *_SPREAD])
    macros = _run([*command, f"-march={march}", "-dM", "-E", "-x", "c", os.devnull])
    width = 64 if "__AVX512F__" in macros else 32 if "__AVX__" in macros else 16
    # the predefined macros name the instructions in use; the processor's name decides the tuning as
    # well
    identity = [version, macros, _processor() if march == "native" else ""]
    target = hashlib.sha256("\0".join(identity).encode()).hexdigest()
    flags = (*_BASE, *optional)
    return Compiler(tuple(command), version, flags, march, width, target, spreads)


def _try(command: list[str]) -> str:
    """What the compiler says against building the probe with this command; empty when it builds."""
    with tempfile.TemporaryDirectory(prefix="gnnc-") as scratch:
        source = Path(scratch) / "probe.c"
        source.write_text(_PROBE)
        full = [
            *command,
            "-Werror",
            "-o",
            str(Path(scratch) / "probe.so"),
            str(source),
            *_LIBRARIES,
        ]
        result = subprocess.run(full, capture_output=True, text=True)
    return "" if result.returncode == 0 else result.stderr or f"exit status {result.returncode}"


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _processor() -> str:
    """What decides the meaning of ``-march=native``: the processor's name and instruction sets."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "cpu family", "model\t", "flags", "Features", "CPU part", "isa")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
