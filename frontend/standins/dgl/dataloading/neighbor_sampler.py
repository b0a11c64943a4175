"""Samplers of neighbours: some of each node, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import DGLGraph
from .base import Blocks, BlockSampler, source_ids
from .hops import Fanout, Hops, check_direction
from .layers import Layer, block


class NeighborSampler(BlockSampler):
    """Draws neighbours of each node, layer by layer (Hamilton et al., "Inductive representation
    learning on large graphs", NeurIPS 2017). Every node is expanded at every layer from that on
    where it is met.

    Args:
        fanouts: of each layer, that of the input first, how many edges to a node are taken of each
            type: a number, or a dict by type; -1 takes all.
        edge_dir: `in`.
        prob: the edge feature in proportion to which edges are drawn, 1 in types that lack it.
        mask: the edge feature, of bools, that tells which edges may be drawn.
        replace: whether an edge may be drawn more than once: then exactly so many are drawn to a
            node that has any.
        prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device: as in
            `BlockSampler`.
        fused: has no effect: hops are always drawn and numbered together.

    Raises:
        ValueError: no layer, both `prob` and `mask`, a direction that is none.
        NotImplementedError: `edge_dir="out"`.
    """

    splits = True

    def __init__(
        self,
        fanouts: Sequence[Fanout],
        edge_dir: str = "in",
        prob: str | None = None,
        mask: str | None = None,
        replace: bool = False,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        fused: bool = True,
    ) -> None:
        super().__init__(prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device)
        check_direction(edge_dir)
        if prob is not None and mask is not None:
            raise ValueError(
                "Mask and probability arguments are mutually exclusive: multiply the probability "
                "by the mask"
            )
        self.fanouts, self.edge_dir, self.replace = fanouts, edge_dir, replace
        self.prob = prob if prob is not None else mask
        self._hops = Hops(fanouts, weight=prob, mask=mask, replace=replace)

    def prepare(self, g: Any) -> None:
        """Makes what it keeps of a graph."""
        self._hops.prepare(g)

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Blocks:
        """Input nodes, `seed_nodes`, and a block a layer, that of the input first."""
        drawn = self._hops.draw(g, seed_nodes, exclude_eids)
        return blocks_of(g, seed_nodes, drawn, self.output_device)


MultiLayerNeighborSampler = NeighborSampler


class MultiLayerFullNeighborSampler(NeighborSampler):
    """Takes all neighbours at `num_layers` layers.

    Args:
        kwargs: those of `NeighborSampler`.
    """

    def __init__(self, num_layers: int, **kwargs: Any) -> None:
        super().__init__([-1] * num_layers, **kwargs)


def blocks_of(g: DGLGraph, seed_nodes: Any, drawn: list[Layer], device: Any) -> Blocks:
    """Input nodes, `seed_nodes`, and the blocks of layers that are counted from the seeds."""
    blocks = [block(g, layer).to(device) for layer in reversed(drawn)]
    return source_ids(blocks[0]), seed_nodes, blocks
