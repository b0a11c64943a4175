"""The files of a program that trains on several ranks, which MPI starts: as those for the CPU, with
what carries the messages of its phases (runtime/standalone/mpi).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..common.exchange_code import comm_text
from ..standalone.description import NoProgram, Standalone
from ..standalone.makefile import makefile, quoted
from ..standalone.names import BYTES, TYPES
from ..standalone.program import print_program
from ..standalone.tables import TableCode
from .standalone import KERNELS, OnHost

COMM = "comm.h"
"""What a program calls to exchange rows, which the kernels have too."""
KINDS = {"sum": "SUM", "mul": "MUL", "max": "MAX", "min": "MIN"}


class OnRanks(OnHost):
    """The kernels run in the memory of each of some ranks (runtime/standalone/mpi/ranks.h)."""

    headers: Sequence[str] = ("ranks.h",)

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def starts(self) -> list[str]:
        return [f"begin_ranks(&count, &words, {self.ranks});"]

    def begins(self) -> list[str]:
        return ["begin_part(command.data);"]

    def ends(self) -> list[str]:
        return ["end_ranks();"]

    def once(self) -> list[str]:
        return ["if (!is_first_rank()) return;"]

    def part(self, data: str) -> str:
        return f"part_of({data})"

    def carried(self, target: str, entry: Mapping[str, Any], tables: TableCode) -> list[str]:
        name = f"c_{target.split('[')[0]}"
        lines = [f"Carrier *{name} = new_carrier();"]
        for move in entry["moves"]:
            source, to = (tables.set_of(move[end]) for end in ("from", "to"))
            size = math.prod(move["row"]) * BYTES[move["dtype"]]
            lines.append(f"add_move({name}, {source}, {to}, INT64_C({size}));")
        for reduction in entry["reductions"]:
            blocks = [_block(b, tables) for b in reduction["buffers"]]
            given = f"(const Block[]){{{', '.join(blocks)}}}"
            kind = KINDS[reduction["kind"]]
            lines.append(f"add_reduction({name}, {kind}, {len(blocks)}, {given});")
        return [*lines, f"{target} = comm_of({name});"]


def _block(b: Mapping[str, Any], tables: TableCode) -> str:
    elem: str = b["dtype"]
    if elem == "i1":
        raise NoProgram("truth values are not reduced over ranks")
    width = math.prod(b["row"])
    return f"{{{TYPES[elem]}, {tables.size(b['at'])} * INT64_C({width})}}"


def program_files(
    program: Standalone,
    library: Iterable[str],
    flags: Sequence[str],
    march: str,
    ranks: int,
    mpicc: Path,
    mpiexec: Path,
) -> dict[str, str]:
    """The texts of the files that are the program's own, by name. `library` are the names of the
    others, `flags` those that kernels are compiled with; `mpicc` and `mpiexec` are what `make`
    takes for MPI where it is told nothing else.

    Raises:
        NoProgram: a part of the step has no form without Python.
    """
    names = [KERNELS, "main.c", COMM, *library]
    compiler = f"CC = {quoted(mpicc)}\nMPIEXEC = {quoted(mpiexec)}"
    launch = f"$(MPIEXEC) -n {ranks} "
    return {
        KERNELS: program.artifact["source"],
        "main.c": print_program(program, OnRanks(ranks)),
        COMM: comm_text(),
        "Makefile": makefile(names, flags, march, compiler=compiler, launch=launch),
    }
