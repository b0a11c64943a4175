"""How much memory programs take on a graph: what is planned, which no measurement blurs."""

from __future__ import annotations

from dataclasses import dataclass

from .program import OnGraph, PhaseOnGraph, Program


@dataclass(frozen=True)
class Footprint:
    """Bytes of a program's own memory on a graph; its arguments, and the gradients of its results,
    are the caller's.

    `tables` are kept with the graph: index tables, and rows that depend on the graph alone.
    `forward` and `backward` are what lives in a call of each: temporaries and what it returns; in
    backward also all that forward returned, for torch keeps what backward reads.
    """

    tables: int
    forward: int
    backward: int

    @property
    def peak(self) -> int:
        """The most that lives at any time in a step."""
        return self.tables + max(self.forward, self.backward)


def footprint(program: Program, graph: OnGraph) -> Footprint:
    """What a program takes on a graph that was prepared."""
    tables = {held.address: held.nbytes for p in graph.phases.values() for held in p.keep}
    prepared = sum(x.nbytes for x in graph.rows.values())
    forward = graph.phases["forward"]
    given = _returned(forward)
    backward = 0
    if "backward" in program.phases:
        phase = graph.phases["backward"]
        backward = given + _temporary(phase) + _returned(phase)
    return Footprint(sum(tables.values()) + prepared, _temporary(forward) + given, backward)


def _temporary(phase: PhaseOnGraph) -> int:
    return sum(size for _, size in phase.regions)


def _returned(phase: PhaseOnGraph) -> int:
    return sum(phase.rows[b.slot] * b.bytes_of_row for b in phase.phase.outputs)
