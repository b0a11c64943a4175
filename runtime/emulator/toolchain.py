"""Shared objects of CUDA kernels that run on the host, and of the emulator's runtime part.

A program is the text of `emulator.h`, the device's text and the host's, compiled as one. Before
each access to memory the compiler puts a call (-fsanitize=thread) that the runtime part answers;
that part is compiled once, without such calls, and programs are linked with it. Everything is
cached as the objects of the C compiler are (see `cpu.toolchain`), under a hash of texts, flags and
compiler.
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
    _publish(path, source, flags, [str(library), *link])
    return path


def _links(sanitize: bool) -> tuple[str, ...]:
    """Flags for the linker. Without -fsanitize=thread it takes no library of that sanitizer."""
    if not sanitize:
        return (_COMPLETE, *_WRAPPED)
    _, (_, real, *_) = _compiler()
    return (*_SANITIZED[2:], *(["-shared-libasan"] if "clang" in real else []))


def _library() -> Path:
    """The runtime part, whose files are compiled as one."""
    names = sorted(file.name for file in _FOLDER.glob("*.cpp"))
    headers = ("machine.h", "memory.h")
    source = "".join(f'#include "{name}"\n' for name in names)
    path = _entry([source, *((_FOLDER / n).read_text() for n in (*names, *headers)), *_RUNTIME])
    _publish(path, source, (*_RUNTIME, f"-I{_FOLDER}"), [_COMPLETE])
    return path


def _entry(parts: Sequence[str]) -> Path:
    key = "\0".join(["emulator-1", *_compiler()[1], *parts])
    return cache.directory() / f"{hashlib.sha256(key.encode()).hexdigest()}.so"


def _publish(path: Path, source: str, flags: Sequence[str], link: Sequence[str]) -> None:
    """Have the object of `source` at `path`, with the source beside it."""
    if cache.lookup(path) is None:
        with cache.exclusive(path):
            if cache.lookup(path) is None:
                text = path.with_suffix(".cpp")
                cache.write(text, source.encode())
                cache.publish(path, _compiled(text, flags, link))


def _compiled(source: Path, flags: Sequence[str], link: Sequence[str]) -> bytes:
    command = _compiler()[0]
    with tempfile.TemporaryDirectory(prefix="gnnc-") as scratch:
        part, whole = f"{scratch}/module.o", f"{scratch}/module.so"
        _run([*command, *flags, "-c", "-o", part, str(source)], source)
        _run([*command, "-shared", "-o", whole, part, *link, "-lm"], source)
        return Path(whole).read_bytes()


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
