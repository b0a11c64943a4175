"""`DGLGraph`: nodes and edges of one or many types, and their features."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .base import ONE_ETYPE, ONE_NTYPE, DGLError
from .edits import Edits
from .frames import Frame
from .init import ZEROS, Initializers
from .matrices import Matrices
from .moving import Moving
from .passing import Passing
from .queries import Queries
from .topology import EType, Topology
from .types import Types
from .views import Column, DataView, EdgeView, NodeView, TypedDataView

Frames = dict[str, Frame]


class DGLGraph(Types, Queries, Passing, Edits, Moving, Matrices):
    """A graph with DGL's methods, in plain torch: all of them can be differentiated and traced.

    Graphs are made by `graph`, `heterograph` and `create_block`.
    """

    def __init__(
        self,
        gidx: Any = (),
        ntypes: list[str] | None = None,
        etypes: list[str] | None = None,
        node_frames: tuple[Frames, Frames] | None = None,
        edge_frames: dict[EType, Frame] | None = None,
    ):
        """Of a topology and its frames; of anything else as `graph` makes it."""
        if isinstance(gidx, DGLGraph):
            raise DGLError("The input is already a DGLGraph. No need to create it again.")
        if not isinstance(gidx, Topology):
            gidx = _homogeneous(gidx, ntypes, etypes)
        self._topology = gidx
        if node_frames is None:
            sources: Frames = {ntype: {} for ntype in gidx.sources}
            targets = {ntype: {} for ntype in gidx.targets} if gidx.is_block else sources
            node_frames = sources, targets
        self._source_frames, self._target_frames = node_frames
        if edge_frames is None:
            edge_frames = {etype: {} for etype in gidx.relations}
        self._edge_frames = edge_frames
        self._batch_nodes = self._batch_edges = None
        self._initializers: dict[Any, Initializers] = {}

    # features

    def _nodes_of(self, ntype: str | None, side: str = "any") -> Column:
        """The frame of a node type, and how many nodes there are of it."""
        ntype, at_target = self._find_ntype(ntype, side)
        return self._column_at(ntype, at_target)

    def _column_at(self, ntype: str, at_target: bool) -> Column:
        frames = self._target_frames if at_target else self._source_frames
        rows = self._topology.targets if at_target else self._topology.sources
        return Column(frames[ntype], rows[ntype], self._initializers.get(ntype, ZEROS))

    def _node_view(self, ntype: str | None, side: str, ids: Tensor | None = None) -> DataView:
        self._find_ntype(ntype, side)  # an unknown type is an error here, not at the first use
        return DataView(self, "node", lambda: self._nodes_of(ntype, side), ids)

    def _node_views(self, ntypes: list[str], side: str) -> DataView | TypedDataView:
        if len(ntypes) == 1:
            return self._node_view(ntypes[0], side)
        views = {ntype: self._node_view(ntype, side) for ntype in ntypes}
        return TypedDataView("node", views, lambda ntype: self._find_ntype(ntype, side)[0])

    def _edge_view(self, etype: Any, ids: Tensor | None = None) -> DataView:
        found = self._find_etype(etype)

        def column() -> Column:
            frame, begin = self._edge_frames[found], self._initializers.get(found, ZEROS)
            return Column(frame, self.num_edges(found), begin)

        return DataView(self, "edge", column, ids)

    @property
    def nodes(self) -> NodeView:
        """`nodes()` are the ids, `nodes[ntype].data` the features."""
        return NodeView(self, "any")

    @property
    def srcnodes(self) -> NodeView:
        """`nodes`, for types of sources."""
        return NodeView(self, "src")

    @property
    def dstnodes(self) -> NodeView:
        """`nodes`, for types of targets."""
        return NodeView(self, "dst")

    @property
    def edges(self) -> EdgeView:
        """`edges()` are the ends, `edges[etype].data` the features."""
        return EdgeView(self)

    @property
    def ndata(self) -> DataView | TypedDataView:
        """Features of nodes by name; of several types, dicts by type."""
        return self._node_views(self.ntypes, "any")

    @property
    def srcdata(self) -> DataView | TypedDataView:
        """Features of the source nodes."""
        return self._node_views(self.srctypes, "src")

    @property
    def dstdata(self) -> DataView | TypedDataView:
        """Features of the target nodes."""
        return self._node_views(self.dsttypes, "dst")

    @property
    def edata(self) -> DataView | TypedDataView:
        """Features of edges by name; of several types, dicts by canonical type."""
        etypes = self.canonical_etypes
        if len(etypes) == 1:
            return self._edge_view(etypes[0])
        views = {etype: self._edge_view(etype) for etype in etypes}
        return TypedDataView("edge", views, self._find_etype)

    # scopes and copies

    def _copied_frames(self) -> tuple[tuple[Frames, Frames], dict[EType, Frame]]:
        sources = {ntype: frame.copy() for ntype, frame in self._source_frames.items()}
        targets = sources
        if self.is_block:
            targets = {ntype: frame.copy() for ntype, frame in self._target_frames.items()}
        edges = {etype: frame.copy() for etype, frame in self._edge_frames.items()}
        return (sources, targets), edges

    @contextlib.contextmanager
    def local_scope(self) -> Iterator[None]:
        """Within it features may be set and deleted; after it they are as before."""
        nodes, edges = (self._source_frames, self._target_frames), self._edge_frames
        (self._source_frames, self._target_frames), self._edge_frames = self._copied_frames()
        try:
            yield
        finally:
            (self._source_frames, self._target_frames), self._edge_frames = nodes, edges

    def local_var(self) -> DGLGraph:
        """The same graph and tensors, with features that are set and deleted on their own."""
        nodes, edges = self._copied_frames()
        made = DGLGraph(self._topology, None, None, nodes, edges)
        made._node_counts, made._edge_counts = self._node_counts, self._edge_counts
        made._node_owners, made._edge_owners = self._node_owners, self._edge_owners
        made._initializers = self._initializers
        return made

    __copy__ = local_var

    def clone(self) -> DGLGraph:
        """A copy that shares no tensor of features; gradients flow back through it."""
        made = self.local_var()
        frames = [*made._source_frames.values(), *made._edge_frames.values()]
        if made.is_block:
            frames += made._target_frames.values()
        for frame in frames:
            for key, value in frame.items():
                frame[key] = value.clone()
        return made

    def __getitem__(self, key: Any) -> DGLGraph:
        """The graph of one edge type; features are shared, so what is set on one is on both.

        `key` may be a canonical type with `:` for what does not matter, if one type fits.
        """
        etype = self._one_etype(key)
        src, _, dst = etype
        if self.is_block:
            nodes = {src: self._source_frames[src]}, {dst: self._target_frames[dst]}
        else:
            shared = {ntype: self._source_frames[ntype] for ntype in dict.fromkeys((src, dst))}
            nodes = shared, shared
        edges = {etype: self._edge_frames[etype]}
        made = DGLGraph(self._topology.slice(etype), None, None, nodes, edges)
        made._initializers = self._initializers
        return made

    def __repr__(self) -> str:
        if self.is_homogeneous and not self.is_block:
            return (
                f"Graph(num_nodes={self.num_nodes()}, num_edges={self.num_edges()},\n"
                f"      ndata_schemes={self.node_attr_schemes()}\n"
                f"      edata_schemes={self.edge_attr_schemes()})"
            )
        edges = {etype: self.num_edges(etype) for etype in self.canonical_etypes}
        meta = [(src, dst, name) for src, name, dst in self.canonical_etypes]
        topology = self._topology
        if not self.is_block:
            nodes = dict(topology.sources)
            return f"Graph(num_nodes={nodes},\n      num_edges={edges},\n      metagraph={meta})"
        sources, targets, count = dict(topology.sources), dict(topology.targets), edges
        if len(sources) == len(targets) == len(edges) == 1:
            ((sources,), (targets,), (count,)) = (
                list(d.values()) for d in (sources, targets, edges)
            )
            return f"Block(num_src_nodes={sources}, num_dst_nodes={targets}, num_edges={count})"
        return (
            f"Block(num_src_nodes={sources},\n      num_dst_nodes={targets},\n"
            f"      num_edges={edges},\n      metagraph={meta})"
        )


def _homogeneous(data: Any, ntypes: list[str] | None, etypes: list[str] | None) -> Topology:
    from .create import graph  # it makes DGLGraphs, so it is loaded after this file

    made = graph(data if len(data) else ([], []))._topology
    ntype = ntypes[0] if ntypes else ONE_NTYPE
    etype = (ntype, etypes[0] if etypes else ONE_ETYPE, ntype)
    (found,) = made.relations.values()
    return Topology({etype: found}, {ntype: made.sources[ONE_NTYPE]}, None, torch.int64)
