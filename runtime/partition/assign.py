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
from .refine import refine
from .stream import stream

LIMIT = 1.05
"""The work of a part over the mean that is no fault: a twentieth of an epoch at most."""


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

    def refined(self, owner: Int32) -> Int32:
        """The owners after moves that lower the volume."""
        bounds = np.full(self.parts, self.graph.bound(self.parts, self.limit), np.float64)
        return refine(self.graph, owner, bounds, seed=self.seed)


@dataclass(frozen=True)
class Method:
    """A way to assign nodes, and why it cannot be used on a task, None where it can."""

    owners: Callable[[Task], Int32]
    why_not: Callable[[Task], str | None] = lambda task: None


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


def _refined(cut: Cut) -> Callable[[Task], Int32]:
    return lambda task: task.refined(cut(task.graph, task.parts, task.limit, task.seed))


def _components(task: Task) -> Int32:
    def split(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
        cut = bisect if metis.why_not(graph, parts) else metis.weighted
        return cut(graph, parts, limit, seed)

    graph = task.graph
    return task.refined(pack.components(graph, task.parts, task.limit, task.seed, split))


def _stream(task: Task) -> Int32:
    return stream(task.edges, task.parts, task.limit, task.seed, row_cost=task.row_cost)


def _one_component(task: Task) -> str | None:
    return None if pack.component_count(task.graph) > 1 else "the graph is connected"


def _no_metis(task: Task) -> str | None:
    return metis.why_not(task.graph, task.parts)


METHODS = {
    "metis": Method(_refined(metis.recursive), _no_metis),
    "metis-weighted": Method(_refined(metis.weighted), _no_metis),
    "metis-k-way": Method(_refined(metis.k_way), _no_metis),
    "metis-default": Method(_plain(metis.default), _no_metis),
    "components": Method(_components, _one_component),
    "bisection": Method(_refined(bisect)),
    "stream": Method(_stream),
    "greedy": Method(_plain(pack.heaviest_first)),
}
"""By name. `stream` alone holds no graph in memory; all others do."""
AUTO = ("metis", "metis-weighted", "metis-k-way", "components")
"""What is tried where nothing is asked for; `WITHOUT` where METIS cannot be used."""
WITHOUT = ("bisection", "components", "greedy")


def partition(task: Task, methods: Sequence[str] | None = None) -> Partition:
    """Owners by the best of `methods`, by default of those in AUTO or WITHOUT.

    The best is the one with the least halo volume among those within the limit of imbalance, or
    within what the heaviest node allows where that is more; where none is, the best balanced.

    Raises:
        ValueError: a method that is not known, or none of those asked for can be used.
    """
    if methods is None:
        methods = WITHOUT if _no_metis(task) else AUTO
    if unknown := [m for m in methods if m not in METHODS]:
        raise ValueError(f"methods: there is no {unknown[0]!r}, only {', '.join(METHODS)}")
    candidates = [_candidate(task, name) for name in dict.fromkeys(methods)]
    return _chosen(task, candidates)


def _candidate(task: Task, name: str) -> Candidate:
    method = METHODS[name]
    if (reason := method.why_not(task)) is not None:
        return Candidate(name, why_not=reason)
    start = time.perf_counter()
    try:
        owner = method.owners(task)
    except metis.MetisFailed as error:
        return Candidate(name, why_not=str(error))
    seconds = time.perf_counter() - start
    return Candidate(name, owner, measure(task.edges, owner, task.parts, task.row_cost), seconds)


def _chosen(task: Task, candidates: Sequence[Candidate]) -> Partition:
    best: Partition | None = None
    for found in candidates:
        if found.owner is None or found.measures is None:
            continue
        here = Partition(found.owner, found.method, found.measures, candidates)
        if best is None or _cost(task, here) < _cost(task, best):
            best = here
    if best is None:
        reasons = "; ".join(f"{c.method}: {c.why_not}" for c in candidates)
        raise ValueError(f"methods: none can be used ({reasons or 'none is asked for'})")
    return best


def _cost(task: Task, found: Partition) -> tuple[float, int, float]:
    imbalance = found.measures.imbalance
    return (max(task.reachable, imbalance), found.measures.volume, imbalance)
