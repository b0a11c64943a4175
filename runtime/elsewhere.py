"""Programs that run on another machine: their calls give results of the right sizes and compute
nothing, for whoever looks at how a step is called.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cpu.memory import HOST, HostMemory

if TYPE_CHECKING:
    from .program import PhaseOnGraph


class Idle:
    """A phase of which every result is 0, and true: what a step asserts holds."""

    seconds: ctypes.Array[ctypes.c_double] | None = None

    def run(
        self, phase: PhaseOnGraph, workspace: int, pointers: ctypes.Array[ctypes.c_void_p]
    ) -> None:
        """Write the outputs, and nothing else."""
        for b in phase.phase.outputs:
            if address := pointers[b.slot]:
                ctypes.memset(address, int(b.dtype == "i1"), phase.bytes[b.slot])


class ElsewhereProgram:
    """A program of which nothing is compiled, so that it has no file."""

    path = Path(os.devnull)

    def entry(self, data: Mapping[str, Any]) -> Idle:
        """What stands for the function of a phase."""
        return Idle()

    def memory(self, device: str) -> HostMemory:
        """The memory of the host, where results are written. Raises ValueError for another."""
        if device != "cpu":
            raise ValueError(
                f"a program that runs elsewhere takes tensors on the CPU, not {device}"
            )
        return HOST


def load_program(
    data: Mapping[str, Any],
    source: str,
    *,
    march: str | None,
    sanitize: bool,
    profile: bool,
    denormals: bool,
) -> ElsewhereProgram:
    """A program whose calls compute nothing."""
    return ElsewhereProgram()
