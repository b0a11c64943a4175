"""Shared objects of CUDA kernels that run on the host, and of the emulator's runtime part.

A program is the text of `emulator.h`, the device's text and the host's, compiled as one. Before each
access to memory the compiler puts a call (-fsanitize=thread) that the runtime part answers; that
part is compiled once, without such calls, and programs are linked with it. Everything is cached as
the objects of the C compiler are (see `cpu.toolchain`), under a hash of texts, flags and compiler.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import cache
from ..cpu.toolchain import CompileError, NoCompiler

_FOLDER = Path(__file__).parent
_COMMON = ("-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti")
_RUNTIME = (*_COMMON, "-O2")
_PROGRAM = (*_COMMON, "-O1", "-ffp-contract=off", "-Wno-unknown-pragmas")
_COPIES = ("memcpy", "memmove", "memset")
# GNU's tools give files of DWARF 5 wrong names where #line has changed them
_CHECKED = ("-g1", "-gdwarf-4", "-fsanitize=thread", *(f"-fno-builtin-{name}" for name in _COPIES))
_COMPLETE = "-Wl,-z,defs"  # what is nowhere is an error now, rather than in a launch
_WRAPPED = tuple(f"-Wl,--wrap={name}" for name in _COPIES)
_SANITIZED = (
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
)


def build(device: str, host: str = "", *, sanitize: bool = False) -> Path:
    """The shared object of a program, from the cache where it is there.

    `device` is CUDA C++: each kernel is followed by ``GNNC_EXPORT(name)``, and shared memory is
    declared by ``GNNC_SHARED(name);``. `host` is C that is C++ as well. With `sanitize` the program
    is built with the address and undefined-behaviour sanitizers in the place of the emulator's
    checks of memory; a process that loads it needs :func:`cpu.toolchain.sanitizer_environment`.

    Raises:
        NoCompiler: there is no C++ compiler.
        CompileError: it rejects the text; lines are those of `device` and `host`.
    """
    header = (_FOLDER / "emulator.h").read_text()
    source = f'{header}\n#line 1 "device"\n{device}\n#line 1 "host"\n{host}\n'
    library = _library()
    flags = (*_PROGRAM, *(_SANITIZED if sanitize else _CHECKED))
    link = _links(sanitize)
    path = _entry([source, str(library), *flags, *link])
    if cache.lookup(path) is None:
        with cache.exclusive(path):
            if cache.lookup(path) is None:
                text = path.with_suffix(".cpp")
                cache.write(text, source.encode())
                _compile([text], flags, [str(library), *link], path)
    return path


def _links(sanitize: bool) -> tuple[str, ...]:
    """Flags for the linker. Without -fsanitize=thread it takes no library of that sanitizer."""
    if not sanitize:
        return (_COMPLETE, *_WRAPPED)
    _, (_, real, *_) = _compiler()
    return (*_SANITIZED[2:], *(["-shared-libasan"] if "clang" in real else []))


def _library() -> Path:
    """The runtime part."""
    sources = sorted(_FOLDER.glob("*.cpp"))
    texts = [file.read_text() for file in (*sources, _FOLDER / "machine.h", _FOLDER / "memory.h")]
    path = _entry([*texts, *_RUNTIME])
    if cache.lookup(path) is None:
        with cache.exclusive(path):
            if cache.lookup(path) is None:
                _compile(sources, _RUNTIME, [_COMPLETE], path)
    return path


def _entry(parts: Sequence[str]) -> Path:
    key = "\0".join(["emulator-1", *_compiler()[1], *parts])
    return cache.directory() / f"{hashlib.sha256(key.encode()).hexdigest()}.so"


def _compile(sources: list[Path], flags: Sequence[str], link: Sequence[str], path: Path) -> None:
    """Compile `sources`, link them with `link` and publish the result at `path`."""
    command = _compiler()[0]
    with tempfile.TemporaryDirectory(prefix="gnnc-") as scratch:
        objects: list[str] = []
        for source in sources:
            objects.append(str(Path(scratch) / f"{source.stem}.o"))
            _run([*command, *flags, "-c", "-o", objects[-1], str(source)], source)
        output = Path(scratch) / "module.so"
        _run([*command, "-shared", "-o", str(output), *objects, *link, "-lm"], sources[0])
        cache.publish(path, output.read_bytes())


def _run(command: list[str], source: Path) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise CompileError(command, result.stderr or result.stdout, source)


def _compiler() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The C++ compiler's command, and what tells it from others."""
    return _identified(os.environ.get("CXX") or _beside(os.environ.get("CC") or "cc"))


def _beside(c_compiler: str) -> str:
    """The C++ compiler that comes with a C compiler: g++ with gcc, clang++-15 with clang-15."""
    words = shlex.split(c_compiler)
    folder, _, name = words[0].rpartition("/")
    for c, cxx in (("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")):
        if c in name:
            found = f"{folder}/" * bool(folder) + name.replace(c, cxx)
            return shlex.join([found, *words[1:]])
    return "c++"


@functools.cache
def _identified(request: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    command = shlex.split(request)
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise NoCompiler(
            f"no C++ compiler: {request!r} was not found, and kernels for CUDA need one to run on "
            "the host. Install one (Debian and Ubuntu: apt install g++; Fedora: dnf install "
            "gcc-c++; conda: conda install cxx-compiler), or set CXX to the one to use"
        )
    real = Path(program).resolve()
    info = real.stat()
    return tuple(command), (request, str(real), str(info.st_size), str(info.st_mtime_ns))
