"""How much memory programs take on a graph: what is planned, which no measurement blurs, and what
no plan can do without."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .program import Buffer, OnGraph, PhaseOnGraph, Program


@dataclass(frozen=True)
class Footprint:
    """Bytes of a program's own memory on a graph; its arguments, and the gradients of its results,
    are the caller's.

    `tables` are kept with the graph: index tables, and rows that depend on the graph alone.
    `forward` and `backward` are what lives in a call of each: temporaries and what it returns; in
    backward also all that forward returned, for torch keeps what backward reads. `bound` is the
    most bytes that are in use at a step of either, with what lives across it: of its operands and
    results, of what a later step or backward still reads, and of results, which the caller keeps,
    from the step on that gives them. Scratch memory of a step is not counted.
    """

    tables: int
    forward: int
    backward: int
    bound: int

    @property
    def live(self) -> int:
        """The most that lives at any time of a step, without what is kept with the graph."""
        return max(self.forward, self.backward)

    @property
    def peak(self) -> int:
        """The most that lives at any time in a step."""
        return self.tables + self.live

    @property
    def over_bound(self) -> float:
        """How many times the bound `live` is; 1 where nothing is needed."""
        return self.live / self.bound if self.bound else 1.0

    def __str__(self) -> str:
        mib = 2.0**20
        return (
            f"{self.live / mib:.1f} MiB of rows live in a step, {self.over_bound:.2f} times the "
            f"{self.bound / mib:.1f} MiB that are in use at once; {self.tables / mib:.1f} MiB are "
            "kept with the graph"
        )


def footprint(
    program: Program,
    graph: OnGraph,
    results: Collection[str] | None = None,
    spent: Collection[str] = (),
) -> Footprint:
    """What a program takes on a graph that was prepared; `results` are the outputs of @forward that
    the caller gets (None: all), `spent` those that a last backward may write over."""
    tables = {held.address: held.nbytes for p in graph.phases.values() for held in p.keep}
    kept = sum(tables.values()) + sum(x.nbytes for x in graph.rows.values())
    forward = graph.phases["forward"]
    given = _returned(forward)
    live, bound = given + _temporary(forward), forward.most_alive()
    if "backward" not in program.phases:
        return Footprint(kept, live, 0, bound)
    phase = graph.phases["backward"]
    outputs = forward.phase.outputs
    shown = {b.name for b in outputs if results is None or b.name in results}
    saved = [b.slot for b in phase.phase.inputs if b.name in {b.name for b in outputs} - shown]
    over = tuple(b.slot for b in phase.phase.inputs if b.name in spent)
    backward = given + _temporary(phase, over) + _returned(phase)
    across = sum(_bytes(forward, b) for b in outputs if b.name in shown)
    return Footprint(kept, live, backward, max(bound, across + phase.most_alive(saved)))


def _temporary(phase: PhaseOnGraph, spent: tuple[int, ...] = ()) -> int:
    return sum(size for _, size in phase.placed(spent).rooms)


def _returned(phase: PhaseOnGraph) -> int:
    return sum(_bytes(phase, b) for b in phase.phase.outputs)


def _bytes(phase: PhaseOnGraph, b: Buffer) -> int:
    return phase.rows[b.slot] * b.bytes_of_row
