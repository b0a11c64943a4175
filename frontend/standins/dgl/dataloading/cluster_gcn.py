"""Subgraphs of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnc.runtime.partition.assign import Task, partition
from gnnc.runtime.partition.edges import in_memory
from gnnc.runtime.partition.metis import why_not
from gnnc.runtime.sets.kernels import Int64s

from ..base import DGLError
from ..graph import DGLGraph
from . import structure
from .base import Sampler
from .induced import induced
from .prefetching import Names, set_edge_lazy_features, set_node_lazy_features


class ClusterGCNSampler(Sampler):
    """Graphs of clusters, with all edges within and between these (Chiang et al., "Cluster-GCN",
    KDD 2019). Indices are clusters, below `k`.

    Args:
        g: the graph, of one node type and one edge type.
        k: how many clusters; METIS finds them where pymetis is installed, else bisection.
        cache_path: has no effect: no file is written.
        balance_ntypes, balance_edges, mode: their defaults.
        prefetch_ndata, prefetch_edata: features that are gathered with the batch.
        output_device: where graphs are put.
        parts: of each node its cluster, shape (nodes,), integers below `k`, in the place of those
            that are found.

    Raises:
        DGLError: a graph of several types.
        NotImplementedError: other arguments than their defaults.
        ValueError: clusters that are none.
    """

    def __init__(
        self,
        g: Any,
        k: int,
        cache_path: str | None = None,
        balance_ntypes: Tensor | None = None,
        balance_edges: bool = False,
        mode: str = "k-way",
        prefetch_ndata: Names = None,
        prefetch_edata: Names = None,
        output_device: Any = None,
        *,
        parts: Tensor | None = None,
    ) -> None:
        structure.one_type(g, type(self).__name__)
        if balance_ntypes is not None or balance_edges or mode != "k-way":
            raise NotImplementedError(
                "balance_ntypes, balance_edges and mode are not supported: give other clusters "
                "as parts="
            )
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        owner = _found(g, k) if parts is None else _given(g, k, parts)
        nodes = torch.from_numpy(np.argsort(owner, kind="stable"))
        ends = np.cumsum(np.bincount(owner, minlength=k))
        self.partition_node_ids = g._typed(nodes)[0]
        self.partition_offset = torch.from_numpy(np.concatenate([[0], ends]))
        self.prefetch_ndata, self.prefetch_edata = prefetch_ndata or [], prefetch_edata or []
        self.output_device = output_device

    def sample(self, g: Any, partition_ids: Any) -> DGLGraph:
        """The graph of the nodes of these clusters, one cluster behind the other.

        Raises `DGLError` for clusters that there are not, or of another graph.
        """
        structure.one_type(g, type(self).__name__)
        if g.num_nodes() != self.partition_node_ids.shape[0]:
            raise DGLError(
                f"The clusters are of a graph of {self.partition_node_ids.shape[0]} nodes, got one "
                f"of {g.num_nodes()}."
            )
        clusters = self.partition_offset.shape[0] - 1
        chosen = g._ids(partition_ids, "partition_ids", clusters, "Invalid cluster")
        nodes, ends = self.partition_node_ids.long().numpy(), self.partition_offset.numpy()
        few = [nodes[ends[i] : ends[i + 1]] for i in chosen.tolist()]
        made = induced(g, (np.concatenate([nodes[:0], *few]),))
        set_node_lazy_features(made, self.prefetch_ndata)
        set_edge_lazy_features(made, self.prefetch_edata)
        return made.to(self.output_device)


def _found(g: DGLGraph, k: int) -> Int64s:
    (r,) = g._topology.relations.values()
    task = Task(in_memory(r.src.numpy(), r.dst.numpy(), g.num_nodes()), k)
    method = "bisection" if why_not(task.graph, k) else "metis-default"
    return partition(task, [method]).owner.astype(np.int64)


def _given(g: DGLGraph, k: int, parts: Tensor) -> Int64s:
    given = torch.as_tensor(parts)
    if given.shape != (g.num_nodes(),) or given.is_floating_point() or given.dtype == torch.bool:
        raise ValueError(f"parts must be integers of shape ({g.num_nodes()},), one for each node")
    owner = given.cpu().long().numpy()
    if owner.size and not 0 <= owner.min() <= owner.max() < k:
        raise ValueError(f"parts must be from 0 to below k, {k}")
    return owner
