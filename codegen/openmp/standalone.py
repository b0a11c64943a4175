"""The files of a program for the CPU: the kernels of its step, the main file, and a makefile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..standalone.description import Standalone
from ..standalone.makefile import makefile
from ..standalone.placement import OneProcess
from ..standalone.program import print_program

KERNELS = "kernels.c"


class OnHost(OneProcess):
    """The kernels run in the memory of the host: every block is where it is."""

    headers: Sequence[str] = ()

    def begins(self) -> list[str]:
        return []

    def section(self, what: str) -> list[str]:
        return []

    def prototype(self, phase: str) -> str:
        return f"void gnnc_{phase}(int threads, const int64_t *n, void *const *b);"

    def call(self, phase: str, workspace: str, sizes: str, buffers: str) -> str:
        return f"gnnc_{phase}(threads(), {sizes}, {buffers});"

    def reserved(self, size: str) -> str:
        return f"reserve({size})"

    def given(self, host: str, size: str) -> str:
        return host

    def sent(self, host: str) -> list[str]:
        return []

    def fetched(self, host: str) -> list[str]:
        return []

    def number(self, buffer: str, kind: str) -> str:
        return f"*(const {kind} *){buffer}"

    def copied(self, to: str, source: str, size: str) -> str:
        return f"memcpy({to}, {source}, (size_t)({size}));"


def program_files(
    program: Standalone, library: Iterable[str], flags: Sequence[str], march: str
) -> dict[str, str]:
    """The texts of the files that are the program's own, by name. `library` are the names of the
    others, `flags` those that kernels are compiled with.

    Raises:
        NoProgram: a part of the step has no form without Python.
    """
    return {
        KERNELS: program.artifact["source"],
        "main.c": print_program(program, OnHost()),
        "Makefile": makefile([KERNELS, "main.c", *library], flags, march),
    }
