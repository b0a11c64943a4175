"""Devices, dtypes of ids, storage formats, and how a graph was batched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .base import DGLError
from .degrees import OneCount
from .frames import Frame, moved
from .segments import segment_ids
from .topology import EType

if TYPE_CHECKING:
    from .graph import DGLGraph

FORMATS = ("coo", "csr", "csc")


class Moving:
    """Methods of a graph about where and how it is kept."""

    def to(self: DGLGraph, device: Any, **kwargs: Any) -> DGLGraph:
        """The graph and its features on a device; itself if it is there, or `device` is None."""
        if device is None:
            return self
        device = torch.device(device)
        made = self.local_var()
        made._topology = self._topology.moved(device)
        places: list[dict[Any, Frame]] = [made._source_frames, made._edge_frames]
        if made.is_block:
            places.append(made._target_frames)
        for place in places:
            for kind, frame in list(place.items()):
                place[kind] = moved(frame, device, **kwargs)
        for name in ("_batch_nodes", "_batch_edges"):
            counted = getattr(made, name)
            if counted is not None:
                setattr(made, name, {kind: v.to(device) for kind, v in counted.items()})
        return made

    def cpu(self: DGLGraph) -> DGLGraph:
        """The graph in the memory of the CPU."""
        return self.to("cpu")

    def cuda(self: DGLGraph) -> DGLGraph:
        """The graph on the current GPU."""
        return self.to("cuda")

    def astype(self: DGLGraph, idtype: torch.dtype) -> DGLGraph:
        """The same graph, whose methods return ids of `torch.int32` or `torch.int64`."""
        made = self.local_var()
        made._topology = self._topology.typed(idtype)
        return made

    def int(self: DGLGraph) -> DGLGraph:
        """The same graph with ids of `int32`."""
        return self.astype(torch.int32)

    def long(self: DGLGraph) -> DGLGraph:
        """The same graph with ids of `int64`."""
        return self.astype(torch.int64)

    def formats(self: DGLGraph, formats: str | list[str] | None = None) -> Any:
        """Does nothing: edges are kept as pairs, and no other format is ever made.

        Without an argument it answers as DGL does, else it returns the graph.
        """
        if formats is None:
            return {"created": ["coo"], "not created": ["csr", "csc"]}
        wanted = [formats] if isinstance(formats, str) else formats
        if not set(wanted) <= set(FORMATS):
            raise DGLError(f"formats must be of {FORMATS}, got {formats!r}")
        return self.local_var()

    def create_formats_(self) -> None:
        """Does nothing: no format but pairs of ends is ever made."""

    # batches: how many nodes and edges each graph has, None for one graph

    @property
    def _batch_nodes(self: DGLGraph) -> dict[str, Tensor] | None:
        return self._node_counts

    @_batch_nodes.setter
    def _batch_nodes(self: DGLGraph, counts: dict[str, Tensor] | None) -> None:
        self._node_counts, self._node_owners = counts, owners(counts)

    @property
    def _batch_edges(self: DGLGraph) -> dict[EType, Tensor] | None:
        return self._edge_counts

    @_batch_edges.setter
    def _batch_edges(self: DGLGraph, counts: dict[EType, Tensor] | None) -> None:
        self._edge_counts, self._edge_owners = counts, owners(counts)

    @property
    def batch_size(self: DGLGraph) -> int:
        """Of how many graphs this one is made."""
        if self._batch_nodes is None:
            return 1
        return next(iter(self._batch_nodes.values())).shape[0]

    def batch_num_nodes(self: DGLGraph, ntype: str | None = None) -> Tensor:
        """How many nodes of a type each graph of the batch has, `(batch_size,)`."""
        if self._batch_nodes is not None:
            return self._batch_nodes[self._find_ntype(ntype, "any")[0]]
        return self._one_count(self._nodes_of(ntype).rows)

    def batch_num_edges(self: DGLGraph, etype: Any = None) -> Tensor:
        """How many edges of a type each graph of the batch has, `(batch_size,)`."""
        found = self._find_etype(etype)
        if self._batch_edges is not None:
            return self._batch_edges[found]
        return self._one_count(self.num_edges(found))

    def _one_count(self: DGLGraph, count: int) -> Any:
        found = torch.full((1,), count, dtype=self.idtype, device=self.device)
        return OneCount(found, count) if torch.compiler.is_dynamo_compiling() else found

    def set_batch_num_nodes(self: DGLGraph, val: Any) -> None:
        """Says how many nodes each graph has: `(batch_size,)`, or a dict of these by type."""
        if not isinstance(val, Mapping):
            if len(self.ntypes) != 1:
                raise DGLError("Must provide a dictionary when there are multiple node types.")
            val = {self.ntypes[0]: val}
        self._batch_nodes = {kind: self._count_tensor(v) for kind, v in val.items()}

    def set_batch_num_edges(self: DGLGraph, val: Any) -> None:
        """Says how many edges each graph has: `(batch_size,)`, or a dict of these by type."""
        if not isinstance(val, Mapping):
            if len(self.etypes) != 1:
                raise DGLError("Must provide a dictionary when there are multiple edge types.")
            val = {self.canonical_etypes[0]: val}
        self._batch_edges = {self._find_etype(e): self._count_tensor(v) for e, v in val.items()}

    def _count_tensor(self: DGLGraph, val: Any) -> Tensor:
        return torch.as_tensor(val, device=self.device).to(self.idtype)


def owners(counts: Mapping[Any, Tensor] | None) -> dict[Any, Tensor]:
    """The graph of each row, by type. It is found when the numbers of rows are set, for readouts
    that are traced: a tracer cannot make an index of numbers that it does not know."""
    if counts is None or torch.compiler.is_dynamo_compiling():
        return {}
    return {kind: segment_ids(count) for kind, count in counts.items()}
