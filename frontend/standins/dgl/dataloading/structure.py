"""Graphs as the samplers in C read them: edges by target, made once a structure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor

from gnnc.runtime.sampling.in_edges import InEdges, in_edges
from gnnc.runtime.sampling.sampler import Graph, Seeds

from ..base import DGLError
from ..graph import DGLGraph
from ..subgraphs import node_ids
from ..topology import Topology

T = TypeVar("T")


class PerStructure(Generic[T]):
    """What `make` makes of a graph, kept for as long as there is a graph of this structure, and
    until the edge feature `name`, which it depends on, is another one. Threads may share it."""

    def __init__(self, make: Callable[[DGLGraph], T], name: str | None = None) -> None:
        self._make, self._name = make, name
        self._lock = threading.Lock()
        self._known: WeakKeyDictionary[Topology, tuple[list[tuple[Tensor, int]], T]]
        self._known = WeakKeyDictionary()

    def __call__(self, g: DGLGraph) -> T:
        with self._lock:
            columns = self._columns(g)
            known = self._known.get(g._topology)
            if known is None or not _same(known[0], columns):
                known = columns, self._make(g)
                self._known[g._topology] = known
            return known[1]

    def __getstate__(self) -> dict[str, Any]:
        """With what was made: a process that is sent it need not make it again."""
        known = list(self._known.items())
        return {k: v for k, v in self.__dict__.items() if k != "_lock"} | {"_known": known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._known = WeakKeyDictionary(state["_known"])

    def _columns(self, g: DGLGraph) -> list[tuple[Tensor, int]]:
        frames = [] if self._name is None else g._edge_frames.values()
        columns = [frame[self._name] for frame in frames if self._name in frame]
        return [(c, 0 if c.is_inference() else c._version) for c in columns]


def _same(known: list[tuple[Tensor, int]], columns: list[tuple[Tensor, int]]) -> bool:
    return len(known) == len(columns) and all(
        a is b and version == now for (a, version), (b, now) in zip(known, columns, strict=True)
    )


def check_graph(g: object) -> DGLGraph:
    """The graph, if samplers can read it: `TypeError` and `DGLError` say why they cannot."""
    if not isinstance(g, DGLGraph):
        raise TypeError(
            f"gnnc.dgl.dataloading samples graphs of gnnc.dgl, not a {type(g).__name__}: "
            "gnnc.dgl.from_dgl(g) makes one of DGL's"
        )
    if g.is_block:
        raise DGLError("Sampling from a block is not supported.")
    if g.device.type != "cpu":
        raise DGLError(f"Sampling runs on the CPU, but the graph is on {g.device}: use g.cpu()")
    return g


def one_type(g: object, what: str) -> DGLGraph:
    """As `check_graph`, for a sampler that needs one node type and one edge type."""
    found = check_graph(g)
    if len(found.ntypes) != 1 or len(found.canonical_etypes) != 1:
        raise DGLError(f"{what} needs a graph of one node type and one edge type.")
    return found


def _plain(g: DGLGraph) -> Graph:
    topology = g._topology
    types = list(topology.sources)
    counts = tuple(topology.sources.values())
    ends = tuple((types.index(s), types.index(d)) for s, _, d in topology.relations)
    relations: list[InEdges] = []
    for r, (source, target) in zip(topology.relations.values(), ends, strict=True):
        relations.append(in_edges(r.src.numpy(), r.dst.numpy(), counts[source], counts[target]))
    return Graph(counts, tuple(relations), ends)


plain = PerStructure(_plain)
"""The graph without weights."""


def weighted(g: DGLGraph, name: str) -> Graph:
    """The graph with the edge feature `name` as weights, 1 in relations that have none.

    Raises `DGLError` if no relation has it, or it is no number or bool an edge; `ValueError` for
    weights that are negative or not finite.
    """
    topology = g._topology
    if not any(name in frame for frame in g._edge_frames.values()):
        raise DGLError(f"The graph has no edge feature {name!r}, which prob or mask names.")
    relations: list[InEdges] = []
    bare = plain(g)
    for etype, r in topology.relations.items():
        count, frame = r.src.shape[0], g._edge_frames[etype]
        weights = np.ones(count)
        if name in frame:
            if frame[name].numel() != count:
                raise DGLError(
                    f"Edge feature {name!r} of {etype} must be a number an edge, got shape "
                    f"{tuple(frame[name].shape)}."
                )
            weights = frame[name].detach().reshape(-1).numpy().astype(np.float64)
        src, dst = r.src.numpy(), r.dst.numpy()
        sources, targets = topology.sources[etype[0]], topology.sources[etype[2]]
        relations.append(in_edges(src, dst, sources, targets, weights=weights))
    return replace(bare, relations=tuple(relations))


def seeds(g: DGLGraph, nodes: object) -> Seeds:
    """Nodes that a caller gave, ids or a mask or a dict of these by type, as seeds of a batch.

    Raises `DGLError` for types and ids that are not there, and ids of another dtype.
    """
    given = node_ids(g, nodes)
    return Seeds(tuple(given[ntype].numpy() for ntype in g.ntypes))
