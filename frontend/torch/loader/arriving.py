"""What the edges of a batch are arranged for, by the thread that makes it: see
frontend/torch/calls/arrivals.py."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from ..calls.arrivals import Asked, arrive
from .graphs import EdgeType, store


class Arriving:
    """Arranges the edges of a loader's batches as programs asked of those before."""

    def __init__(self) -> None:
        self.asked: defaultdict[EdgeType, Asked] = defaultdict(Asked)

    def __call__(self, batch: Any) -> None:
        """To be called with each batch as it is given out. What is no graph, or one that is not
        on the host, is left as it is."""
        if isinstance(batch, HeteroData):
            names: list[EdgeType] = list(batch.edge_types)
        elif isinstance(batch, Data):
            names = [None]
        else:
            return
        for name in names:
            edges = store(batch, name).get("edge_index")
            ends = (None, None) if name is None else (name[0], name[2])
            source, target = (_nodes(store(batch, end)) for end in ends)
            if _is_list(edges) and source is not None and target is not None:
                arrive(edges, (source, target), self.asked[name])


def _is_list(edges: Any) -> bool:
    return (
        type(edges) is Tensor
        and edges.is_cpu
        and edges.layout is torch.strided
        and edges.dim() == 2
        and edges.size(0) == 2
        and edges.dtype in (torch.int64, torch.int32)
        and edges.stride(1) == 1
    )


def _nodes(of_type: Any) -> int | None:
    """How many nodes a batch has of a type: loaders say which they are."""
    ids = of_type.get("n_id")
    return ids.numel() if isinstance(ids, Tensor) else None
