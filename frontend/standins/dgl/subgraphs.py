"""Graphs of some nodes and edges of another, with the features of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .base import EID, NID, DGLError
from .frames import Frame, Rows
from .graph import DGLGraph
from .topology import EType, Topology, relation

Nodes = dict[str, Tensor]
Edges = dict[EType, Tensor]


def node_subgraph(
    graph: DGLGraph,
    nodes: Any,
    *,
    relabel_nodes: bool = True,
    store_ids: bool = True,
    output_device: Any = None,
) -> DGLGraph:
    """The nodes, in the order given, and the edges between them.

    `nodes` is ids or a mask of bools, or a dict of these by type. Without `relabel_nodes` all nodes
    stay. `store_ids` puts the rows in `graph` into feature `_ID`. Raises `DGLError` for blocks and
    for ids that are not there.
    """
    _no_block(graph, "node_subgraph")
    chosen = node_ids(graph, nodes)
    places = {ntype: _places(graph, ntype, ids) for ntype, ids in chosen.items()}
    edges: Edges = {}
    for etype, found in graph._topology.relations.items():
        src, dst = places[etype[0]][found.src], places[etype[2]][found.dst]
        edges[etype] = _sorted(src, (src >= 0) & (dst >= 0))
    made = induced(graph, chosen if relabel_nodes else None, edges, store_ids)
    return made.to(output_device)


def edge_subgraph(
    graph: DGLGraph,
    edges: Any,
    *,
    relabel_nodes: bool = True,
    store_ids: bool = True,
    output_device: Any = None,
) -> DGLGraph:
    """The edges, in the order given, and the nodes at their ends.

    `edges` is ids or a mask of bools, or a dict of these by type. Other arguments and errors are as
    in `node_subgraph`; of a block edges are chosen without `relabel_nodes`.
    """
    if relabel_nodes:
        _no_block(graph, "edge_subgraph")
    chosen = chosen_edges(graph, edges)
    nodes = _ends(graph, chosen) if relabel_nodes else None
    return induced(graph, nodes, chosen, store_ids).to(output_device)


def in_subgraph(
    graph: DGLGraph,
    nodes: Any,
    *,
    relabel_nodes: bool = False,
    store_ids: bool = True,
    output_device: Any = None,
) -> DGLGraph:
    """All nodes, and the edges that lead to `nodes`; with `relabel_nodes` only their ends."""
    return _at(graph, nodes, "in_subgraph", relabel_nodes, store_ids).to(output_device)


def out_subgraph(
    graph: DGLGraph,
    nodes: Any,
    *,
    relabel_nodes: bool = False,
    store_ids: bool = True,
    output_device: Any = None,
) -> DGLGraph:
    """All nodes, and the edges that leave `nodes`; with `relabel_nodes` only their ends."""
    return _at(graph, nodes, "out_subgraph", relabel_nodes, store_ids).to(output_device)


def _at(graph: DGLGraph, nodes: Any, what: str, relabel_nodes: bool, store_ids: bool) -> DGLGraph:
    _no_block(graph, what)
    chosen = node_ids(graph, nodes)
    topology = graph._topology
    edges: Edges = {}
    for etype, found in topology.relations.items():
        end, ntype = (found.dst, etype[2]) if what == "in_subgraph" else (found.src, etype[0])
        order = _places(graph, ntype, chosen[ntype])[end]
        edges[etype] = _sorted(order, order >= 0)
    return induced(graph, _ends(graph, edges) if relabel_nodes else None, edges, store_ids)


def khop_in_subgraph(
    graph: DGLGraph,
    nodes: Any,
    k: int,
    *,
    relabel_nodes: bool = True,
    store_ids: bool = True,
    output_device: Any = None,
) -> Any:
    """The nodes from which a path of up to `k` edges leads to `nodes`, and the edges between them.

    With `relabel_nodes` it returns the graph and the new ids of `nodes`.
    """
    return _khop(graph, nodes, k, "in", relabel_nodes, store_ids, output_device)


def khop_out_subgraph(
    graph: DGLGraph,
    nodes: Any,
    k: int,
    *,
    relabel_nodes: bool = True,
    store_ids: bool = True,
    output_device: Any = None,
) -> Any:
    """The nodes to which a path of up to `k` edges leads from `nodes`, and the edges between them.

    With `relabel_nodes` it returns the graph and the new ids of `nodes`.
    """
    return _khop(graph, nodes, k, "out", relabel_nodes, store_ids, output_device)


def _khop(
    graph: DGLGraph,
    nodes: Any,
    k: int,
    direction: str,
    relabel_nodes: bool,
    store_ids: bool,
    device: Any,
) -> Any:
    _no_block(graph, f"khop_{direction}_subgraph")
    given = node_ids(graph, nodes)
    reached = {ntype: _mask(graph, ntype, ids) for ntype, ids in given.items()}
    for _ in range(k):
        grown = {ntype: mask.clone() for ntype, mask in reached.items()}
        for etype, found in graph._topology.relations.items():
            if direction == "in":
                grown[etype[0]][found.src[reached[etype[2]][found.dst]]] = True
            else:
                grown[etype[2]][found.dst[reached[etype[0]][found.src]]] = True
        reached = grown
    kept = {ntype: mask.nonzero().flatten() for ntype, mask in reached.items()}
    typed = {ntype: graph._typed(ids)[0] for ntype, ids in kept.items()}
    made = node_subgraph(graph, typed, relabel_nodes=relabel_nodes, store_ids=store_ids)
    made = made.to(device)
    if not relabel_nodes:
        return made
    places = {
        ntype: graph._typed(torch.searchsorted(kept[ntype], ids))[0].to(made.device)
        for ntype, ids in given.items()
    }
    if isinstance(nodes, Mapping):
        return made, {ntype: places[ntype] for ntype in nodes}
    return made, places[graph.ntypes[0]]


def node_type_subgraph(graph: DGLGraph, ntypes: list[str], output_device: Any = None) -> DGLGraph:
    """The node types, those that no edge touches left out, and the edge types between them.

    Features are shared with `graph`. Raises `DGLError` if there is no such edge type.
    """
    names = [graph._find_ntype(ntype, "any")[0] for ntype in ntypes]
    etypes = [e for e in graph.canonical_etypes if e[0] in names and e[2] in names]
    if not etypes:
        raise DGLError("There are no edges among nodes of the specified types.")
    return edge_type_subgraph(graph, etypes, output_device)


def edge_type_subgraph(graph: DGLGraph, etypes: list[Any], output_device: Any = None) -> DGLGraph:
    """The edge types, in the order given, and the node types at their ends; features are shared."""
    _no_block(graph, "edge_type_subgraph")
    found = [graph._find_etype(etype) for etype in etypes]
    touched = {end for src, _, dst in found for end in (src, dst)}
    topology = graph._topology
    counts = {ntype: rows for ntype, rows in topology.sources.items() if ntype in touched}
    relations = {etype: topology.relations[etype] for etype in found}
    frames = {ntype: graph._source_frames[ntype] for ntype in counts}
    edges = {etype: graph._edge_frames[etype] for etype in found}
    made = Topology(relations, counts, None, topology.idtype, topology.device)
    return DGLGraph(made, None, None, (frames, frames), edges).to(output_device)


def induced(graph: DGLGraph, nodes: Nodes | None, edges: Edges, store_ids: bool) -> DGLGraph:
    """The graph of chosen edges, and of chosen nodes, or all if that is None.

    Each type has an entry. `_ID` is stored for what was chosen.
    """
    topology = graph._topology
    sources, targets = topology.sources, topology.targets
    if nodes is not None:
        sources = targets = {ntype: ids.shape[0] for ntype, ids in nodes.items()}
        places = {ntype: _places(graph, ntype, ids) for ntype, ids in nodes.items()}
    relations = {}
    for etype, eids in edges.items():
        found = topology.relations[etype]
        src, dst = found.src[eids], found.dst[eids]
        if nodes is not None:
            src, dst = places[etype[0]][src], places[etype[2]][dst]
        relations[etype] = relation(src, dst, sources[etype[0]], targets[etype[2]])
    kept = graph._copied_frames()[0]
    if nodes is not None:
        chosen = {
            ntype: _chosen(graph, graph._source_frames[ntype], ids, NID, store_ids)
            for ntype, ids in nodes.items()
        }
        kept = chosen, chosen
    edge_frames = {
        etype: _chosen(graph, graph._edge_frames[etype], eids, EID, store_ids)
        for etype, eids in edges.items()
    }
    block = targets if graph.is_block else None
    made = Topology(relations, sources, block, topology.idtype, topology.device)
    return DGLGraph(made, None, None, kept, edge_frames)


def _chosen(graph: DGLGraph, frame: Frame, ids: Tensor, name: str, store: bool) -> Frame:
    rows: Frame = dict(Rows(frame, ids))
    if store:
        rows[name] = graph._typed(ids)[0]
    return rows


def _places(graph: DGLGraph, ntype: str, ids: Tensor) -> Tensor:
    """The new number of each old node that is chosen."""
    places = torch.full((graph._topology.sources[ntype],), -1, device=graph.device)
    places[ids] = torch.arange(ids.shape[0], device=graph.device)
    return places


def _sorted(keys: Tensor, mask: Tensor) -> Tensor:
    """The rows of a mask, by their key, and by number where keys are equal."""
    rows = mask.nonzero().flatten()
    return rows[keys[rows].argsort(stable=True)]


def _ends(graph: DGLGraph, edges: Edges) -> Nodes:
    """The nodes at the ends of edges, sources before targets, as they first appear."""
    touched: dict[str, list[Tensor]] = {ntype: [] for ntype in graph.ntypes}
    for etype, eids in edges.items():
        found = graph._topology.relations[etype]
        touched[etype[0]].append(found.src[eids])
        touched[etype[2]].append(found.dst[eids])
    empty = torch.zeros(0, dtype=torch.int64, device=graph.device)
    return {ntype: first_seen(torch.cat([empty, *parts])) for ntype, parts in touched.items()}


def first_seen(ids: Tensor) -> Tensor:
    """Each id once, in the order in which they appear."""
    ordered, places = ids.sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ids[places[first].sort().values]


def node_ids(graph: DGLGraph, nodes: Any) -> Nodes:
    """Ids of every node type, of ids or masks that a caller gave."""
    if not isinstance(nodes, Mapping):
        if len(graph.ntypes) != 1:
            raise DGLError("need a dict of node type and IDs for graph with multiple node types")
        nodes = {graph.ntypes[0]: nodes}
    for ntype in nodes:
        graph._find_ntype(ntype, "any")
    rows = graph._topology.sources
    return {t: _ids(graph, nodes.get(t, []), f'nodes["{t}"]', rows[t]) for t in graph.ntypes}


def chosen_edges(graph: DGLGraph, edges: Any) -> Edges:
    """Ids of every edge type, of ids or masks that a caller gave."""
    if not isinstance(edges, Mapping):
        if len(graph.etypes) != 1:
            raise DGLError("need a dict of edge type and IDs for graph with multiple edge types")
        edges = {graph.canonical_etypes[0]: edges}
    given = {graph._find_etype(etype): ids for etype, ids in edges.items()}
    return {
        e: _ids(graph, given.get(e, []), f'edges["{e}"]', graph.num_edges(e))
        for e in graph.canonical_etypes
    }


def _ids(graph: DGLGraph, ids: Any, name: str, rows: int) -> Tensor:
    if isinstance(ids, Tensor) and ids.dtype == torch.bool:
        if ids.shape != (rows,):
            raise DGLError(f"The mask {name} has shape {tuple(ids.shape)}, expected ({rows},).")
        return ids.nonzero().flatten()
    return graph._ids(ids, name, rows)


def _mask(graph: DGLGraph, ntype: str, ids: Tensor) -> Tensor:
    mask = torch.zeros(graph._topology.sources[ntype], dtype=torch.bool, device=graph.device)
    mask[ids] = True
    return mask


def _no_block(graph: DGLGraph, what: str) -> None:
    if graph.is_block:
        raise DGLError(f"{what}: extracting a subgraph from a block graph is not allowed.")
