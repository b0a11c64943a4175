"""Subgraphs between seeds and what is sampled around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import DGLGraph
from .base import Sampler, source_ids
from .hops import Fanout, Hops, edges_of
from .induced import induced
from .prefetching import Names, set_edge_lazy_features, set_node_lazy_features


class ShaDowKHopSampler(Sampler):
    """One graph a batch: its seeds, what is sampled around them, and all edges between these (Zeng
    et al., "Decoupling the depth and scope of graph neural networks", NeurIPS 2021). Seeds come
    first. PyG's and `gnnc.loader`'s sampler of this name keep a graph apart for each seed.

    Args:
        fanouts, replace, prob, output_device: as in `NeighborSampler`.
        prefetch_node_feats, prefetch_edge_feats: features that are gathered with the batch; of
            several types a dict by type.

    Raises:
        ValueError: no layer.
    """

    def __init__(
        self,
        fanouts: Sequence[Fanout],
        replace: bool = False,
        prob: str | None = None,
        prefetch_node_feats: Names = None,
        prefetch_edge_feats: Names = None,
        output_device: Any = None,
    ) -> None:
        self.fanouts, self.replace, self.prob = fanouts, replace, prob
        self.prefetch_node_feats = prefetch_node_feats
        self.prefetch_edge_feats = prefetch_edge_feats
        self.output_device = output_device
        self._hops = Hops(fanouts, weight=prob, replace=replace)

    def sample(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Any, Any, DGLGraph]:
        """All nodes of the batch, `seed_nodes`, and the graph of the batch.

        Excluded edges are neither followed nor in the graph.
        """
        nodes = self._hops.draw(g, seed_nodes, exclude_eids)[-1].nodes
        made = induced(g, nodes, edges_of(g, exclude_eids))
        set_node_lazy_features(made, self.prefetch_node_feats)
        set_edge_lazy_features(made, self.prefetch_edge_feats)
        made = made.to(self.output_device)
        return source_ids(made), seed_nodes, made
