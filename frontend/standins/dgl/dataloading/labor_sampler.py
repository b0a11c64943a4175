"""Neighbours that the targets of a layer share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Blocks, BlockSampler
from .hops import Fanout, Hops, check_direction
from .neighbor_sampler import blocks_of


class LaborSampler(BlockSampler):
    """LABOR-0 (Balin, Catalyurek, "Layer-neighbor sampling", NeurIPS 2023): each source has one
    random number a layer, and is a neighbour of those targets where the number is below
    fan-out / degree. So targets have as many neighbours as the fan-out in the mean, and share them.

    Args:
        fanouts: as in `NeighborSampler`.
        edge_dir: `in`.
        layer_dependency: whether layers share the random numbers.
        prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device: as in
            `BlockSampler`.

    Raises:
        ValueError: no layer, a direction that is none.
        NotImplementedError: other arguments than their defaults.
    """

    splits = True

    def __init__(
        self,
        fanouts: Sequence[Fanout],
        edge_dir: str = "in",
        prob: str | None = None,
        importance_sampling: int = 0,
        layer_dependency: bool = False,
        batch_dependency: int = 1,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
    ) -> None:
        super().__init__(prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device)
        check_direction(edge_dir)
        given = (prob, importance_sampling, batch_dependency)
        if given != (None, 0, 1):
            raise NotImplementedError(
                "LaborSampler is LABOR-0: leave out prob, importance_sampling and "
                f"batch_dependency, got {given}"
            )
        self.fanouts, self.edge_dir, self.layer_dependency = fanouts, edge_dir, layer_dependency
        self._hops = Hops(fanouts, pick="labor", tied=layer_dependency)

    def prepare(self, g: Any) -> None:
        """Makes what it keeps of a graph."""
        self._hops.prepare(g)

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Blocks:
        """Input nodes, `seed_nodes`, and a block a layer, that of the input first."""
        drawn = self._hops.draw(g, seed_nodes, exclude_eids)
        return blocks_of(g, seed_nodes, drawn, self.output_device)
