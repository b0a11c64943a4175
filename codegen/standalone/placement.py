"""Where the kernels of a program find their buffers: in the memory of the host, which reads the
arrays and makes the tables, or in memory of their own. Each target that programs are built for has
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Placement(Protocol):
    """C for blocks of memory and calls of phases. All arguments are C expressions, sizes are in
    bytes; a list has lines. `headers` are those of the library that these need.
    """

    headers: Sequence[str]

    def begins(self) -> list[str]:
        """At the start of the program."""
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
