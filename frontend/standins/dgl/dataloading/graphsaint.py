"""Subgraphs between random nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnnc.frontend.torch.loader.seeds import DRAWS, generator
from gnnc.runtime.sampling.in_edges import InEdges, in_edges
from gnnc.runtime.sampling.walks import walk
from gnnc.runtime.sets.kernels import Int64s

from ..base import DGLError
from ..graph import DGLGraph
from . import structure
from .base import Sampler
from .induced import induced
from .keys import next_key, threads
from .prefetching import Names, set_edge_lazy_features, set_node_lazy_features


class SAINTSampler(Sampler):
    """Graphs between nodes that are drawn at random, and all edges between these (Zeng et al.,
    "GraphSAINT: graph sampling based inductive learning method", ICLR 2020). Indices only say how
    many batches there are.

    Args:
        mode: what is drawn: `node`, nodes in proportion to their out-degree; `edge`, edges in
            proportion to 1 / in-degree of the target + 1 / out-degree of the source, and both
            ends; `walk`, nodes from which walks start, uniformly, and what these visit along edges.
        budget: how many nodes or edges; of walks how many, and how many steps each.
        cache: has no effect: probabilities are kept for each graph.
        prefetch_ndata, prefetch_edata: features that are gathered with the batch.
        output_device: where graphs are put.

    Raises:
        DGLError: another mode.
        ValueError: a budget that is none.
    """

    def __init__(
        self,
        mode: str,
        budget: int | tuple[int, int],
        cache: bool = True,
        prefetch_ndata: Names = None,
        prefetch_edata: Names = None,
        output_device: Any = "cpu",
    ) -> None:
        if mode not in ("node", "edge", "walk"):
            raise DGLError(f"Expect mode to be 'node', 'edge' or 'walk', got {mode}.")
        numbers = np.atleast_1d(budget).tolist()
        if len(numbers) != (2 if mode == "walk" else 1) or min(numbers) < 0:
            raise ValueError(f"budget of mode {mode!r} is {budget!r}")
        self.mode, self.budget, self._numbers = mode, budget, numbers
        self.prefetch_ndata, self.prefetch_edata = prefetch_ndata or [], prefetch_edata or []
        self.output_device = output_device
        self._shares = structure.PerStructure(_by_node if mode == "node" else _by_edge)

    def sample(self, g: Any, indices: Any) -> DGLGraph:
        """A graph of nodes in ascending order."""
        structure.one_type(g, type(self).__name__)
        nodes = self._walked(g) if self.mode == "walk" else self._drawn(g)
        made = induced(g, (np.unique(nodes).astype(np.int64),))
        set_node_lazy_features(made, self.prefetch_ndata)
        set_edge_lazy_features(made, self.prefetch_edata)
        return made.to(self.output_device)

    def _drawn(self, g: DGLGraph) -> Int64s:
        sums = self._shares(g)
        if not sums.size:
            return np.zeros(0, np.int64)
        key = next_key()
        at = generator(key.seed, key.epoch, key.step, DRAWS).random(self._numbers[0]) * sums[-1]
        drawn = np.searchsorted(sums, at, side="right")
        if self.mode == "node":
            return drawn
        (r,) = g._topology.relations.values()
        return np.concatenate([r.src.numpy()[drawn], r.dst.numpy()[drawn]])

    def _walked(self, g: DGLGraph) -> Int64s:
        along, (walks, length) = _along(g), self._numbers
        if not along.targets:
            return np.zeros(0, np.int64)
        key = next_key()
        starts = generator(key.seed, key.epoch, key.step, DRAWS).integers(0, along.targets, walks)
        return walk(along, starts, length, key, threads=threads()).nodes.ravel()


def _out_edges(g: DGLGraph) -> InEdges:
    (r,), (count,) = g._topology.relations.values(), g._topology.sources.values()
    return in_edges(r.dst.numpy(), r.src.numpy(), count, count)


_along = structure.PerStructure(_out_edges)


def _by_node(g: DGLGraph) -> Any:
    """Running sums of the nodes' out-degrees, at least 1 each as in DGL."""
    (r,), (count,) = g._topology.relations.values(), g._topology.sources.values()
    return np.cumsum(np.maximum(np.bincount(r.src.numpy(), minlength=count), 1.0))


def _by_edge(g: DGLGraph) -> Any:
    (r,) = g._topology.relations.values()
    src, dst = r.src.numpy(), r.dst.numpy()
    return np.cumsum(1 / np.bincount(dst)[dst] + 1 / np.bincount(src)[src])
