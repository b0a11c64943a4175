"""What was sampled at each hop, and graphs of it: blocks and subgraphs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnnc.runtime.sampling.batch import Batch
from gnnc.runtime.sets.kernels import Int64s

from ..base import EID, NID
from ..frames import Frame, Inherited
from ..graph import DGLGraph
from ..topology import Coverage, EType, Relation, Topology

Excluded = dict[EType, Tensor] | None
"""Ids of edges that are not to be used, int64, by type."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of one relation: places of sources and targets, and ids, each shape (edges,), int64."""

    src: Int64s
    dst: Int64s
    ids: Int64s

    def where(self, mask: NDArray[np.bool_]) -> Edges:
        return Edges(self.src[mask], self.dst[mask], self.ids[mask])


@dataclass(frozen=True, eq=False)
class Layer:
    """One hop.

    Attributes:
        nodes: of each type the ids of the sources, shape (sources,), int64.
        targets: of each type how many of the sources, which come first, are targets.
        edges: by relation.
    """

    nodes: tuple[Int64s, ...]
    targets: tuple[int, ...]
    edges: tuple[Edges, ...]


def layers(batch: Batch) -> list[Layer]:
    """The hops of a batch of message-flow blocks, counted from the seeds."""
    made: list[Layer] = []
    for hop in range(batch.hops):
        blocks = [batch.block(hop, r) for r in range(len(batch.edges))]
        made.append(
            Layer(
                tuple(n.ids[: n.met[hop + 1]] for n in batch.nodes),
                tuple(int(n.met[hop]) for n in batch.nodes),
                tuple(Edges(*b.index, b.ids) for b in blocks),
            )
        )
    return made


def without(
    hops: list[Layer], ends: tuple[tuple[int, int], ...], excluded: list[Int64s | None]
) -> list[Layer]:
    """The hops if each had left out the excluded edges (by relation) of what it drew, as DGL does:
    a node that is met by these alone is not expanded."""
    if not hops:
        return []
    made: list[Layer] = []
    kept = [np.arange(count) for count in hops[0].targets]
    for hop in hops:
        at = [np.full(ids.size, -1, np.int64) for ids in hop.nodes]
        for places, few in zip(at, kept, strict=True):
            places[few] = np.arange(few.size)
        left: list[Edges] = []
        for edges, (_, target), out in zip(hop.edges, ends, excluded, strict=True):
            mask = at[target][edges.dst] >= 0
            left.append(edges.where(mask if out is None else mask & ~np.isin(edges.ids, out)))
        targets = tuple(few.size for few in kept)
        for number in range(len(kept)):
            met = [e.src for e, (source, _) in zip(left, ends, strict=True) if source == number]
            kept[number] = _with_new(kept[number], at[number], met)
        made.append(
            Layer(
                tuple(ids[few] for ids, few in zip(hop.nodes, kept, strict=True)),
                targets,
                tuple(
                    Edges(at[s][e.src], at[t][e.dst], e.ids)
                    for e, (s, t) in zip(left, ends, strict=True)
                ),
            )
        )
    return made


def _with_new(kept: Int64s, at: Int64s, met: list[Int64s]) -> Int64s:
    """The places with those behind them that are met now, which get their numbers in `at`."""
    new = np.concatenate(met) if met else np.zeros(0, np.int64)
    new = new[at[new] < 0]
    _, first = np.unique(new, return_index=True)
    new = new[np.sort(first)]
    at[new] = kept.size + np.arange(new.size)
    return np.concatenate([kept, new])


def block(g: DGLGraph, layer: Layer) -> DGLGraph:
    """The layer as a block: the first sources are the targets, `_ID` has rows in `g`, and all
    features of `g` are there."""
    nodes = dict(zip(g.ntypes, map(torch.from_numpy, layer.nodes), strict=True))
    targets = dict(zip(g.ntypes, layer.targets, strict=True))
    sources = {ntype: ids.shape[0] for ntype, ids in nodes.items()}
    topology = _topology(g, layer, sources, targets)
    frames = (
        {ntype: _rows(g, ntype, ids) for ntype, ids in nodes.items()},
        {ntype: _rows(g, ntype, ids[: targets[ntype]]) for ntype, ids in nodes.items()},
    )
    return DGLGraph(topology, None, None, frames, _edge_frames(g, layer))


def subgraph(g: DGLGraph, layer: Layer) -> DGLGraph:
    """A layer whose nodes are all targets, as a graph with the features of `g` and `_ID`."""
    nodes = dict(zip(g.ntypes, map(torch.from_numpy, layer.nodes), strict=True))
    counts = {ntype: ids.shape[0] for ntype, ids in nodes.items()}
    frames = {ntype: _rows(g, ntype, ids) for ntype, ids in nodes.items()}
    topology = _topology(g, layer, counts, None)
    return DGLGraph(topology, None, None, (frames, frames), _edge_frames(g, layer))


def _topology(
    g: DGLGraph, layer: Layer, sources: dict[str, int], targets: dict[str, int] | None
) -> Topology:
    ends = sources if targets is None else targets
    relations = {
        etype: Relation(
            torch.from_numpy(edges.src),
            torch.from_numpy(edges.dst),
            _coverage(edges.dst, ends[etype[2]]),
            _coverage(edges.src, sources[etype[0]]),
        )
        for etype, edges in zip(g.canonical_etypes, layer.edges, strict=True)
    }
    return Topology(relations, sources, targets, g.idtype, g.device)


def _coverage(places: Int64s, count: int) -> Coverage:
    """By NumPy: torch would wake a team of threads for each that loads."""
    seen = np.zeros(count, np.bool_)
    seen[places] = True
    return Coverage(bool(seen.all()))


def _rows(g: DGLGraph, ntype: str, ids: Tensor) -> Frame:
    return Inherited(g._source_frames[ntype], ids, {NID: g._typed(ids)[0]})


def _edge_frames(g: DGLGraph, layer: Layer) -> dict[EType, Frame]:
    made: dict[EType, Frame] = {}
    for etype, edges in zip(g.canonical_etypes, layer.edges, strict=True):
        ids = torch.from_numpy(edges.ids)
        made[etype] = Inherited(g._edge_frames[etype], ids, {EID: g._typed(ids)[0]})
    return made


def by_relation(g: DGLGraph, excluded: Excluded) -> list[Int64s | None]:
    """Excluded edges of each relation, None where there are none."""
    given = {} if excluded is None else excluded
    return [given[etype].numpy() if etype in given else None for etype in g.canonical_etypes]
