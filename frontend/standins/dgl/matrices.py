"""Adjacency as matrices of torch and scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from .base import DGLError
from .reduce import counts
from .sparse import SparseMatrix, from_coo

if TYPE_CHECKING:
    from .graph import DGLGraph


class Matrices:
    """Methods of a graph that give it as a matrix, with a row a source and a column a target."""

    def adj(self: DGLGraph, etype: Any = None, eweight_name: str | None = None) -> SparseMatrix:
        """The adjacency of a type as a matrix of `gnnc.dgl.sparse`, `(sources, targets)`.

        Values are ones, or the feature `eweight_name`, `(edges,)` or `(edges, D)`, in the order of
        edges.
        """
        found = self._find_etype(etype)
        values = None if eweight_name is None else self._edge_frames[found][eweight_name]
        topology, r = self._topology, self._topology.relations[found]
        shape = topology.sources[found[0]], topology.targets[found[2]]
        return from_coo(r.src, r.dst, values, shape)

    def adjacency_matrix(self: DGLGraph, etype: Any = None) -> SparseMatrix:
        """As `adj`, of ones."""
        return self.adj(etype)

    def inc(self: DGLGraph, typestr: str, ctx: Any = "cpu", etype: Any = None) -> Tensor:
        """The incidence of a type, a sparse tensor with a row a node and a column an edge.

        Of `in` it has a one where an edge leads to a node, of `out` where it leaves it, and of
        `both` a one and minus one for each edge that is no loop. Raises `DGLError` for other
        names, `AssertionError` for `both` of two types of nodes.
        """
        found = self._find_etype(etype)
        topology, r = self._topology, self._topology.relations[found]
        ids = torch.arange(r.src.shape[0], device=self.device)
        if typestr == "both":
            assert found[0] == found[2], "'both' is of edges between nodes of one type"
            kept = (r.src != r.dst).nonzero().flatten()
            src, dst = r.src[kept], r.dst[kept]
            row, col, values = torch.cat([src, dst]), kept.repeat(2), torch.ones(2 * len(kept))
            values[: len(kept)] = -1
        elif typestr in ("in", "out"):
            row, col = r.dst if typestr == "in" else r.src, ids
            values = torch.ones(len(ids))
        else:
            raise DGLError(f"Invalid incidence matrix type: {typestr!r}, not 'in', 'out' or 'both'")
        rows = topology.sources[found[0]] if typestr == "out" else topology.targets[found[2]]
        index = torch.stack([row, col])
        size = rows, len(ids)
        values = values.to(self.device)
        return torch.sparse_coo_tensor(index, values, size, check_invariants=False).to(ctx)

    incidence_matrix = inc

    def adj_external(
        self: DGLGraph,
        transpose: bool = False,
        ctx: Any = "cpu",
        scipy_fmt: str | None = None,
        etype: Any = None,
    ) -> Any:
        """The adjacency of a type, of ones: a sparse tensor of torch, or `scipy_fmt` of scipy.

        `scipy_fmt` is `coo` or `csr`; with `transpose` a row is a target.
        """
        found = self._find_etype(etype)
        if scipy_fmt is None:
            return self._sparse(found, transpose).to(ctx)
        return to_scipy(self[found], transpose=transpose, scipy_fmt=scipy_fmt)

    def adj_tensors(self: DGLGraph, fmt: str, etype: Any = None) -> tuple[Tensor, ...]:
        """The adjacency of a type: `(u, v)` for `coo`, or pointers, ends and edges' ids.

        `csr` has a pointer a source, `csc` a pointer a target.
        """
        found = self._find_etype(etype)
        r = self._topology.relations[found]
        if fmt == "coo":
            return self._typed(r.src, r.dst)
        if fmt not in ("csr", "csc"):
            raise DGLError(f"fmt must be 'coo', 'csr' or 'csc', got {fmt!r}")
        owner, other = (r.src, r.dst) if fmt == "csr" else (r.dst, r.src)
        topology = self._topology
        rows = topology.sources[found[0]] if fmt == "csr" else topology.targets[found[2]]
        order = owner.argsort(stable=True)
        starts = torch.cat([owner.new_zeros(1), counts(owner, rows).cumsum(0)])
        return self._typed(starts, other[order], order)

    def _sparse(self: DGLGraph, etype: Any, transpose: bool) -> Tensor:
        topology = self._topology
        r = topology.relations[etype]
        index = torch.stack([r.dst, r.src] if transpose else [r.src, r.dst])
        shape = topology.sources[etype[0]], topology.targets[etype[2]]
        values = torch.ones(index.shape[1], device=self.device)
        # Its indices are within range, so torch need not look.
        size = shape[::-1] if transpose else shape
        return torch.sparse_coo_tensor(index, values, size, check_invariants=False)

    def metagraph(self: DGLGraph) -> Any:
        """The types as a multigraph of networkx: node types, and an edge for each edge type."""
        import networkx

        made = networkx.MultiDiGraph()
        made.add_nodes_from(self.ntypes)
        for src, name, dst in self.canonical_etypes:
            made.add_edge(src, dst, name)
        return made


def to_scipy(
    g: DGLGraph,
    eweight_name: str | None = None,
    *,
    transpose: bool = False,
    scipy_fmt: str = "coo",
    etype: Any = None,
) -> Any:
    """The adjacency of a type as a matrix of scipy, with a row a source.

    Values are ones of `int64`, or the feature `eweight_name` of shape `(edges,)`. There is an entry
    for each edge, also of parallel ones, in the order of edges (`coo`), or of these in each row
    (`csr`). The ends of `coo` may share the graph's memory.
    """
    if scipy_fmt not in ("coo", "csr"):
        raise DGLError(f"scipy_fmt must be 'coo' or 'csr', got {scipy_fmt!r}")
    found = g._find_etype(etype)
    r = g._topology.relations[found]
    shape = g._topology.sources[found[0]], g._topology.targets[found[2]]
    if eweight_name is None:
        values = np.ones(r.src.shape[0], dtype=np.int64)
    else:
        values = g._edge_frames[found][eweight_name].detach().cpu().numpy()
    ends = r.src.cpu().numpy(), r.dst.cpu().numpy()
    if transpose:
        ends, shape = ends[::-1], shape[::-1]
    if scipy_fmt == "coo":
        return scipy.sparse.coo_matrix((values, ends), shape=shape)
    order = ends[0].argsort(kind="stable")
    starts = np.concatenate([[0], np.bincount(ends[0], minlength=shape[0]).cumsum()])
    return scipy.sparse.csr_matrix((values[order], ends[1][order], starts), shape=shape)
