"""Blocks: the edges that lead to some nodes, with these and their sources numbered anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .base import EID, NID, DGLError
from .frames import Frame, Rows
from .graph import DGLGraph
from .subgraphs import first_seen
from .topology import Topology, relation


def to_block(
    g: DGLGraph,
    dst_nodes: Any = None,
    include_dst_in_src: bool = True,
    src_nodes: Any = None,
) -> DGLGraph:
    """The block of all edges of a graph, for the targets `dst_nodes`.

    Without `dst_nodes` these are all nodes that an edge leads to. With `include_dst_in_src` the
    first sources are the targets. Features come along, and rows in `g` are in `_ID`. Raises
    `DGLError` if an edge leads to another node.
    """
    if src_nodes is not None:
        raise NotImplementedError(
            f"to_block(src_nodes={src_nodes!r}): the sources are found from the edges here. Leave "
            "src_nodes out, and reorder rows of features by block.srcdata[dgl.NID]."
        )
    if g.is_block:
        raise DGLError("Cannot convert a block graph to a block.")
    topology = g._topology
    targets = _targets(g, dst_nodes)
    sources = {ntype: [targets[ntype]] if include_dst_in_src else [] for ntype in g.ntypes}
    for etype, r in topology.relations.items():
        sources[etype[0]].append(r.src)
    empty = torch.zeros(0, dtype=torch.int64, device=g.device)
    numbered = {t: first_seen(torch.cat([empty, *parts])) for t, parts in sources.items()}
    at_source = {t: _places(ids, topology.sources[t]) for t, ids in numbered.items()}
    at_target = {t: _places(ids, topology.sources[t]) for t, ids in targets.items()}
    counts = {t: ids.shape[0] for t, ids in numbered.items()}
    target_counts = {t: ids.shape[0] for t, ids in targets.items()}
    relations = {}
    for etype, r in topology.relations.items():
        dst = at_target[etype[2]][r.dst]
        if bool((dst < 0).any()):
            raise DGLError(
                f"to_block: an edge of {etype} leads to a node that is not in dst_nodes."
            )
        ends = at_source[etype[0]][r.src], dst
        relations[etype] = relation(*ends, counts[etype[0]], target_counts[etype[2]])
    made = Topology(relations, counts, target_counts, topology.idtype, topology.device)
    frames = _frames(g, numbered), _frames(g, targets)
    edges: dict[Any, Frame] = {}
    for etype, frame in g._edge_frames.items():
        edges[etype] = {**frame, EID: g._typed_ids(g.num_edges(etype))}
    return DGLGraph(made, None, None, frames, edges)


def _targets(g: DGLGraph, dst_nodes: Any) -> dict[str, Tensor]:
    topology = g._topology
    if dst_nodes is None:
        ends: dict[str, list[Tensor]] = {ntype: [] for ntype in g.ntypes}
        for etype, r in topology.relations.items():
            ends[etype[2]].append(r.dst)
        empty = torch.zeros(0, dtype=torch.int64, device=g.device)
        return {ntype: torch.cat([empty, *parts]).unique() for ntype, parts in ends.items()}
    if not isinstance(dst_nodes, Mapping):
        if len(g.ntypes) != 1:
            raise DGLError(
                "Graph has more than one node type; please specify a dict for dst_nodes."
            )
        dst_nodes = {g.ntypes[0]: dst_nodes}
    return {
        ntype: g._ids(dst_nodes.get(ntype, []), f"dst_nodes[{ntype!r}]", topology.sources[ntype])
        for ntype in g.ntypes
    }


def _places(ids: Tensor, rows: int) -> Tensor:
    places = torch.full((rows,), -1, device=ids.device)
    places[ids] = torch.arange(ids.shape[0], device=ids.device)
    return places


def _frames(g: DGLGraph, ids: dict[str, Tensor]) -> dict[str, Frame]:
    return {
        ntype: {**Rows(g._source_frames[ntype], rows), NID: g._typed(rows)[0]}
        for ntype, rows in ids.items()
    }
