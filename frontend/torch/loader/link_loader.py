"""`gnnc.loader.LinkNeighborLoader`: batches of links, with what neighbours send to their ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NegativeSampling

from ....runtime.sampling.non_edges import NonEdges
from ....runtime.sampling.sampler import Key, Seeds
from .filtering import filtered
from .graphs import EdgeType, array, graph_of, store
from .loader import Loader
from .neighbor_loader import Fanouts, sampler_of
from .seeds import Int64s


class LinkNeighborLoader(Loader):
    """Batches of links and of the neighbours of their ends, as `torch_geometric.loader`'s loader of
    this name makes them.

    A batch is that of a `NeighborLoader` whose seeds are the ends of the links, each once, in
    ascending order. It has the places of these, `edge_label_index`, and their `edge_label`; with
    negatives of the mode `triplet` instead `src_index`, `dst_pos_index` and `dst_neg_index`.
    Negatives are drawn from the pairs that neither an edge of the data nor a given link joins, each
    with the same probability, where PyG's are any pairs.

    Args:
        data, num_neighbors, replace, weight_attr: those of `NeighborLoader`.
        edge_label_index: the links, shape [2, links], None for all edges; of a `HeteroData` a type
            of edges, or a pair of it and these.
        edge_label: shape [links, ..]. With binary negatives, which have the label 0, labels from 0
            on are counted from 1 on; by default links then have the label 1.
        neg_sampling: PyG's `NegativeSampling`, or its mode.
        neg_sampling_ratio: short for binary negatives, so many a link.
        arguments: those of `Loader`.

    Raises:
        AttributeError, IndexError, TypeError, ValueError: as `NeighborLoader` does.
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Fanouts,
        edge_label_index: Any = None,
        edge_label: Tensor | None = None,
        replace: bool = False,
        weight_attr: str | None = None,
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        **arguments: Any,
    ) -> None:
        self.data, self.num_neighbors = data, num_neighbors
        self.edge_label_index = edge_label_index
        self._names = graph_of(data, weight_attr)
        self._type, links = _links(data, edge_label_index)
        self._ends = self._names.graph.ends[self._names.edge_types.index(self._type)]
        self._links = _checked(links, [self._names.graph.counts[t] for t in self._ends])
        self._negatives = _negatives(neg_sampling, neg_sampling_ratio)
        self._labels = _labels(edge_label, self._links.shape[1], self._negatives)
        self._free = None if self._negatives is None else self._non_edges(self._negatives)
        pick = "uniform" if weight_attr is None else "weighted"
        self._sampler = sampler_of(self._names, num_neighbors, replace, pick)
        super().__init__(self._links.shape[1], **arguments)

    def _non_edges(self, negatives: NegativeSampling) -> NonEdges:
        """Pairs of sources and targets; for triplets the other way round, for it is sources whose
        targets are drawn."""
        known = array(store(self.data, self._type)["edge_index"])
        src, dst = np.concatenate([known, self._links], axis=1)
        sources, targets = (self._names.graph.counts[t] for t in self._ends)
        if negatives.is_triplet():
            return NonEdges(dst, src, targets, sources)
        return NonEdges(src, dst, sources, targets)

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        src, dst = self._links[:, places]
        src, dst = self._with_negatives(src, dst, key, threads)
        nodes = [np.zeros(0, np.int64)] * len(self._names.node_types)
        a, b = self._ends
        if a == b:
            nodes[a], inverse = np.unique(np.concatenate([src, dst]), return_inverse=True)
            src_places, dst_places = inverse[: src.size], inverse[src.size :]
        else:
            nodes[a], src_places = np.unique(src, return_inverse=True)
            nodes[b], dst_places = np.unique(dst, return_inverse=True)
        batch = self._sampler.sample(Seeds(tuple(nodes)), key, threads=threads)
        made = filtered(self.data, self._names, batch, threads)
        self._describe(made, places, torch.from_numpy(src_places), torch.from_numpy(dst_places))
        return made

    def _with_negatives(
        self, src: Int64s, dst: Int64s, key: Key, threads: int | None
    ) -> tuple[Int64s, Int64s]:
        """The ends of links and negatives: with pairs behind both, else with targets behind the
        links' own."""
        if self._negatives is None or self._free is None:
            return src, dst
        if self._negatives.is_binary():
            count = math.ceil(src.size * self._negatives.amount)
            more = self._free.pairs(count, key, threads=threads)
            return np.concatenate([src, more[0]]), np.concatenate([dst, more[1]])
        drawn = self._free.sources_for(src, int(self._negatives.amount), key, threads=threads)
        if (drawn < 0).any():
            raise ValueError(f"node {src[(drawn < 0).any(1)][0]} has a link to every other one")
        return src, np.concatenate([dst, drawn.ravel()])

    def _describe(self, made: Any, places: Int64s, src: Tensor, dst: Tensor) -> None:
        links, (a, b) = store(made, self._type), self._ends
        links["input_id"] = torch.from_numpy(places)
        if self._negatives is not None and self._negatives.is_triplet():
            names = self._names.node_types
            count = places.size
            store(made, names[a])["src_index"] = src
            store(made, names[b])["dst_pos_index"] = dst[:count]
            store(made, names[b])["dst_neg_index"] = dst[count:].view(count, -1).squeeze(-1)
            return
        links["edge_label_index"] = torch.stack([src, dst])
        labels = None if self._labels is None else self._labels[torch.from_numpy(places)]
        if labels is not None and src.numel() > places.size:
            none = labels.new_zeros((src.numel() - places.size, *labels.shape[1:]))
            labels = torch.cat([labels, none])
        links["edge_label"] = labels

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _links(data: Any, given: Any) -> tuple[EdgeType, Any]:
    """The type of the links, and the links."""
    name: EdgeType = None
    if isinstance(data, HeteroData):
        if not isinstance(given, list | tuple) or not given:
            raise TypeError(
                "edge_label_index of a HeteroData is a type of edges, or a pair of it and the links"
            )
        kind, given = (given, None) if isinstance(given[0], str) else given
        name = data._to_canonical(*kind)
        if name not in data.edge_types:
            raise ValueError(f"edge_label_index names {name}, but the types are {data.edge_types}")
    return name, store(data, name)["edge_index"] if given is None else given


def _checked(links: Any, counts: list[int]) -> Int64s:
    links = torch.as_tensor(links)
    if links.dim() != 2 or links.size(0) != 2 or links.is_floating_point():
        raise TypeError("edge_label_index must be integers of shape [2, links]")
    found = array(links.to(torch.int64))
    for end, count in zip(found, counts, strict=True):
        if ((end < 0) | (end >= count)).any():
            raise IndexError(f"edge_label_index names a node that is none of {count}")
    return found


def _negatives(given: Any, ratio: float | None) -> NegativeSampling | None:
    if ratio:
        given = NegativeSampling("binary", ratio)
    found = NegativeSampling.cast(given)
    if found is not None and (found.src_weight is not None or found.dst_weight is not None):
        raise ValueError("neg_sampling with weights is not supported: negatives are equally likely")
    return found


def _labels(given: Tensor | None, links: int, negatives: NegativeSampling | None) -> Tensor | None:
    if given is not None and len(given) != links:
        raise ValueError(f"edge_label has {len(given)} labels for {links} links")
    if negatives is None:
        return given
    if negatives.is_triplet():
        if given is not None:
            raise ValueError("triplets have no labels: leave out edge_label")
        return None
    if given is None:
        return torch.ones(links, device="cpu")
    return given + 1 if given.numel() and given.min() == 0 else given
