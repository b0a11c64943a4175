"""The makefile of a built program."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

PROGRAM = "train"
"""The name of the executable."""

_TEXT = """\
# Builds and runs a program that gnnc printed. `make run`, `make sanitize`, `make clean`.
{compiler}
MARCH ?= {march}
# what the kernels may assume, as within Python: IEEE arithmetic, nothing contracted
FLAGS = {flags} -march=$(MARCH)
OBJECTS = {objects}
LIBRARIES = {libraries}
CHECKS = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined

{program}: $(OBJECTS)
\t$(CC) $(FLAGS) -o $@ $(OBJECTS) $(LIBRARIES)

%.o: %.c $(wildcard *.h)
\t$(CC) $(FLAGS) -c -o $@ $<

run: {program}
\t{launch}./{program}

# the same program with the checks of the address and undefined-behaviour sanitizers
sanitize: $(OBJECTS:.o=.c)
\t$(CC) $(FLAGS) $(CHECKS) -o {program}-sanitized $^ $(LIBRARIES)

clean:
\trm -f $(OBJECTS) {program} {program}-sanitized

.PHONY: run sanitize clean
"""


def makefile(
    names: Iterable[str],
    flags: Sequence[str],
    march: str,
    libraries: Sequence[str] = ("-lm",),
    compiler: str = "CC ?= cc",
    launch: str = "",
) -> str:
    """The text for a folder with files of these names; `flags` are those that kernels are compiled
    with, `libraries` what the program is linked with. `compiler` are the lines that set CC, and
    `launch` is what goes in front of the program's name where it is run."""
    objects = sorted(name.removesuffix(".c") + ".o" for name in names if name.endswith(".c"))
    return _TEXT.format(
        program=PROGRAM,
        compiler=compiler,
        launch=launch,
        march=march,
        flags=" ".join(flags),
        objects=" ".join(objects),
        libraries=" ".join(libraries),
    )


def quoted(path: Path) -> str:
    """A path as a word of the shell, as make reads it."""
    return shlex.quote(str(path)).replace("$", "$$")
