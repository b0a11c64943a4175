"""Where the kernels of a program find their buffers: in the memory of the host, which reads the
arrays and makes the tables, or in memory of their own. Each target that programs are built for has
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .description import NoProgram
from .tables import TableCode


class Placement(Protocol):
    """C for blocks of memory and calls of phases. All arguments are C expressions, sizes are in
    bytes; a list has lines. `headers` are those of the library that these need.
    """

    headers: Sequence[str]

    def starts(self) -> list[str]:
        """At the start of the program, whose words are `count` and `words`."""
        ...

    def begins(self) -> list[str]:
        """Once `command` is known."""
        ...

    def ends(self) -> list[str]:
        """At the end of the program."""
        ...

    def once(self) -> list[str]:
        """At the start of a function that one of several processes calls for all."""
        ...

    def part(self, data: str) -> str:
        """The folder of what this process has for itself, in that of the data.

        Raises:
            NoProgram: the program is for one process.
        """
        ...

    def carried(self, target: str, entry: Mapping[str, Any], tables: TableCode) -> list[str]:
        """The lines that make a phase's messages, described by `entry`, ready for a graph, and put
        what carries them there.

        Raises:
            NoProgram: the program is for one process, or numbers are reduced in a way that ranks
                do not know.
        """
        ...

    def section(self, what: str) -> list[str]:
        """What follows is called so in messages."""
        ...

    def prototype(self, phase: str) -> str:
        """The declaration of a phase's function."""
        ...

    def call(self, phase: str, workspace: str, sizes: str, buffers: str) -> str:
        """The line that runs a phase, to its end."""
        ...

    def reserved(self, size: str) -> str:
        """Memory for what only kernels write."""
        ...

    def given(self, host: str, size: str) -> str:
        """A block of the host as kernels see it, whatever it is given to: the same for the same."""
        ...

    def sent(self, host: str) -> list[str]:
        """After the host has changed a block that may have been given to kernels."""
        ...

    def fetched(self, host: str) -> list[str]:
        """Before the host reads a block that kernels may have changed."""
        ...

    def number(self, buffer: str, kind: str) -> str:
        """A single number of C type `kind` that kernels have written."""
        ...

    def copied(self, to: str, source: str, size: str) -> str:
        """The line that copies between two buffers of kernels."""
        ...


class OneProcess:
    """What a program does that is for one process."""

    def starts(self) -> list[str]:
        return []

    def ends(self) -> list[str]:
        return []

    def once(self) -> list[str]:
        return []

    def part(self, data: str) -> str:
        raise NoProgram("a program for one process has no part of its data")

    def carried(self, target: str, entry: Mapping[str, Any], tables: TableCode) -> list[str]:
        raise NoProgram("a program for one process exchanges no rows with others")
