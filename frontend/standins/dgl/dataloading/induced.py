"""The subgraph between some nodes, in time linear in their edges rather than in the graph's."""

from __future__ import annotations

import numpy as np

from gnnc.runtime.sampling.sampler import NeighborSampler, Seeds
from gnnc.runtime.sets.kernels import Int64s

from ..graph import DGLGraph
from . import structure
from .keys import threads
from .layers import Edges, Excluded, Layer, by_relation, subgraph

_samplers = structure.PerStructure(lambda g: NeighborSampler(structure.plain(g), [], induced=True))


def induced(g: DGLGraph, nodes: tuple[Int64s, ...], excluded: Excluded = None) -> DGLGraph:
    """The nodes, by type, in this order, and all edges between them that are not excluded."""
    batch = _samplers(g).sample(Seeds(nodes), threads=threads())
    edges: list[Edges] = []
    for found, out in zip(batch.edges, by_relation(g, excluded), strict=True):
        edge = Edges(*found.index, found.ids)
        edges.append(edge if out is None else edge.where(~np.isin(edge.ids, out)))
    counts = tuple(n.ids.size for n in batch.nodes)
    return subgraph(g, Layer(tuple(n.ids for n in batch.nodes), counts, tuple(edges)))
