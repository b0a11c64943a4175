"""NVRTC through ctypes: device text becomes machine code, on a machine without GPU or driver.

The library is that of the package `nvidia-cuda-nvrtc`. For an architecture `sm_..` NVRTC runs ptxas
as well, so that a text which compiles here is known to fit the device, with its registers, spills
and shared memory; what it computes is known of a device alone.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from .errors import NoNvrtc, NvrtcError
from .options import compile_options
from .ptxas import Resources, resources

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
"""The packages that have the library: of CUDA 13, and of CUDA 12."""
TEXT = "device.cu"
"""What messages of NVRTC call the text."""
_LIBRARY = re.compile(r"libnvrtc\.so\.\d+$")
_ERROR = re.compile(r"^.*?\((\d+)\): (?:catastrophic )?error\b.*$", re.MULTILINE)
_OP = re.compile(r"/\*\s*intra:\s*(.*?)\s*\*/")


@dataclass(frozen=True)
class Compiled:
    """Machine code for one architecture, and what each kernel in it takes."""

    cubin: bytes
    kernels: dict[str, Resources]


def compile_device(
    text: str, arch: str = "sm_90", options: Sequence[str] = (), *, denormals: bool = False
) -> Compiled:
    """Compile device text for `arch`; `options` come after those of `compile_options`.

    Raises:
        NoNvrtc: the library is not installed.
        ValueError: `arch` is no architecture that this NVRTC has.
        NvrtcError: the text is wrong, or does not fit the device; it cites the lines, and the ops
            of which they were printed.
    """
    known = supported_architectures()
    if arch not in known:
        raise ValueError(f"NVRTC {version_text()} has no {arch}: there are {', '.join(known)}")
    given = (
        f"--gpu-architecture={arch}",
        "--ptxas-options=-v",
        *compile_options(denormals),
        *options,
    )
    library = _library()
    program = ctypes.c_void_p()
    _check(
        library,
        "nvrtcCreateProgram",
        ctypes.byref(program),
        text.encode(),
        TEXT.encode(),
        0,
        None,
        None,
    )
    try:
        return _compiled(library, program, text, arch, given)
    finally:
        _check(library, "nvrtcDestroyProgram", ctypes.byref(program))


def _compiled(
    library: ctypes.CDLL,
    program: ctypes.c_void_p,
    text: str,
    arch: str,
    options: Sequence[str],
) -> Compiled:
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = library.nvrtcCompileProgram(program, len(options), array)
    log = _read(library, program, "nvrtcGetProgramLog").rstrip(b"\0").decode(errors="replace")
    if status:
        raise NvrtcError(arch, _status(library, status), log, cited(text, log))
    return Compiled(_read(library, program, "nvrtcGetCUBIN"), resources(log))


def cited(text: str, log: str) -> list[str]:
    """The lines of the text that errors of the log are of, each with its message and, where a
    comment `/* intra: .. */` stands above it, the op that it was printed for. The log may be that
    of another caller of NVRTC, who calls the text something else.
    """
    lines = text.splitlines()
    out: list[str] = []
    for found in _ERROR.finditer(log):
        number = int(found[1])
        if number > len(lines):  # the end of the text
            out.append(found[0])
            continue
        op = op_of(lines, number)
        of = "" if op is None else f"\n    of the op {op}"
        out.append(f"{found[0]}\n    {lines[number - 1].strip()}{of}")
    return out


def op_of(lines: Sequence[str], number: int) -> str | None:
    """The op that line `number`, counted from 1, was printed for: of the last comment above it in
    the same function."""
    for line in reversed(lines[: number - 1]):
        if found := _OP.search(line):
            return found[1]
        if line.startswith("}") or "__global__" in line:
            return None
    return None


# ------------------------------------------------------------------------- the library


def versions() -> dict[str, str]:
    """The version of NVRTC, and that of the package it is from.

    Raises:
        NoNvrtc: the library is not installed.
    """
    package, _ = _found()
    return {"nvrtc": version_text(), package: distribution(package).version}


def version_text() -> str:
    """NVRTC's version, as "13.5".

    Raises:
        NoNvrtc: the library is not installed.
    """
    library = _library()
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library, "nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


@functools.cache
def supported_architectures() -> tuple[str, ...]:
    """The architectures that NVRTC makes machine code for, as "sm_90".

    Raises:
        NoNvrtc: the library is not installed.
    """
    library = _library()
    count = ctypes.c_int()
    _check(library, "nvrtcGetNumSupportedArchs", ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    _check(library, "nvrtcGetSupportedArchs", numbers)
    return tuple(f"sm_{n}" for n in numbers)


def why_not() -> str | None:
    """Why device text cannot be compiled here, or None."""
    try:
        _library()
    except NoNvrtc as error:
        return str(error)
    return None


@functools.cache
def _library() -> ctypes.CDLL:
    _, path = _found()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise NoNvrtc(f"{path} cannot be loaded: {error}") from error
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _found() -> tuple[str, Path]:
    """The package that is installed and has the library, and the library's place."""
    for package in PACKAGES:
        try:
            files = distribution(package).files or ()
        except PackageNotFoundError:
            continue
        for file in files:
            if _LIBRARY.search(file.name):
                return package, Path(str(file.locate()))
    raise NoNvrtc(f"NVRTC is not installed: `pip install {PACKAGES[0]}` (it needs no GPU)")


def _status(library: ctypes.CDLL, status: int) -> str:
    return library.nvrtcGetErrorString(status).decode()


def _check(library: ctypes.CDLL, name: str, *args: object) -> None:
    status = getattr(library, name)(*args)
    if status:
        raise RuntimeError(f"{name} failed: {_status(library, status)}")


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, name: str) -> bytes:
    """What the pair of functions `name` and `name`Size give."""
    size = ctypes.c_size_t()
    _check(library, f"{name}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _check(library, name, program, buffer)
    return buffer.raw[: size.value]
