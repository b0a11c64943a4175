"""The choice among assignments of nodes to parts: all are measured, and the measures decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import metis, pack
from .bisect import bisect
from .edges import Edges, Int32, Int64
from .graph import Graph, graph_of
from .measure import ROW_COST, Measures, check_row_cost, measure, work_of_nodes
from .refine import ROUNDS, refine
from .stream import stream

LIMIT = 1.05
"""The work of a part over the mean that is no fault: a twentieth of an epoch at most."""
TRIES = 3
"""Seeds that a method by METIS tries."""
FIRST_ROUNDS = 15
"""Rounds of moves before assignments are compared; the best then has `ROUNDS`, and KICKS."""
KICKS = 10
_SEEDS = 2**31 - 2
WHOLE = "whole"
"""What all methods are called where there is one part."""
REFINED = ", refined"
"""What the name of the best method has after more moves."""


@dataclass(frozen=True)
class Task:
    """A graph to cut, and what the parts should be like. `limit` is of the imbalance."""

    edges: Edges
    parts: int
    limit: float = LIMIT
    row_cost: int = ROW_COST
    seed: int = 0

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise ValueError(f"parts: {self.parts}, and there should be at least 1")
        if not 1 <= self.limit < float("inf"):
            raise ValueError(f"limit: {self.limit}, and an imbalance is at least 1")
        if self.seed < 0:
            raise ValueError(f"seed: {self.seed} is negative")
        check_row_cost(self.row_cost)

    @cached_property
    def graph(self) -> Graph:
        """The graph of the edges, in memory."""
        return graph_of(self.edges, self.row_cost)

    @cached_property
    def work(self) -> Int64:
        """The work of each node, int64."""
        return work_of_nodes(self.edges, self.row_cost)

    @property
    def reachable(self) -> float:
        """The limit, or the imbalance that the heaviest node makes of any assignment."""
        total = int(self.work.sum())
        heaviest = int(self.work.max(initial=0)) * self.parts
        return max(self.limit, heaviest / total) if total else self.limit

    def measured(self, owner: Int32) -> Measures:
        return measure(self.edges, owner, self.parts, self.row_cost)

    def refined(self, owner: Int32, rounds: int, kicks: int = 0) -> Int32:
        """The owners after moves that lower the volume, as `refine` makes them."""
        bounds = np.full(self.parts, self.graph.bound(self.parts, self.limit), np.float64)
        return refine(self.graph, owner, bounds, rounds=rounds, kicks=kicks, seed=self.seed)


@dataclass(frozen=True)
class Method:
    """A way to assign nodes, and why it cannot be used on a task, None where it can. The best goes
    on with more moves, where it is one that `refines`."""

    owners: Callable[[Task], Int32]
    why_not: Callable[[Task], str | None] = lambda task: None
    refines: bool = True


@dataclass(frozen=True)
class Candidate:
    """What a method found, or why it could not be used; `seconds` are those of the search."""

    method: str
    owner: Int32 | None = None
    measures: Measures | None = None
    seconds: float = 0.0
    why_not: str | None = None


@dataclass(frozen=True)
class Partition:
    """The chosen assignment: `owner` has the part of each node, int32."""

    owner: Int32
    method: str
    measures: Measures
    candidates: Sequence[Candidate]


Cut = Callable[[Graph, int, float, int], Int32]


def _plain(cut: Cut) -> Callable[[Task], Int32]:
    return lambda task: cut(task.graph, task.parts, task.limit, task.seed)


def _refined(cut: Cut, tries: int = 1) -> Callable[[Task], Int32]:
    """The best of several seeds, each after some moves."""

    def owners(task: Task) -> Int32:
        # METIS takes its seed for an int, and 0 for 1
        seeds = (1 + (task.seed * tries + i) % _SEEDS for i in range(tries))
        cuts = (cut(task.graph, task.parts, task.limit, seed) for seed in seeds)
        found = (task.refined(owner, FIRST_ROUNDS) for owner in cuts)
        return min(found, key=lambda owner: _cost(task, task.measured(owner)))

    return owners


def _components(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    def split(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
        cut = bisect if metis.why_not(graph, parts) else metis.weighted
        return cut(graph, parts, limit, seed)

    return pack.components(graph, parts, limit, seed, split)


def _stream(task: Task) -> Int32:
    return stream(task.edges, task.parts, task.limit, task.seed, row_cost=task.row_cost)


def _one_component(task: Task) -> str | None:
    return None if pack.component_count(task.graph) > 1 else "the graph is connected"


def _no_metis(task: Task) -> str | None:
    return metis.why_not(task.graph, task.parts)


METHODS = {
    "metis": Method(_refined(metis.recursive, TRIES), _no_metis),
    "metis-weighted": Method(_refined(metis.weighted, TRIES), _no_metis),
    "metis-k-way": Method(_refined(metis.k_way, TRIES), _no_metis),
    "metis-default": Method(_plain(metis.default), _no_metis, refines=False),
    "metis-balanced": Method(_plain(metis.balanced), _no_metis, refines=False),
    "components": Method(_refined(_components), _one_component),
    "bisection": Method(_refined(bisect)),
    "stream": Method(_stream, refines=False),
    "greedy": Method(_plain(pack.heaviest_first), refines=False),
}
"""By name. `stream` alone holds no graph in memory; all others do."""
AUTO = ("metis", "metis-weighted", "metis-k-way", "components")
"""What is tried where nothing is asked for; `WITHOUT` where METIS cannot be used."""
WITHOUT = ("bisection", "components", "greedy")


def partition(task: Task, methods: Sequence[str] | None = None) -> Partition:
    """Owners by the best of `methods`, by default of those in AUTO or WITHOUT.

    The best is the one with the least halo volume among those within the limit of imbalance, or
    within what the heaviest node allows where that is more; where none is, the best balanced. One
    part takes no method.

    Raises:
        ValueError: a method that is not known, or none of those asked for can be used.
    """
    if unknown := [m for m in methods or () if m not in METHODS]:
        raise ValueError(f"methods: there is no {unknown[0]!r}, only {', '.join(METHODS)}")
    if task.parts == 1:  # there is one assignment, and no graph need be in memory for it
        every = _timed(task, WHOLE, lambda: np.zeros(task.edges.nodes, np.int32))
        return _chosen(task, [every])
    if methods is None:
        methods = WITHOUT if _no_metis(task) else AUTO
    candidates = [_candidate(task, name) for name in dict.fromkeys(methods)]
    best = _chosen(task, candidates)
    if not METHODS[best.method].refines:
        return best
    name = best.method + REFINED
    rest = _timed(task, name, lambda: task.refined(best.owner, ROUNDS, KICKS))
    return _chosen(task, [*candidates, rest])


def _candidate(task: Task, name: str) -> Candidate:
    method = METHODS[name]
    if (reason := method.why_not(task)) is not None:
        return Candidate(name, why_not=reason)
    try:
        return _timed(task, name, lambda: method.owners(task))
    except metis.MetisFailed as error:
        return Candidate(name, why_not=str(error))


def _timed(task: Task, name: str, owners: Callable[[], Int32]) -> Candidate:
    start = time.perf_counter()
    owner = owners()
    return Candidate(name, owner, task.measured(owner), time.perf_counter() - start)


def _chosen(task: Task, candidates: Sequence[Candidate]) -> Partition:
    found = [
        Partition(c.owner, c.method, c.measures, candidates)
        for c in candidates
        if c.owner is not None and c.measures is not None
    ]
    if not found:
        reasons = "; ".join(f"{c.method}: {c.why_not}" for c in candidates)
        raise ValueError(f"methods: none can be used ({reasons or 'none is asked for'})")
    return min(found, key=lambda one: _cost(task, one.measures))


def _cost(task: Task, found: Measures) -> tuple[float, int, float]:
    return (max(task.reachable, found.imbalance), found.volume, found.imbalance)
