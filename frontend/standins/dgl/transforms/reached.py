"""Graphs and numbers of what is reached over several edges, by way of scipy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse.csgraph
import torch
from torch import Tensor

from ..base import NID, DGLError
from ..create import graph, heterograph
from ..frames import Rows
from ..graph import DGLGraph
from ..matrices import to_scipy
from ..subgraphs import first_seen
from ..topology import Topology, relation


def _power(g: DGLGraph, k: int) -> Any:
    """How many walks of `k` edges lead from a node to another, as a matrix of scipy."""
    _one_type(g)
    if k < 0:
        raise ValueError(f"k must not be negative, got {k}")
    return to_scipy(g, scipy_fmt="coo") ** k


def _one_type(g: DGLGraph) -> None:
    if not g.is_homogeneous:
        raise AssertionError("only homogeneous graph is supported")


def khop_adj(g: DGLGraph, k: int) -> Tensor:
    """How many walks of `k` edges lead from each node to each other, `(nodes, nodes)`."""
    return torch.from_numpy(_power(g, k).todense().astype(np.float32))


def khop_graph(g: DGLGraph, k: int, copy_ndata: bool = True) -> DGLGraph:
    """An edge for each walk of `k` edges."""
    walks = _power(g, k).tocoo()
    ends = np.repeat(walks.row, walks.data), np.repeat(walks.col, walks.data)
    made = graph(ends, num_nodes=g.num_nodes(), idtype=g.idtype, device=g.device)
    if copy_ndata:
        made.ndata.update(g.ndata)
    return made


def metapath_reachable_graph(g: DGLGraph, metapath: Sequence[Any]) -> DGLGraph:
    """An edge between nodes that a walk along edges of these types, one after the other, joins."""
    reached: Any = None
    for etype in metapath:
        step = to_scipy(g[etype], scipy_fmt="csr")
        reached = step if reached is None else reached * step
    if reached is None:
        raise ValueError("metapath is empty")
    first, last = g.to_canonical_etype(metapath[0])[0], g.to_canonical_etype(metapath[-1])[2]
    counts = {first: reached.shape[0], last: reached.shape[1]}
    ends = {(first, "_E", last): (reached != 0).tocsr().nonzero()}
    made = heterograph(ends, counts, g.idtype, g.device)
    for ntype in counts:
        made._source_frames[ntype].update(g._source_frames[ntype])
    return made


def compact_graphs(
    graphs: Any, always_preserve: Any = None, copy_ndata: bool = True, copy_edata: bool = True
) -> Any:
    """A graph, or each of several, without the nodes that have an edge in none of them.

    Nodes of `always_preserve` (ids, or a dict of them by type) stay and come first. Old rows are in
    `_ID`.
    """
    several = isinstance(graphs, Sequence)
    graphs = list(graphs) if several else [graphs]
    if not graphs:
        return []
    first = graphs[0]
    if first.is_block:
        raise DGLError("Compacting a block graph is not allowed.")
    for g in graphs:
        if g.ntypes != first.ntypes or g.idtype != first.idtype:
            raise AssertionError(
                "All graphs should have the same node types in the same order, and one idtype: "
                f"got {first.ntypes}, {first.idtype} and {g.ntypes}, {g.idtype}"
            )
    kept = _kept(graphs, always_preserve)
    made = [_compacted(g, kept, copy_ndata, copy_edata) for g in graphs]
    return made if several else made[0]


def _kept(graphs: list[DGLGraph], always: Any) -> dict[str, Tensor]:
    first = graphs[0]
    if always is None:
        always = {}
    elif not isinstance(always, Mapping):
        if len(first.ntypes) > 1:
            raise ValueError("Node type must be given if multiple node types exist.")
        always = {first.ntypes[0]: always}
    found = {t: [first._ids(always.get(t, []), "always_preserve")] for t in first.ntypes}
    for g in graphs:
        for (src, _, dst), r in g._topology.relations.items():
            found[src].append(r.src)
            found[dst].append(r.dst)
    return {ntype: first_seen(torch.cat(parts)) for ntype, parts in found.items()}


def _compacted(
    g: DGLGraph, kept: dict[str, Tensor], copy_ndata: bool, copy_edata: bool
) -> DGLGraph:
    topology = g._topology
    new: dict[str, Tensor] = {}
    for ntype, ids in kept.items():
        new[ntype] = ids.new_zeros(topology.sources[ntype])
        new[ntype][ids] = torch.arange(ids.shape[0], device=ids.device)
    counts = {ntype: ids.shape[0] for ntype, ids in kept.items()}
    relations = {
        e: relation(new[e[0]][r.src], new[e[2]][r.dst], counts[e[0]], counts[e[2]])
        for e, r in topology.relations.items()
    }
    made = DGLGraph(Topology(relations, counts, None, topology.idtype, topology.device))
    if copy_ndata:
        for ntype, ids in kept.items():
            frame = made._source_frames[ntype]
            frame.update(Rows(g._source_frames[ntype], ids))
            frame[NID] = g._typed(ids)[0]
    if copy_edata:
        for etype, frame in g._edge_frames.items():
            made._edge_frames[etype].update(frame)
    return made


def shortest_dist(g: DGLGraph, root: int | None = None, return_paths: bool = False) -> Any:
    """How many edges a shortest path has from each node (or `root`) to each, -1 where there is
    none, `(nodes, nodes)` or `(nodes,)` of `int64`.

    With `return_paths` also the ids of its edges, `(.., longest)`, with -1 behind the last.
    """
    _one_type(g)
    matrix = to_scipy(g, scipy_fmt="csr")
    lengths, before = scipy.sparse.csgraph.shortest_path(
        matrix, directed=True, unweighted=True, indices=root, return_predecessors=True
    )
    lengths[np.isinf(lengths)] = -1
    found = torch.from_numpy(lengths).long().to(g.device)
    if not return_paths:
        return found
    rows = torch.from_numpy(before).long().reshape(-1, g.num_nodes())
    paths = _paths(g, rows, found.reshape(rows.shape).cpu())
    return found, paths[0] if root is not None else paths


def _paths(g: DGLGraph, before: Tensor, lengths: Tensor) -> Tensor:
    """Ids of the edges of each path, found from its end, for all paths together."""
    made = torch.full((*lengths.shape, max(int(lengths.max()), 0)), -1)
    start, end = (lengths > 0).nonzero(as_tuple=True)
    place, at = lengths[start, end] - 1, end
    while start.shape[0]:
        back = before[start, at]
        made[start, end, place] = g.edge_ids(*g._typed(back, at)).long().cpu()
        more = place > 0
        start, end, at, place = start[more], end[more], back[more], place[more] - 1
    return made.to(g.device)


def double_radius_node_labeling(g: DGLGraph, src: int, dst: int) -> Tensor:
    """The labels of nodes by their distances to two, `(nodes,)` of `int64` (Zhang and Chen, Link
    Prediction Based on Graph Neural Networks, 2018); 0 for those that one of these cannot reach."""
    matrix = to_scipy(g, scipy_fmt="csr")
    src, dst = min(src, dst), max(src, dst)
    to_src, to_dst = _without(matrix, dst, src), _without(matrix, src, dst)
    total = to_src + to_dst
    with np.errstate(invalid="ignore"):
        half = total // 2
        labels = 1 + np.minimum(to_src, to_dst) + half * (half + total % 2 - 1)
    labels[[src, dst]] = 1
    labels[np.isnan(labels)] = 0
    return torch.from_numpy(labels).long()


def _without(matrix: Any, removed: int, root: int) -> Any:
    """Distances to a node where another is not there, which counts as 0 away."""
    others = [i for i in range(matrix.shape[0]) if i != removed]
    lengths = scipy.sparse.csgraph.shortest_path(
        matrix[others, :][:, others], directed=False, unweighted=True, indices=others.index(root)
    )
    return np.insert(lengths, removed, 0, axis=0)
