"""A target that says in a line what each step does: the one of docs/writing-a-pass.md."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from gnnc.codegen.common.host import Phase, Printed
from gnnc.codegen.common.phase_host import PhaseHost
from gnnc.dialects.intra.steps import phases, steps
from gnnc.passes.targets.openmp import OPENMP

OUTLINE = replace(
    OPENMP,
    name="outline",
    about="a line a step: what it writes and reads",
    printer=__name__,
    runtime="paper",
    tail=("fuse-traversals{target=outline}",),
)


def print_module(module: ModuleOp) -> Printed:
    """The phases of a lowered module, one below the other."""
    lines: list[str] = []
    found: list[Phase] = []
    for func in phases(module):
        host = PhaseHost(func)
        found.append(host.phase)
        lines.append(f"{host.phase.name}:")
        for step in steps(func):
            written, read = (
                ", ".join(sorted(host.names[b] for b in buffers))
                for buffers in (step.writes(), step.reads())
            )
            lines.append(f"  {written} <- {read}")
    return Printed("\n".join(lines) + "\n", found)
