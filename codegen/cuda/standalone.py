"""The files of a program for NVIDIA GPUs: the functions that launch its kernels, the kernels as
text and as machine code, the main file, and a makefile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..standalone.description import Standalone
from ..standalone.makefile import makefile
from ..standalone.names import literal
from ..standalone.placement import OneProcess
from ..standalone.program import print_program

LAUNCHES, IMAGE, MAIN = "launches.c", "image.c", "main.c"
KERNELS = "kernels.cu"
"""The text that the machine code was made from, to be read: make takes no notice of it."""
_COLUMNS = 24


class OnDevice(OneProcess):
    """The kernels run in the memory of a device, with copies of the host's blocks
    (runtime/standalone/cuda/device.h)."""

    headers: Sequence[str] = ("device.h", "shares.h")

    def begins(self) -> list[str]:
        return ["begin_device();"]

    def section(self, what: str) -> list[str]:
        return [f"during({literal(what)});"]

    def prototype(self, phase: str) -> str:
        return (
            f"int gnnc_{phase}(launcher launch, void *const *kernels, void *stream, char *ws, "
            "const int64_t *n, void *const *b);"
        )

    def call(self, phase: str, workspace: str, sizes: str, buffers: str) -> str:
        given = f"launch, device_kernels(), NULL, {workspace}, {sizes}, {buffers}"
        return f"finish(gnnc_{phase}({given}));"

    def reserved(self, size: str) -> str:
        return f"reserve_on_device({size})"

    def given(self, host: str, size: str) -> str:
        return f"on_device({host}, {size})"

    def sent(self, host: str) -> list[str]:
        return [f"refresh({host});"]

    def fetched(self, host: str) -> list[str]:
        return [f"fetch({host});"]

    def number(self, buffer: str, kind: str) -> str:
        return f"*(const {kind} *)number_on_device({buffer}, sizeof({kind}))"

    def copied(self, to: str, source: str, size: str) -> str:
        return f"copy_on_device({to}, {source}, {size});"


def program_files(
    program: Standalone,
    library: Iterable[str],
    flags: Sequence[str],
    march: str,
    images: Sequence[bytes],
) -> dict[str, str]:
    """The texts of the files that are the program's own, by name. `library` are the names of the
    others, `flags` those that C is compiled with. `images` are the kernels as machine code, of
    which the first that a device can run is taken.

    Raises:
        NoProgram: a part of the step has no form without Python.
    """
    artifact = program.artifact
    return {
        LAUNCHES: artifact["source"],
        KERNELS: artifact["device"],
        IMAGE: image_text(images, artifact["kernels"]),
        MAIN: print_program(program, OnDevice()),
        "Makefile": makefile([LAUNCHES, IMAGE, MAIN, *library], flags, march, ("-lm", "-ldl")),
    }


def image_text(images: Sequence[bytes], kernels: Sequence[str]) -> str:
    """Machine code as C arrays, with the names of its kernels: what device.h declares."""
    parts = ['/* The kernels of kernels.cu as machine code. */\n#include "device.h"\n']
    for k, image in enumerate(images):
        rows = (image[i : i + _COLUMNS] for i in range(0, len(image), _COLUMNS))
        numbers = "\n".join("".join(f"{byte}," for byte in row) for row in rows)
        parts.append(f"_Alignas(16) static const unsigned char image_{k}[] = {{\n{numbers}\n}};\n")
    parts.append(_list("unsigned char", "images", [f"image_{k}" for k in range(len(images))]))
    parts.append(f"const int image_count = {len(images)};\n")
    parts.append(_list("char", "kernel_names", list(map(literal, kernels))))
    parts.append(f"const int kernel_count = {len(kernels)};\n")
    return "\n".join(parts)


def _list(kind: str, name: str, values: Sequence[str]) -> str:
    """An array of pointers, of one that is nothing where there are none: C has none of length 0."""
    return f"const {kind} *const {name}[] = {{{', '.join(values) or 'NULL'}}};\n"
