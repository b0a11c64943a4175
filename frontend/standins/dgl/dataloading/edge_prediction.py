"""Batches of edges: the pairs, and what a sampler of neighbours draws around their ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnc.runtime.sets.kernels import Int64s

from ..base import NID, DGLError
from ..graph import DGLGraph
from ..topology import EType, Topology, relation
from .base import Sampler, source_ids
from .hops import edges_of
from .layers import Edges, Layer, subgraph
from .prefetching import Names, set_edge_lazy_features
from .structure import check_graph

Ends = dict[EType, tuple[Int64s, Int64s]]


class EdgePredictionSampler(Sampler):
    """What `as_edge_prediction_sampler` makes."""

    def __init__(
        self,
        sampler: Any,
        exclude: Any = None,
        reverse_eids: Any = None,
        reverse_etypes: Mapping[Any, Any] | None = None,
        negative_sampler: Callable[[Any, Any], Any] | None = None,
        prefetch_labels: Names = None,
    ) -> None:
        if len(inspect.signature(sampler.sample).parameters) < 3:
            raise TypeError(
                "This sampler does not support edge or link prediction: its method sample() needs "
                "a third argument, the ids of edges to exclude."
            )
        _check_mode(exclude, reverse_eids, reverse_etypes)
        self.sampler, self.exclude, self.negative_sampler = sampler, exclude, negative_sampler
        self.reverse_eids, self.reverse_etypes = reverse_eids, reverse_etypes
        self.prefetch_labels = prefetch_labels or []
        self.output_device = getattr(sampler, "output_device", None)

    def assign_lazy_features(self, result: Any) -> Any:
        """Gathers what is to be prefetched."""
        set_edge_lazy_features(result[1], self.prefetch_labels)
        return result

    def sample(self, g: Any, seed_edges: Any) -> Any:
        """`(input_nodes, pair_graph, blocks)` of edges, ids or a dict of these by type; with a
        negative sampler `(input_nodes, pair_graph, negative_graph, blocks)`.

        Both graphs have the nodes at the ends of pairs, those of the graph that `_ID` names.
        """
        check_graph(g)
        chosen = edges_of(g, seed_edges)
        assert chosen is not None
        relations = g._topology.relations
        ids = {etype: eids.numpy() for etype, eids in chosen.items()}
        pairs = {e: (r.src.numpy()[ids[e]], r.dst.numpy()[ids[e]]) for e, r in relations.items()}
        negatives = None if self.negative_sampler is None else self._negatives(g, seed_edges)
        nodes = _ends(g, [pairs] if negatives is None else [pairs, negatives])
        made = _pair_graph(g, nodes, pairs, ids)
        exclude = find_exclude_eids(
            g, seed_edges, self.exclude, self.reverse_eids, self.reverse_etypes
        )
        input_nodes, _, blocks = self.sampler.sample(g, source_ids(made), exclude)
        graphs = [made] if negatives is None else [made, _negative_graph(made, nodes, negatives)]
        moved = [graph.to(self.output_device) for graph in graphs]
        return self.assign_lazy_features((input_nodes, *moved, blocks))

    def _negatives(self, g: DGLGraph, seed_edges: Any) -> Ends:
        assert self.negative_sampler is not None
        given = self.negative_sampler(g, seed_edges)
        if not isinstance(given, Mapping):
            if len(g.canonical_etypes) != 1:
                raise DGLError("The graph has several edge types: negatives must be a dict by type")
            given = {g.canonical_etypes[0]: given}
        found = {g._find_etype(etype): pair for etype, pair in given.items()}
        counts, none = g._topology.sources, np.zeros(0, np.int64)
        made: Ends = {}
        for etype in g.canonical_etypes:
            src, dst = found.get(etype, (none, none))
            if len(src) != len(dst):
                raise DGLError(f"Negatives of {etype} have {len(src)} sources, {len(dst)} targets.")
            sides = zip((src, dst), ("sources", "targets"), (etype[0], etype[2]), strict=True)
            u, v = (g._ids(i, f"negative {what}", counts[t]).numpy() for i, what, t in sides)
            made[etype] = u, v
        return made


def as_edge_prediction_sampler(
    sampler: Any,
    exclude: Any = None,
    reverse_eids: Any = None,
    reverse_etypes: Mapping[Any, Any] | None = None,
    negative_sampler: Callable[[Any, Any], Any] | None = None,
    prefetch_labels: Names = None,
) -> EdgePredictionSampler:
    """A sampler of edges, of one of nodes: it samples around the ends of the edges of a batch, and
    of its negatives.

    Args:
        sampler: has `sample(g, nodes, exclude_eids)`.
        exclude: which edges of the graph are left out of what is drawn: None; `self`, the edges of
            the batch; `reverse_id`, these and their reverse edges by `reverse_eids`;
            `reverse_types`, these and the edges of equal ids in the types of `reverse_etypes`; a
            function of the batch's edges; or ids.
        reverse_eids: of each edge the reverse one, shape (edges,), or a dict of these by type.
        reverse_etypes: of edge types the reverse one.
        negative_sampler: a function of the graph and the batch's edges, which gives sources and
            targets, or a dict of these by type.
        prefetch_labels: features of edges that are gathered with the pairs' graph.

    Raises:
        TypeError: a sampler that takes no edges to exclude.
        ValueError: a way to exclude that is none, or one without its argument.
    """
    return EdgePredictionSampler(
        sampler, exclude, reverse_eids, reverse_etypes, negative_sampler, prefetch_labels
    )


def find_exclude_eids(
    g: Any,
    seed_edges: Any,
    exclude: Any,
    reverse_eids: Any = None,
    reverse_etypes: Mapping[Any, Any] | None = None,
    output_device: Any = None,
) -> Any:
    """The edges to leave out for a batch of edges: ids, or a dict of these by type, or None; see
    `as_edge_prediction_sampler`. Raises `ValueError` for a way to exclude that is none."""
    _check_mode(exclude, reverse_eids, reverse_etypes)
    found = _excluded(g, seed_edges, exclude, reverse_eids, reverse_etypes)
    if output_device is None or found is None:
        return found
    if isinstance(found, Mapping):
        return {etype: ids.to(output_device) for etype, ids in found.items()}
    return found.to(output_device)


def _excluded(g: DGLGraph, edges: Any, exclude: Any, reverse_eids: Any, reverse_etypes: Any) -> Any:
    if exclude is None or exclude is False:
        return None
    if callable(exclude) and not isinstance(exclude, Tensor):
        return exclude(edges)
    if not isinstance(exclude, str):
        return exclude
    if not isinstance(edges, Mapping):
        if exclude == "reverse_id":
            return torch.cat([edges, reverse_eids[edges.long()]])
        if exclude == "self":
            return edges
        edges = {g._find_etype(None): edges}
    found: dict[EType, Tensor] = {g._find_etype(etype): ids for etype, ids in edges.items()}
    if exclude == "reverse_id":
        reverse = {g._find_etype(etype): ids for etype, ids in reverse_eids.items()}
        return {e: torch.cat([ids, reverse[e][ids.long()]]) for e, ids in found.items()}
    if exclude == "reverse_types":
        turned = {g._find_etype(a): g._find_etype(b) for a, b in reverse_etypes.items()}
        given = dict(found)
        for etype in given.keys() & turned.keys():
            other = turned[etype]
            more = [found[other]] if other in found else []
            found[other] = torch.cat([*more, given[etype]]).unique()
    return found


def _check_mode(exclude: Any, reverse_eids: Any, reverse_etypes: Any) -> None:
    if not isinstance(exclude, str):
        return
    if exclude not in ("self", "reverse_id", "reverse_types"):
        raise ValueError(f"unsupported mode exclude={exclude!r}")
    if exclude == "reverse_id" and reverse_eids is None:
        raise ValueError("exclude='reverse_id' needs reverse_eids")
    if exclude == "reverse_types" and reverse_etypes is None:
        raise ValueError("exclude='reverse_types' needs reverse_etypes")


def _ends(g: DGLGraph, graphs: list[Ends]) -> dict[str, Int64s]:
    """The nodes at the ends of pairs by type, ascending."""
    met: dict[str, list[Int64s]] = {ntype: [np.zeros(0, np.int64)] for ntype in g.ntypes}
    for pairs in graphs:
        for (source, _, target), (src, dst) in pairs.items():
            met[source].append(src)
            met[target].append(dst)
    return {ntype: np.unique(np.concatenate(parts)) for ntype, parts in met.items()}


def _pair_graph(
    g: DGLGraph, nodes: dict[str, Int64s], pairs: Ends, ids: dict[EType, Int64s]
) -> DGLGraph:
    edges: list[Edges] = []
    for (source, name, target), (src, dst) in pairs.items():
        u, v = np.searchsorted(nodes[source], src), np.searchsorted(nodes[target], dst)
        edges.append(Edges(u, v, ids[source, name, target]))
    counts = tuple(found.size for found in nodes.values())
    return subgraph(g, Layer(tuple(nodes.values()), counts, tuple(edges)))


def _negative_graph(pairs: DGLGraph, nodes: dict[str, Int64s], negatives: Ends) -> DGLGraph:
    """Negatives among the nodes of the pairs' graph, which alone they have of it."""
    counts = {ntype: found.size for ntype, found in nodes.items()}
    relations = {}
    for etype, (src, dst) in negatives.items():
        source, _, target = etype
        u = torch.from_numpy(np.searchsorted(nodes[source], src))
        v = torch.from_numpy(np.searchsorted(nodes[target], dst))
        relations[etype] = relation(u, v, counts[source], counts[target])
    frames = {ntype: {NID: frame[NID]} for ntype, frame in pairs._source_frames.items()}
    topology = Topology(relations, counts, None, pairs.idtype, pairs.device)
    return DGLGraph(topology, None, None, (frames, frames))
