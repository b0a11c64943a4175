"""Loaders of induced subgraphs: ShaDow's, those of clusters, those of random walks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from ....runtime.sampling.in_edges import in_edges
from ....runtime.sampling.sampler import Key, NeighborSampler
from ....runtime.sampling.walks import walk
from .filtering import at_rows, filtered
from .graphs import array, graph_of
from .loader import Loader
from .seeds import STARTS, Int64s, generator, input_nodes


def _plain(data: Any, loader: str) -> Data:
    if not isinstance(data, Data):
        raise TypeError(f"{loader} reads a Data, not a {type(data).__name__}")
    return data


class ShaDowKHopSampler(Loader):
    """A graph for each seed: the seed, what is sampled around it, and all edges between these (Zeng
    et al., "Decoupling the depth and scope of graph neural networks", NeurIPS 2021), as
    `torch_geometric.loader`'s class of this name makes them.

    A batch has the graphs one behind the other, each with its seed first: `batch`, `ptr`, and
    `root_n_id`, the places of the seeds. Attributes of nodes are those at `n_id`, but `y` only at
    the seeds; of edges those at `e_id`.

    Args:
        data: a `Data`.
        depth: how many hops; num_neighbors: edges taken of a node at each, -1 takes all.
        node_idx: node numbers or a mask, None for all.
        replace: whether an edge may be taken more than once.
        arguments: those of `Loader`.

    Raises:
        IndexError, TypeError, ValueError: data or arguments that are none.
    """

    def __init__(
        self,
        data: Any,
        depth: int,
        num_neighbors: int,
        node_idx: Any = None,
        replace: bool = False,
        **arguments: Any,
    ) -> None:
        if depth < 0:
            raise ValueError(f"depth must not be negative, got {depth}")
        self.data = _plain(data, type(self).__name__)
        self.depth, self.num_neighbors, self.replace = depth, num_neighbors, replace
        _, self.node_idx, _ = input_nodes(data, node_idx)
        self._names = graph_of(data)
        self._sampler = NeighborSampler(
            self._names.graph, [num_neighbors] * depth, replace=replace, induced=True, disjoint=True
        )
        super().__init__(self.node_idx.size, **arguments)

    @property
    def splits(self) -> bool:
        """See Loader."""
        return True

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        sampled = self._sampler.sample(self.node_idx[places], key, threads=threads)
        nodes, edges = sampled.nodes[0], sampled.edges[0]
        assert nodes.graphs is not None
        graphs, ids = torch.from_numpy(nodes.graphs), torch.from_numpy(nodes.ids)
        ptr = torch.from_numpy(np.searchsorted(nodes.graphs, np.arange(places.size + 1)))
        made = Batch(batch=graphs, ptr=ptr)
        made.root_n_id, made.n_id, made.e_id = ptr[:-1], ids, torch.from_numpy(edges.ids)
        made.edge_index = torch.from_numpy(edges.index)
        kept = self.data._store
        for name, value in kept.items():
            if name in ("edge_index", "num_nodes", "batch", "ptr"):
                continue
            if kept.is_node_attr(name):
                rows = ids[made.root_n_id] if name == "y" else ids
                made[name] = at_rows(value, rows, threads=threads)
            elif kept.is_edge_attr(name):
                made[name] = at_rows(value, made.e_id, threads=threads)
            else:
                made[name] = value
        return made


class _Induced(Loader):
    """Subgraphs of chosen nodes, with all edges between these."""

    def __init__(self, data: Any, count: int, **arguments: Any) -> None:
        self.data = _plain(data, type(self).__name__)
        self._names = graph_of(data)
        self._sampler = NeighborSampler(self._names.graph, [], induced=True)
        super().__init__(count, **arguments)

    def _subgraph(self, nodes: Int64s, key: Key, threads: int | None) -> Any:
        batch = self._sampler.sample(nodes, key, threads=threads)
        return filtered(self.data, self._names, batch, threads, hops=False)


class ClusterLoader(_Induced):
    """Batches of clusters, with the edges within and between them (Chiang et al., "Cluster-GCN",
    KDD 2019). A batch is a copy of `data` at these nodes and edges, with `n_id` and `e_id`.

    Args:
        data: a `Data`.
        parts: of each node its cluster, shape [nodes], integers from 0 on.
        arguments: those of `Loader`; `batch_size` clusters are in a batch.

    Raises:
        IndexError, TypeError, ValueError: data, parts or arguments that are none.
    """

    def __init__(self, data: Any, parts: Tensor, **arguments: Any) -> None:
        given = torch.as_tensor(parts)
        count = int(_plain(data, type(self).__name__).num_nodes)
        if given.shape != (count,) or given.is_floating_point() or given.dtype == torch.bool:
            raise ValueError(f"parts must be integers of shape [{count}], one for each node")
        numbers = array(given.to(torch.int64))
        if numbers.min(initial=0) < 0:
            raise ValueError("parts must be numbers from 0 on")
        self._nodes = np.argsort(numbers, kind="stable")
        self._ends = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
        super().__init__(data, self._ends.size - 1, **arguments)

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        clusters = [self._nodes[self._ends[p] : self._ends[p + 1]] for p in places.tolist()]
        return self._subgraph(np.concatenate(clusters), key, threads)


class RandomWalkLoader(_Induced):
    """Subgraphs of what random walks visit (Zeng et al., "GraphSAINT", ICLR 2020), as
    `torch_geometric.loader.GraphSAINTRandomWalkSampler` makes them, but for its estimates of how
    often a node is visited. A batch is a copy of `data` at these nodes, ascending, and the edges
    between them, with `n_id` and `e_id`.

    Args:
        data: a `Data`. Walks go along its edges, and stay where none leads on.
        batch_size: walks a batch, from nodes that are drawn uniformly, one by one.
        walk_length: steps of each.
        num_steps: batches an epoch.
        arguments: those of `Loader`.

    Raises:
        IndexError, TypeError, ValueError: data or arguments that are none, or a graph without
            nodes.
    """

    def __init__(
        self, data: Any, batch_size: int, walk_length: int, num_steps: int = 1, **arguments: Any
    ) -> None:
        if walk_length < 0 or num_steps < 0 or batch_size < 1:
            raise ValueError(
                f"there must be walks, steps and batches, got batch_size={batch_size}, "
                f"walk_length={walk_length}, num_steps={num_steps}"
            )
        super().__init__(data, num_steps, **arguments)
        (count,) = self._names.graph.counts
        if count == 0:
            raise ValueError("a graph without nodes has no walks")
        src, dst = array(data.edge_index)
        self._along = in_edges(dst, src, count, count)
        self.walks, self.walk_length = batch_size, walk_length

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        random = generator(key.seed, key.epoch, key.step, STARTS)
        starts = random.integers(0, self._along.targets, self.walks)
        found = walk(self._along, starts, self.walk_length, key, threads=threads)
        return self._subgraph(np.unique(found.nodes).astype(np.int64), key, threads)
