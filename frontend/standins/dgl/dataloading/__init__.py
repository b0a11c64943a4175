"""`dgl.dataloading`: DGL 2.1's samplers and loaders, sampled by the C of `gnnc.runtime.sampling`.

What differs from DGL: all random numbers of a `DataLoader` follow from (seed, epoch, step), and
`num_workers` are threads of this process (docs/sampling.md).
"""

from . import negative_sampler
from .base import BlockSampler, Sampler
from .cluster_gcn import ClusterGCNSampler
from .dataloader import DataLoader
from .edge_prediction import EdgePredictionSampler, as_edge_prediction_sampler, find_exclude_eids
from .graph_dataloader import GraphCollator, GraphDataLoader
from .graphsaint import SAINTSampler
from .labor_sampler import LaborSampler
from .neighbor_sampler import (
    MultiLayerFullNeighborSampler,
    MultiLayerNeighborSampler,
    NeighborSampler,
)
from .prefetching import (
    set_dst_lazy_features,
    set_edge_lazy_features,
    set_node_lazy_features,
    set_src_lazy_features,
)
from .shadow import ShaDowKHopSampler

__all__ = [
    "BlockSampler",
    "ClusterGCNSampler",
    "DataLoader",
    "EdgePredictionSampler",
    "GraphCollator",
    "GraphDataLoader",
    "LaborSampler",
    "MultiLayerFullNeighborSampler",
    "MultiLayerNeighborSampler",
    "NeighborSampler",
    "SAINTSampler",
    "Sampler",
    "ShaDowKHopSampler",
    "as_edge_prediction_sampler",
    "find_exclude_eids",
    "negative_sampler",
    "set_dst_lazy_features",
    "set_edge_lazy_features",
    "set_node_lazy_features",
    "set_src_lazy_features",
]
