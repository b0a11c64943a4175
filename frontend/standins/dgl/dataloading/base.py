"""What samplers share: `Sampler`, and `BlockSampler` for those that make blocks."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..base import NID
from ..graph import DGLGraph
from .prefetching import (
    Names,
    set_dst_lazy_features,
    set_edge_lazy_features,
    set_src_lazy_features,
)

Nodes = Tensor | dict[str, Tensor]
"""Ids of nodes, of several types by type."""
Blocks = tuple[Any, Any, list[DGLGraph]]
"""Input nodes, output nodes, and the blocks between them, that of the first layer first."""


class Sampler:
    """Makes a batch of a graph and indices; a subclass says how, in `sample`.

    Attributes:
        splits: whether what is sampled for an index depends on no other index of the batch.
    """

    splits = False

    def prepare(self, g: Any) -> None:
        """Makes what it keeps of a graph, if anything."""

    def sample(self, g: Any, indices: Any) -> Any:
        """The batch of these indices."""
        raise NotImplementedError(f"{type(self).__name__} makes no batches: define sample")


class BlockSampler(Sampler):
    """Makes blocks, in `sample_blocks` of a subclass.

    Args:
        prefetch_node_feats: features of nodes that are gathered with the batch for the sources of
            the first block; of several types a dict by type.
        prefetch_labels: those for the targets of the last block.
        prefetch_edge_feats: features of edges, for all blocks.
        output_device: where blocks are put; by default they stay with the graph.
    """

    def __init__(
        self,
        prefetch_node_feats: Names = None,
        prefetch_labels: Names = None,
        prefetch_edge_feats: Names = None,
        output_device: Any = None,
    ) -> None:
        self.prefetch_node_feats = prefetch_node_feats or []
        self.prefetch_labels = prefetch_labels or []
        self.prefetch_edge_feats = prefetch_edge_feats or []
        self.output_device = output_device

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Blocks:
        """Input nodes, output nodes and blocks, of the first layer first."""
        raise NotImplementedError(f"{type(self).__name__} makes no blocks: define sample_blocks")

    def assign_lazy_features(self, result: Blocks) -> Blocks:
        """Gathers what is to be prefetched."""
        blocks = result[2]
        set_src_lazy_features(blocks[0], self.prefetch_node_feats)
        set_dst_lazy_features(blocks[-1], self.prefetch_labels)
        for block in blocks:
            set_edge_lazy_features(block, self.prefetch_edge_feats)
        return result

    def sample(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """`(input_nodes, output_nodes, blocks)` of seeds: ids of nodes, of several types a dict.

        `exclude_eids`, ids of edges or a dict of these by type, are left out of what was drawn.
        """
        return self.assign_lazy_features(self.sample_blocks(g, seed_nodes, exclude_eids))


def source_ids(g: DGLGraph) -> Nodes:
    """The rows of the sources in the graph that a batch is from: by type if there are several."""
    ids = {ntype: frame[NID] for ntype, frame in g._source_frames.items()}
    return ids if len(ids) != 1 else next(iter(ids.values()))
