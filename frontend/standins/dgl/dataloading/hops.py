"""Edges drawn hop by hop from the seeds on, as samplers of DGL's interface ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnc.runtime.sampling.sampler import Graph, NeighborSampler, Picks

from ..base import DGLError
from ..graph import DGLGraph
from ..subgraphs import chosen_edges
from . import structure
from .keys import next_key, threads
from .layers import Excluded, Layer, by_relation, layers, without

Fanout = int | Mapping[Any, int]


class Hops:
    """Draws edges by layers; any number of threads may call it at a time.

    Args:
        fanouts: of each layer, that of the input first, how many edges to a node are taken of each
            type: a number, or one for each type; -1 takes all.
        weight: the edge feature in proportion to which edges are drawn; edges of 0 never are.
        mask: the edge feature that tells which edges may be drawn.
        pick, replace, tied: as `gnnc.runtime.sampling.sampler.NeighborSampler` has them.

    Raises:
        ValueError: no layer.
    """

    def __init__(
        self,
        fanouts: Sequence[Fanout],
        *,
        weight: str | None = None,
        mask: str | None = None,
        pick: Picks = "uniform",
        replace: bool = False,
        tied: bool = False,
    ) -> None:
        if len(fanouts) == 0:
            raise ValueError("fanouts must have a number for at least one layer")
        self._fanouts = fanouts
        self._pick: Picks = pick if weight is None else "weighted"
        self._name = weight if weight is not None else mask
        self._replace, self._tied = replace, tied
        self._samplers = structure.PerStructure(self._sampler, self._name)

    def _sampler(self, g: DGLGraph) -> NeighborSampler:
        return NeighborSampler(
            self._graph(g),
            [fanouts_of(g, fanout) for fanout in reversed(self._fanouts)],
            replace=self._replace,
            pick=self._pick,
            blocks=True,
            tied=self._tied,
        )

    def _graph(self, g: DGLGraph) -> Graph:
        return structure.plain(g) if self._name is None else structure.weighted(g, self._name)

    def prepare(self, g: DGLGraph) -> None:
        """Makes the sampler of a graph."""
        self._samplers(structure.check_graph(g))

    def draw(self, g: DGLGraph, seed_nodes: object, exclude_eids: object = None) -> list[Layer]:
        """What is drawn at each hop, counted from the seeds, but for the excluded edges.

        Raises `DGLError` and `TypeError` for graphs, seeds and edges that there are not.
        """
        structure.check_graph(g)
        sampler = self._samplers(g)
        seeds, excluded = structure.seeds(g, seed_nodes), edges_of(g, exclude_eids)
        drawn = layers(sampler.sample(seeds, next_key(), threads=threads()))
        if excluded is None:
            return drawn
        return without(drawn, sampler.graph.ends, by_relation(g, excluded))


def edges_of(g: DGLGraph, given: object) -> Excluded:
    """Ids of edges that a caller gave, by type."""
    return None if given is None else chosen_edges(g, given)


def fanouts_of(g: DGLGraph, fanout: Fanout) -> list[int]:
    """A number for each edge type.

    Raises `DGLError` for a dict without one of the types, or with others.
    """
    if not isinstance(fanout, Mapping):
        return [int(fanout)] * len(g.canonical_etypes)
    given = {g._find_etype(etype): int(count) for etype, count in fanout.items()}
    if missing := [etype for etype in g.canonical_etypes if etype not in given]:
        raise DGLError(
            "Fan-out must be specified for each edge type if a dict is provided: there is none for "
            f"{missing[0]}."
        )
    return [given[etype] for etype in g.canonical_etypes]


def check_direction(edge_dir: str) -> None:
    """Raises unless edges are followed from their targets, as message flow needs it."""
    if edge_dir == "out":
        raise NotImplementedError(
            "edge_dir='out' is not supported: blocks have the edges that lead to their targets. "
            "Sample from gnnc.dgl.reverse(g)."
        )
    if edge_dir != "in":
        raise ValueError(f"edge_dir must be 'in' or 'out', got {edge_dir!r}")
