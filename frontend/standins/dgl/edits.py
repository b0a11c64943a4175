"""Methods that change a graph in place, and those that take a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .base import DGLError
from .frames import Frame, checked
from .init import ZEROS, Initializer, Initializers
from .segments import segment_ids, segment_reduce
from .topology import EType, Topology, relation

if TYPE_CHECKING:
    from .graph import DGLGraph


class Edits:
    """Methods of a graph that add and remove, and that make subgraphs."""

    def add_nodes(
        self: DGLGraph, num: int, data: dict[str, Tensor] | None = None, ntype: str | None = None
    ) -> None:
        """Adds nodes of a type, with features `data`, or zeros. What was batched no longer is."""
        self._editable("add_nodes")
        name = self._find_ntype(ntype, "any")[0]
        if num < 0:
            raise DGLError(f"Number of new nodes should not be negative, got {num}.")
        if num == 0:
            return
        topology = self._topology
        counts = {**topology.sources, name: topology.sources[name] + num}
        relations = {
            etype: relation(r.src, r.dst, counts[etype[0]], counts[etype[2]])
            if name in (etype[0], etype[2])
            else r
            for etype, r in topology.relations.items()
        }
        self._topology = Topology(relations, counts, None, topology.idtype, topology.device)
        frame = self._extended(self._source_frames[name], data, topology.sources[name], num, name)
        frames = {**self._source_frames, name: frame}
        self._source_frames = self._target_frames = frames
        self._batch_nodes = self._batch_edges = None

    def add_edges(
        self: DGLGraph,
        u: Any,
        v: Any,
        data: dict[str, Tensor] | None = None,
        etype: Any = None,
    ) -> None:
        """Adds edges of a type from `u` to `v`, with features `data`, or zeros.

        One of `u` and `v` may be a single node. Nodes that are not there are added too. What was
        batched no longer is.
        """
        self._editable("add_edges")
        found = self._find_etype(etype)
        src, dst = self._ids(u, "u"), self._ids(v, "v")
        if src.shape[0] == 0 or dst.shape[0] == 0:
            return
        if src.shape[0] != dst.shape[0] and 1 not in (src.shape[0], dst.shape[0]):
            raise DGLError(
                "The number of source nodes and the number of destination nodes should be the "
                f"same, or one of them 1, but got {src.shape[0]} and {dst.shape[0]}."
            )
        src, dst = torch.broadcast_tensors(src, dst)
        self._grow(found[0], src)
        self._grow(found[2], dst)
        topology = self._topology
        old, counts = topology.relations[found], topology.sources
        joined = torch.cat([old.src, src]), torch.cat([old.dst, dst])
        made = relation(*joined, counts[found[0]], counts[found[2]])
        self._topology = Topology(
            {**topology.relations, found: made}, counts, None, topology.idtype, topology.device
        )
        rows, num = old.src.shape[0], src.shape[0]
        frame = self._extended(self._edge_frames[found], data, rows, num, found)
        self._edge_frames = {**self._edge_frames, found: frame}
        self._batch_nodes = self._batch_edges = None

    def remove_edges(self: DGLGraph, eids: Any, etype: Any = None, store_ids: bool = False) -> None:
        """Removes edges of a type; `store_ids` puts the old rows of the others into `_ID`."""
        found = self._find_etype(etype)
        removed = self._ids(eids, "eids", self.num_edges(found))
        if removed.shape[0] == 0:
            return
        self._keep_edges(found, _others(removed, self.num_edges(found)), store_ids)

    def _keep_edges(self: DGLGraph, found: EType, kept: Tensor, store_ids: bool) -> None:
        """Removes all other edges of a type."""
        edges = {e: self._typed_ids(self.num_edges(e)) for e in self.canonical_etypes}
        edges[found] = self._typed(kept)[0]
        if self._batch_edges is not None:
            counts = _counts_of(self._batch_edges[found], kept, self.num_edges(found))
            self._batch_edges = {**self._batch_edges, found: counts.to(self.idtype)}
        self._take(self.edge_subgraph(edges, relabel_nodes=False, store_ids=store_ids))

    def remove_nodes(
        self: DGLGraph, nids: Any, ntype: str | None = None, store_ids: bool = False
    ) -> None:
        """Removes nodes of a type and their edges; `store_ids` keeps the old rows in `_ID`."""
        self._editable("remove_nodes")
        name = self._find_ntype(ntype, "any")[0]
        rows = self._topology.sources[name]
        removed = self._ids(nids, "nids", rows)
        if removed.shape[0] == 0:
            return
        kept = _others(removed, rows)
        nodes = {t: self._typed_ids(count) for t, count in self._topology.sources.items()}
        nodes[name] = self._typed(kept)[0]
        made = self.subgraph(nodes, store_ids=store_ids)
        if self._batch_nodes is not None:
            counts = _counts_of(self._batch_nodes[name], kept, rows).to(self.idtype)
            self._batch_nodes = {**self._batch_nodes, name: counts}
            self._batch_edges = {e: self._edges_left(made, e) for e in self.canonical_etypes}
        self._take(made)

    def _edges_left(self: DGLGraph, made: DGLGraph, etype: EType) -> Tensor:
        """How many edges each graph of the batch has once nodes are removed."""
        nodes = self._batch_nodes[etype[2]]
        owners = segment_ids(nodes, made._topology.targets[etype[2]])
        left = owners[made._topology.relations[etype].dst]
        return torch.bincount(left, minlength=nodes.shape[0]).to(self.idtype)

    def _grow(self: DGLGraph, ntype: str, ids: Tensor) -> None:
        """Adds the nodes that ids ask for."""
        low, high = torch.stack(torch.aminmax(ids)).tolist()
        if low < 0:
            raise DGLError(f"Expect ids of nodes that are not negative, but got {low}.")
        missing = high + 1 - self._topology.sources[ntype]
        if missing > 0:
            self.add_nodes(missing, ntype=ntype)

    def set_n_initializer(
        self: DGLGraph, initializer: Initializer, field: str | None = None, ntype: Any = None
    ) -> None:
        """What the feature `field` of nodes of a type, or any, begins with where it is not given:
        `initializer(shape, dtype, device, slice)`, of the ids in the slice."""
        self._initialize(self._find_ntype(ntype, "any")[0], field, initializer)

    def set_e_initializer(
        self: DGLGraph, initializer: Initializer, field: str | None = None, etype: Any = None
    ) -> None:
        """`set_n_initializer` for features of edges."""
        self._initialize(self._find_etype(etype), field, initializer)

    def _initialize(self: DGLGraph, kind: Any, field: str | None, made: Initializer) -> None:
        known = self._initializers.get(kind, ZEROS)
        if field is None:
            known = Initializers(known.named, made)
        else:
            known = Initializers({**known.named, field: made}, known.other)
        self._initializers = {**self._initializers, kind: known}

    def _extended(
        self: DGLGraph,
        frame: Frame,
        data: dict[str, Tensor] | None,
        rows: int,
        num: int,
        kind: str | EType,
    ) -> Frame:
        """A frame of `rows` of a type with `num` more: those given, or what they begin with."""
        what = "node" if isinstance(kind, str) else "edge"
        begin = self._initializers.get(kind, ZEROS)
        given = {k: checked(k, v, num, self.device, what) for k, v in (data or {}).items()}
        made: Frame = {}
        for key in dict.fromkeys([*frame, *given]):
            like = frame[key] if key in frame else given[key]
            old = frame[key] if key in frame else begin.rows(key, like, 0, rows)
            new = given[key] if key in given else begin.rows(key, like, rows, num)
            if old.shape[1:] != new.shape[1:] or old.dtype != new.dtype:
                raise DGLError(
                    f"Cannot add rows of shape {tuple(new.shape[1:])} and {new.dtype} to {what} "
                    f"feature {key!r}, of {tuple(old.shape[1:])} and {old.dtype}."
                )
            made[key] = torch.cat([old, new])
        return made

    def _take(self: DGLGraph, other: DGLGraph) -> None:
        """Becomes another graph, but for what is known of batches."""
        self._topology = other._topology
        self._source_frames, self._target_frames = other._source_frames, other._target_frames
        self._edge_frames = other._edge_frames

    def _editable(self: DGLGraph, what: str) -> None:
        if self.is_block:
            raise DGLError(f"{what} of a block graph is not supported.")

    # the functions of the same names, as methods; they make graphs, so they are loaded late

    def add_self_loop(
        self: DGLGraph,
        edge_feat_names: list[str] | None = None,
        fill_data: Any = 1.0,
        etype: Any = None,
    ) -> DGLGraph:
        """As `gnnc.dgl.add_self_loop`."""
        from .transforms import add_self_loop

        return add_self_loop(self, edge_feat_names, fill_data, etype)

    def remove_self_loop(self: DGLGraph, etype: Any = None) -> DGLGraph:
        """As `gnnc.dgl.remove_self_loop`."""
        from .transforms import remove_self_loop

        return remove_self_loop(self, etype)

    def line_graph(self: DGLGraph, backtracking: bool = True, shared: bool = False) -> DGLGraph:
        """As `gnnc.dgl.line_graph`."""
        from .transforms import line_graph

        return line_graph(self, backtracking, shared)

    def to_simple(self: DGLGraph, *args: Any, **kwargs: Any) -> Any:
        """As `gnnc.dgl.to_simple`."""
        from .transforms import to_simple

        return to_simple(self, *args, **kwargs)

    def to_networkx(self: DGLGraph, *args: Any, **kwargs: Any) -> Any:
        """As `gnnc.dgl.to_networkx`."""
        from .convert import to_networkx

        return to_networkx(self, *args, **kwargs)

    def khop_in_subgraph(self: DGLGraph, *args: Any, **kwargs: Any) -> Any:
        """As `gnnc.dgl.khop_in_subgraph`."""
        from .subgraphs import khop_in_subgraph

        return khop_in_subgraph(self, *args, **kwargs)

    def khop_out_subgraph(self: DGLGraph, *args: Any, **kwargs: Any) -> Any:
        """As `gnnc.dgl.khop_out_subgraph`."""
        from .subgraphs import khop_out_subgraph

        return khop_out_subgraph(self, *args, **kwargs)

    def reverse(self: DGLGraph, *args: Any, **kwargs: Any) -> DGLGraph:
        """As `gnnc.dgl.reverse`."""
        from .transforms import reverse

        return reverse(self, *args, **kwargs)

    def subgraph(self: DGLGraph, nodes: Any, **kwargs: Any) -> DGLGraph:
        """As `gnnc.dgl.node_subgraph`."""
        from .subgraphs import node_subgraph

        return node_subgraph(self, nodes, **kwargs)

    def edge_subgraph(self: DGLGraph, edges: Any, **kwargs: Any) -> DGLGraph:
        """As `gnnc.dgl.edge_subgraph`."""
        from .subgraphs import edge_subgraph

        return edge_subgraph(self, edges, **kwargs)

    def in_subgraph(self: DGLGraph, nodes: Any, **kwargs: Any) -> DGLGraph:
        """As `gnnc.dgl.in_subgraph`."""
        from .subgraphs import in_subgraph

        return in_subgraph(self, nodes, **kwargs)

    def out_subgraph(self: DGLGraph, nodes: Any, **kwargs: Any) -> DGLGraph:
        """As `gnnc.dgl.out_subgraph`."""
        from .subgraphs import out_subgraph

        return out_subgraph(self, nodes, **kwargs)

    def node_type_subgraph(self: DGLGraph, ntypes: list[str]) -> DGLGraph:
        """As `gnnc.dgl.node_type_subgraph`."""
        from .subgraphs import node_type_subgraph

        return node_type_subgraph(self, ntypes)

    def edge_type_subgraph(self: DGLGraph, etypes: list[Any]) -> DGLGraph:
        """As `gnnc.dgl.edge_type_subgraph`."""
        from .subgraphs import edge_type_subgraph

        return edge_type_subgraph(self, etypes)


def _others(ids: Tensor, rows: int) -> Tensor:
    kept = torch.ones(rows, dtype=torch.bool, device=ids.device)
    kept[ids] = False
    return kept.nonzero().flatten()


def _counts_of(counts: Tensor, kept: Tensor, rows: int) -> Tensor:
    """How many of the rows of each graph of a batch are kept."""
    mask = torch.zeros(rows, dtype=torch.int64, device=kept.device)
    mask[kept] = 1
    return segment_reduce(counts, mask, "sum")
