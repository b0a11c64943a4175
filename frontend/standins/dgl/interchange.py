"""Graphs from and to DGL itself and PyG. Neither has to be installed for the way in.

Tensors of ends and features are shared, not copied, where the dtype allows it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import DGLError
from .create import create_block, graph, heterograph
from .graph import DGLGraph
from .topology import EType


def from_dgl(g: Any) -> DGLGraph:
    """A `dgl.DGLGraph` of the real package: structure, features, and how it was batched."""
    pairs = {etype: g.edges(etype=etype, order="eid") for etype in g.canonical_etypes}
    if g.is_block:
        sources = {t: g.num_src_nodes(t) for t in g.srctypes}
        targets = {t: g.num_dst_nodes(t) for t in g.dsttypes}
        made = create_block(pairs, sources, targets, g.idtype)
        for ntype in g.dsttypes:
            made._target_frames[ntype].update(g.dstnodes[ntype].data)
        for ntype in g.srctypes:
            made._source_frames[ntype].update(g.srcnodes[ntype].data)
    else:
        made = _in_order(pairs, {t: g.num_nodes(t) for t in g.ntypes}, g)
        for ntype in g.ntypes:
            made._source_frames[ntype].update(g.nodes[ntype].data)
    for etype in g.canonical_etypes:
        made._edge_frames[etype].update(g.edges[etype].data)
    # Where nobody has told or asked yet, to ask would note an answer for nodes only, at which DGL's
    # `remove_nodes` fails. A batch of one graph is as if nobody had.
    if not g.is_block and g._batch_num_nodes is not None and g.batch_size > 1:
        made.set_batch_num_nodes({t: g.batch_num_nodes(t) for t in g.ntypes})
        made.set_batch_num_edges({e: g.batch_num_edges(e) for e in g.canonical_etypes})
    return made


def _in_order(pairs: dict[EType, Any], counts: dict[str, int], g: Any) -> DGLGraph:
    """A graph whose types are in the order of `g`, which may be another than the alphabet's."""
    made = heterograph(pairs, counts, g.idtype)
    topology = made._topology
    topology.relations = {etype: topology.relations[etype] for etype in g.canonical_etypes}
    topology.sources = topology.targets = {ntype: topology.sources[ntype] for ntype in g.ntypes}
    topology.device = g.device
    return DGLGraph(topology)


def to_dgl(g: DGLGraph) -> Any:
    """The graph as a `dgl.DGLGraph` of the real package, which has to be installed."""
    import dgl

    if dgl.DGLGraph is DGLGraph:
        raise DGLError("to_dgl: `dgl` is gnnc.dgl here; the real package is not installed")
    pairs = {etype: g.edges(etype=etype) for etype in g.canonical_etypes}
    if g.is_block:
        made = dgl.create_block(pairs, g._topology.sources, g._topology.targets, g.idtype)
        for ntype, frame in g._source_frames.items():
            made.srcnodes[ntype].data.update(frame)
        for ntype, frame in g._target_frames.items():
            made.dstnodes[ntype].data.update(frame)
    else:
        made = dgl.heterograph(pairs, dict(g._topology.sources), g.idtype)
        for ntype, frame in g._source_frames.items():
            made.nodes[ntype].data.update(frame)
    for etype, frame in g._edge_frames.items():
        made.edges[etype].data.update(frame)
    if g._batch_nodes is not None and g._batch_edges is not None:
        made.set_batch_num_nodes(dict(g._batch_nodes))
        made.set_batch_num_edges(dict(g._batch_edges))
    return made


def from_pyg(data: Any, ignore: tuple[str, ...] = ()) -> DGLGraph:
    """A `Data` or `HeteroData` of PyG; attributes of nodes and edges become features of one name.

    Raises `DGLError` for attributes that belong to no node or edge, unless `ignore` names them.
    """
    if not hasattr(data, "edge_types"):
        src, dst = data.edge_index
        made = graph((src, dst), num_nodes=data.num_nodes)
        for key, value in data:
            if key == "edge_index" or key in ignore or key == "num_nodes":
                continue
            if data.is_node_attr(key):
                made.ndata[key] = value
            elif data.is_edge_attr(key):
                made.edata[key] = value
            else:
                raise _no_place(key)
        return made
    counts = {ntype: data[ntype].num_nodes for ntype in data.node_types}
    made = heterograph({e: tuple(data[e].edge_index) for e in data.edge_types}, counts)
    for ntype in data.node_types:
        for key, value in data[ntype].items():
            if key != "num_nodes" and key not in ignore:
                made.nodes[ntype].data[key] = _tensor(key, value)
    for etype in data.edge_types:
        for key, value in data[etype].items():
            if key != "edge_index" and key not in ignore:
                made.edges[etype].data[key] = _tensor(key, value)
    return made


def _tensor(key: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise _no_place(key)
    return value


def _no_place(key: str) -> DGLError:
    return DGLError(
        f"from_pyg: attribute {key!r} is of no node or edge, and a graph has no others; "
        f"ignore=({key!r},) leaves it out"
    )


def to_pyg(g: DGLGraph) -> Any:
    """The graph as a `Data` of PyG, or as `HeteroData` if it has several types."""
    from torch_geometric.data import Data, HeteroData

    if g.is_block:
        raise DGLError("to_pyg: a block is no graph of PyG; use block_to_graph first")
    if g.is_homogeneous:
        (r,), (frame,) = g._topology.relations.values(), g._source_frames.values()
        made = Data(edge_index=torch.stack([r.src, r.dst]), **frame)
        for key, value in g.edata.items():
            made[key] = value
        made.num_nodes = g.num_nodes()
        return made
    made = HeteroData()
    for ntype, rows in g._topology.sources.items():
        made[ntype].num_nodes = rows
        for key, value in g._source_frames[ntype].items():
            made[ntype][key] = value
    for etype, r in g._topology.relations.items():
        made[etype].edge_index = torch.stack([r.src, r.dst])
        for key, value in g._edge_frames[etype].items():
            made[etype][key] = value
    return made
