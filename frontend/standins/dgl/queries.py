"""Questions about the structure: degrees, neighbours, ids of edges."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .base import ALL, DGLError, is_all
from .degrees import Degrees
from .lookup import edges_between, first_edges, grouped
from .reduce import counts
from .topology import Coverage, EType

if TYPE_CHECKING:
    from .graph import DGLGraph


class Queries:
    """Methods of a graph that tell of its edges. Ids are `(n,)` tensors of the graph's `idtype`."""

    @property
    def idtype(self: DGLGraph) -> torch.dtype:
        """The dtype of ids that methods return: `torch.int64` or `torch.int32`."""
        return self._topology.idtype

    @property
    def device(self: DGLGraph) -> torch.device:
        """Where the graph is."""
        return self._topology.device

    @property
    def is_multigraph(self: DGLGraph) -> bool:
        """Whether two edges of a type have the same ends."""
        for etype, relation in self._topology.relations.items():
            keys = relation.src * self._topology.targets[etype[2]] + relation.dst
            if keys.unique().shape[0] != keys.shape[0]:
                return True
        return False

    def all_edges(self: DGLGraph, form: str = "uv", order: str = "eid", etype: Any = None) -> Any:
        """Ends (`uv`), ids (`eid`) or both (`all`) of all edges of a type.

        `order` is `eid`, `srcdst` (by source, then target) or None, which is as `eid`.
        """
        relation = self._topology.relations[self._find_etype(etype)]
        src, dst = relation.src, relation.dst
        if order in ("eid", None):
            return self._form(form, src, dst, self._typed_ids(src.shape[0]))
        if order != "srcdst":
            raise DGLError(f"order must be 'eid', 'srcdst' or None, got {order!r}")
        by_dst = dst.argsort(stable=True)
        eids = by_dst[src[by_dst].argsort(stable=True)]
        return self._form(form, src[eids], dst[eids], eids)

    def in_degrees(self: DGLGraph, v: Any = ALL, etype: Any = None) -> Any:
        """How many edges lead to each node of `v`; a number if `v` is one."""
        found = self._find_etype(etype)
        relation, rows = self._topology.relations[found], self._topology.targets[found[2]]
        return self._degrees(relation.dst, rows, relation.reached, v, "v")

    def out_degrees(self: DGLGraph, u: Any = ALL, etype: Any = None) -> Any:
        """How many edges leave each node of `u`; a number if `u` is one."""
        found = self._find_etype(etype)
        relation, rows = self._topology.relations[found], self._topology.sources[found[0]]
        return self._degrees(relation.src, rows, relation.left, u, "u")

    def _degrees(
        self: DGLGraph, ends: Tensor, rows: int, covered: Coverage, ids: Any, name: str
    ) -> Any:
        (degrees,) = self._typed(counts(ends, rows))
        if is_all(ids):
            return Degrees(degrees, covered) if torch.compiler.is_compiling() else degrees
        found = degrees[self._ids(ids, name, rows)]
        return int(found) if isinstance(ids, Integral) else found

    def has_nodes(self: DGLGraph, vid: Any, ntype: str | None = None) -> Any:
        """Whether there are nodes of these ids: a bool a node, or one if `vid` is a number."""
        ids, rows = self._ids(vid, "vid"), self._nodes_of(ntype).rows
        found = (ids >= 0) & (ids < rows)
        return bool(found) if isinstance(vid, Integral) else found

    def has_edges_between(self: DGLGraph, u: Any, v: Any, etype: Any = None) -> Any:
        """Whether there are edges from `u` to `v`: a bool a pair, or one if both are numbers."""
        found = self._pairs(u, v, self._find_etype(etype)) >= 0
        return bool(found) if isinstance(u, Integral) and isinstance(v, Integral) else found

    def edge_ids(self: DGLGraph, u: Any, v: Any, return_uv: bool = False, etype: Any = None) -> Any:
        """The id of one edge for each pair; with `return_uv` ends and ids of all between them.

        Raises `DGLError` if, without `return_uv`, a pair has no edge.
        """
        found = self._find_etype(etype)
        if return_uv:
            relation = self._topology.relations[found]
            src, dst = self._both(u, v, found)
            eids = edges_between(relation, self._topology.targets[found[2]], src, dst)
            return self._typed(relation.src[eids], relation.dst[eids], eids)
        eids = self._pairs(u, v, found)
        if bool((eids < 0).any()):
            src, dst = torch.broadcast_tensors(*self._both(u, v, found))
            place = int((eids < 0).nonzero()[0])
            raise DGLError(
                f"Error: ({int(src[place])}, {int(dst[place])}) does not form a valid edge."
            )
        if isinstance(u, Integral) and isinstance(v, Integral):
            return int(eids)
        return self._typed(eids)[0]

    def _both(self: DGLGraph, u: Any, v: Any, etype: EType) -> tuple[Tensor, Tensor]:
        topology = self._topology
        src = self._ids(u, "u", topology.sources[etype[0]])
        return src, self._ids(v, "v", topology.targets[etype[2]])

    def _pairs(self: DGLGraph, u: Any, v: Any, etype: EType) -> Tensor:
        src, dst = self._both(u, v, etype)
        relation, rows = self._topology.relations[etype], self._topology.targets[etype[2]]
        return first_edges(relation, rows, src, dst)

    def find_edges(self: DGLGraph, eid: Any, etype: Any = None) -> tuple[Tensor, Tensor]:
        """Sources and targets of the edges `eid`. Raises `DGLError` for ids that are not there."""
        relation = self._topology.relations[self._find_etype(etype)]
        ids = self._ids(eid, "eid", relation.src.shape[0], "Invalid edge ID")
        return self._typed(relation.src[ids], relation.dst[ids])

    def in_edges(self: DGLGraph, v: Any, form: str = "uv", etype: Any = None) -> Any:
        """Ends (`uv`), ids (`eid`) or both (`all`) of the edges to `v`, grouped by node."""
        found = self._find_etype(etype)
        relation, rows = self._topology.relations[found], self._topology.targets[found[2]]
        eids = grouped(relation.dst, rows, self._ids(v, "v", rows))
        return self._form(form, relation.src[eids], relation.dst[eids], eids)

    def out_edges(self: DGLGraph, u: Any, form: str = "uv", etype: Any = None) -> Any:
        """Ends (`uv`), ids (`eid`) or both (`all`) of the edges from `u`, grouped by node."""
        found = self._find_etype(etype)
        relation, rows = self._topology.relations[found], self._topology.sources[found[0]]
        eids = grouped(relation.src, rows, self._ids(u, "u", rows))
        return self._form(form, relation.src[eids], relation.dst[eids], eids)

    def predecessors(self: DGLGraph, v: int, etype: Any = None) -> Tensor:
        """The sources of edges that lead to one node, each once."""
        return self.in_edges(v, "uv", etype)[0].unique()

    def successors(self: DGLGraph, v: int, etype: Any = None) -> Tensor:
        """The targets of edges that leave one node, each once."""
        return self.out_edges(v, "uv", etype)[1].unique()

    def filter_nodes(
        self: DGLGraph, predicate: Any, nodes: Any = ALL, ntype: str | None = None
    ) -> Tensor:
        """Ids of nodes for which a function of a `NodeBatch` is true, `(nodes,)` of bool."""
        ids = self._typed_ids(self._nodes_of(ntype).rows) if is_all(nodes) else nodes
        ids = self._ids(ids, "nodes", self._nodes_of(ntype).rows, "v contains invalid node IDs:")
        with self.local_scope():
            self.apply_nodes(lambda batch: {"_mask": predicate(batch)}, self._typed(ids)[0], ntype)
            mask = self._nodes_of(ntype).frame["_mask"]
        return self._typed(ids[mask[ids].bool()])[0]

    def filter_edges(self: DGLGraph, predicate: Any, edges: Any = ALL, etype: Any = None) -> Tensor:
        """Ids of edges for which a function of an `EdgeBatch` is true, `(edges,)` of bool."""
        found = self._find_etype(etype)
        ids = torch.arange(self.num_edges(found), device=self.device)
        if not is_all(edges):
            ids = self._edge_ids(edges, found)
        with self.local_scope():
            self.apply_edges(lambda batch: {"_mask": predicate(batch)}, self._typed(ids)[0], found)
            mask = self._edge_frames[found]["_mask"]
        return self._typed(ids[mask[ids].bool()])[0]

    # ids in and out

    def _typed(self: DGLGraph, *ids: Tensor) -> tuple[Tensor, ...]:
        return tuple([i.to(self._topology.idtype) for i in ids])

    def _typed_ids(self: DGLGraph, rows: int) -> Tensor:
        return torch.arange(rows, dtype=self._topology.idtype, device=self._topology.device)

    def _form(self: DGLGraph, form: str, src: Tensor, dst: Tensor, eids: Tensor) -> Any:
        if form == "uv":
            return self._typed(src, dst)
        if form == "eid":
            return self._typed(eids)[0]
        if form == "all":
            return self._typed(src, dst, eids)
        raise DGLError(f'Invalid form: {form}. Must be "all", "uv" or "eid".')

    def _ids(
        self: DGLGraph, data: Any, name: str, rows: int | None = None, wrong: str = "Invalid ID"
    ) -> Tensor:
        """Ids that a caller gave, as `int64` of `(n,)`, below `rows` if that is given.

        Raises `DGLError` for other dtypes and shapes, and for ids out of range.
        """
        if isinstance(data, Tensor):
            if data.dtype != self.idtype:
                raise DGLError(
                    f'Expect argument "{name}" to have data type {self.idtype}. But got '
                    f"{data.dtype}."
                )
            ids = data.long()
        else:
            ids = torch.as_tensor(data, device=self.device)
            if ids.numel() and ids.dtype not in (torch.int32, torch.int64):
                raise DGLError(
                    f'Expect argument "{name}" to have data type int32 or int64, but got '
                    f"{ids.dtype}."
                )
            ids = ids.long()
        if ids.dim() > 1:
            raise DGLError(f'Expect a 1-D tensor for argument "{name}". But got {data}.')
        ids = ids.reshape(-1)
        # A traced program cannot branch on ids.
        if rows is not None and not torch.compiler.is_compiling():
            bad = ids[(ids < 0) | (ids >= rows)]
            if bad.numel():
                raise DGLError(f'{wrong} {int(bad[0])} in argument "{name}": there are {rows}.')
        return ids

    def _edge_ids(self: DGLGraph, edges: Any, etype: EType | None) -> Tensor:
        """Ids of edges that a caller gave as ids or as a pair of ends."""
        found = self._find_etype(etype)
        if isinstance(edges, tuple):
            return self.edge_ids(*edges, etype=found).long().reshape(-1)
        return self._ids(edges, "edges", self.num_edges(found), "Invalid edge ID")
