"""The files of a program for the CPU: the kernels of its step, the main file, and a makefile."""

from __future__ import annotations

from collections.abc import Sequence

from ..standalone.description import Standalone
from ..standalone.program import print_program

KERNELS = "kernels.c"
PROGRAM = "train"
"""The name of the executable."""

MAKEFILE = """\
# Builds and runs a program that gnnc printed. `make run`, `make sanitize`, `make clean`.
CC ?= cc
MARCH ?= {march}
# what the kernels may assume, as within Python: IEEE arithmetic, nothing contracted
FLAGS = {flags} -march=$(MARCH)
OBJECTS = {objects}
CHECKS = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined

{program}: $(OBJECTS)
\t$(CC) $(FLAGS) -o $@ $(OBJECTS) -lm

%.o: %.c $(wildcard *.h)
\t$(CC) $(FLAGS) -c -o $@ $<

run: {program}
\t./{program}

# the same program with the checks of the address and undefined-behaviour sanitizers
sanitize: $(OBJECTS:.o=.c)
\t$(CC) $(FLAGS) $(CHECKS) -o {program}-sanitized $^ -lm

clean:
\trm -f $(OBJECTS) {program} {program}-sanitized

.PHONY: run sanitize clean
"""


def program_files(
    program: Standalone, library: Sequence[str], flags: Sequence[str], march: str
) -> dict[str, str]:
    """The texts of the files that are the program's own, by name. `library` are the names of the
    others, `flags` those that kernels are compiled with.

    Raises:
        NoProgram: a part of the step has no form without Python.
    """
    sources = sorted([KERNELS, "main.c", *(f for f in library if f.endswith(".c"))])
    objects = " ".join(f.removesuffix(".c") + ".o" for f in sources)
    makefile = MAKEFILE.format(program=PROGRAM, march=march, flags=" ".join(flags), objects=objects)
    return {
        KERNELS: program.artifact["source"],
        "main.c": print_program(program),
        "Makefile": makefile,
    }
