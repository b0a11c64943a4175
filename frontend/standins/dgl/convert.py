"""Graphs from and to scipy and networkx."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import DGLError
from .create import graph, heterograph
from .graph import DGLGraph


def from_scipy(
    sp_mat: Any,
    eweight_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> DGLGraph:
    """A graph with an edge for each entry of a square matrix, from its row to its column.

    `eweight_name` names the feature that gets the values. Edges are in the matrix's order.
    """
    if sp_mat.shape[0] != sp_mat.shape[1]:
        raise DGLError(
            "Expect the number of rows to be the same as the number of columns for sp_mat, got "
            f"{sp_mat.shape[0]} and {sp_mat.shape[1]}."
        )
    ends, values = _entries(sp_mat, idtype)
    made = graph(ends, num_nodes=sp_mat.shape[0])
    if eweight_name is not None:
        made.edata[eweight_name] = values
    return made.to(device)


def bipartite_from_scipy(
    sp_mat: Any,
    utype: str,
    etype: str,
    vtype: str,
    eweight_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> DGLGraph:
    """A graph of two node types with an edge for each entry, from its row to its column."""
    ends, values = _entries(sp_mat, idtype)
    counts = {utype: sp_mat.shape[0], vtype: sp_mat.shape[1]}
    made = heterograph({(utype, etype, vtype): ends}, counts)
    if eweight_name is not None:
        made.edata[eweight_name] = values
    return made.to(device)


def _entries(sp_mat: Any, idtype: torch.dtype | None) -> tuple[tuple[Tensor, Tensor], Tensor]:
    entries = sp_mat.tocoo()
    src, dst = torch.as_tensor(entries.row), torch.as_tensor(entries.col)
    idtype = torch.int64 if idtype is None else idtype
    return (src.to(idtype), dst.to(idtype)), torch.as_tensor(entries.data)


def from_networkx(
    nx_graph: Any,
    node_attrs: list[str] | None = None,
    edge_attrs: list[str] | None = None,
    edge_id_attr_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> DGLGraph:
    """A graph of networkx, nodes sorted by name; undirected edges become two.

    `node_attrs` and `edge_attrs` name attributes (numbers or arrays of one shape) that become
    features. `edge_id_attr_name` names the attribute that has the ids of edges.
    """
    import networkx

    directed = nx_graph.is_directed()
    if not directed and (edge_id_attr_name is not None or edge_attrs is not None):
        raise DGLError(
            "Expect edge_id_attr_name and edge_attrs to be None when nx_graph is undirected, got "
            f"{edge_id_attr_name} and {edge_attrs}"
        )
    nx_graph = networkx.convert_node_labels_to_integers(nx_graph, ordering="sorted")
    edges = list((nx_graph if directed else nx_graph.to_directed()).edges(data=True))
    if edge_id_attr_name is not None:
        if any(edge_id_attr_name not in attrs for _, _, attrs in edges):
            raise DGLError(
                "Failed to find the pre-specified edge IDs in the edge features of the NetworkX "
                f"graph with name {edge_id_attr_name}"
            )
        edges.sort(key=lambda edge: edge[2][edge_id_attr_name])
    pairs = _ids([u for u, _, _ in edges], idtype), _ids([v for _, v, _ in edges], idtype)
    made = graph(pairs, num_nodes=nx_graph.number_of_nodes())
    nodes = [nx_graph.nodes[node] for node in range(nx_graph.number_of_nodes())]
    for attr in node_attrs or ():
        made.ndata[attr] = _stacked(nodes, attr, "nodes")
    for attr in edge_attrs or ():
        made.edata[attr] = _stacked([attrs for _, _, attrs in edges], attr, "edges")
    return made.to(device)


def _ids(ids: list[int], idtype: torch.dtype | None) -> Tensor:
    return torch.tensor(ids, dtype=torch.int64 if idtype is None else idtype)


def _stacked(rows: list[dict[str, Any]], attr: str, what: str) -> Tensor:
    if any(attr not in row for row in rows):
        raise DGLError(f"Not all {what} have attribute {attr}.")
    values = [row[attr] for row in rows]
    if values and isinstance(values[0], Tensor):
        return torch.stack(values)
    if values and isinstance(values[0], np.ndarray):
        return torch.as_tensor(np.stack(values))
    return torch.tensor(values)


def to_networkx(
    g: DGLGraph,
    node_attrs: list[str] | None = None,
    edge_attrs: list[str] | None = None,
    ntype_attr: str = "ntype",
    etype_attr: str = "etype",
    eid_attr: str = "id",
) -> Any:
    """The graph as a `MultiDiGraph` of networkx, whose edges have their id as `eid_attr`.

    Attributes are rows of features. Nodes and edges of several types are numbered one type after
    the other; nodes have their type as `ntype_attr`, edges theirs, canonical, as `etype_attr`.
    """
    import networkx

    if g.device.type != "cpu":
        raise DGLError("Cannot convert a CUDA graph to networkx. Call g.cpu() first.")
    if g.is_block:
        raise DGLError("Cannot convert a block to networkx: use block_to_graph first.")
    typed = not g.is_homogeneous
    made = networkx.MultiDiGraph()
    starts: dict[str, int] = {}
    for ntype, rows in g._topology.sources.items():
        starts[ntype] = made.number_of_nodes()
        frame = g._source_frames[ntype]
        for row in range(rows):
            attrs = {key: frame[key][row] for key in node_attrs or () if key in frame}
            if typed:
                attrs[ntype_attr] = ntype
            made.add_node(starts[ntype] + row, **attrs)
    first = 0
    for etype, r in g._topology.relations.items():
        frame = g._edge_frames[etype]
        for row, (u, v) in enumerate(zip(r.src.tolist(), r.dst.tolist(), strict=True)):
            attrs = {key: frame[key][row] for key in edge_attrs or () if key in frame}
            if typed:
                attrs[etype_attr] = etype
            attrs[eid_attr] = first + row
            made.add_edge(starts[etype[0]] + u, starts[etype[2]] + v, **attrs)
        first += r.src.shape[0]
    return made


def bipartite_from_networkx(
    nx_graph: Any,
    utype: str,
    etype: str,
    vtype: str,
    u_attrs: list[str] | None = None,
    e_attrs: list[str] | None = None,
    v_attrs: list[str] | None = None,
    edge_id_attr_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> DGLGraph:
    """A graph of two node types: those with attribute `bipartite` of 0, and of 1, sorted by name.

    Other arguments are as in `from_networkx`.
    """
    if not nx_graph.is_directed():
        raise DGLError("Expect nx_graph to be a directed NetworkX graph.")
    sides: tuple[list[Any], list[Any]] = ([], [])
    for node, attrs in nx_graph.nodes(data=True):
        if attrs.get("bipartite") not in (0, 1):
            raise DGLError(f"Expect the node {node} to have attribute bipartite, 0 or 1")
        sides[attrs["bipartite"]].append(node)
    tops, bottoms = ({n: i for i, n in enumerate(sorted(side))} for side in sides)
    edges = list(nx_graph.edges(data=True))
    if edge_id_attr_name is not None:
        edges.sort(key=lambda edge: edge[2][edge_id_attr_name])
    pairs = (
        _ids([tops[u] for u, _, _ in edges], idtype),
        _ids([bottoms[v] for _, v, _ in edges], idtype),
    )
    counts = {utype: len(tops), vtype: len(bottoms)}
    made = heterograph({(utype, etype, vtype): pairs}, counts)
    for names, data, rows in (
        (u_attrs, made.srcdata, [nx_graph.nodes[n] for n in tops]),
        (v_attrs, made.dstdata, [nx_graph.nodes[n] for n in bottoms]),
        (e_attrs, made.edata, [attrs for _, _, attrs in edges]),
    ):
        for attr in names or ():
            data[attr] = _stacked(rows, attr, "rows")
    return made.to(device)
