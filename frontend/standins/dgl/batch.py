"""Many graphs as one, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .base import ALL, EID, NID, DGLError, is_all
from .frames import Frame
from .graph import DGLGraph
from .schemes import schemes
from .topology import EType, Joined, Relation, Topology, relation


def batch(graphs: Sequence[DGLGraph], ndata: Any = ALL, edata: Any = ALL) -> DGLGraph:
    """One graph of several, side by side; it knows how many nodes and edges each has.

    All must have the same types. `ndata` and `edata` name the features to keep: all, a list, or
    None. Raises `DGLError` where shapes or names of features differ, and for blocks.
    """
    graphs = list(graphs)
    if not graphs:
        raise DGLError("The input list of graphs cannot be empty.")
    for name, value in (("ndata", ndata), ("edata", edata)):
        if not (value is None or is_all(value) or isinstance(value, list)):
            raise DGLError(f"Invalid argument {name}: must be a string list but got {type(value)}.")
    if any(g.is_block for g in graphs):
        raise DGLError("Batching a MFG is not supported.")
    first = graphs[0]
    for g in graphs:
        if set(g.canonical_etypes) != set(first.canonical_etypes) or g.idtype != first.idtype:
            raise DGLError("batch: graphs differ in their edge types or in their idtype")
    made = DGLGraph(_side_by_side(graphs))
    made._batch_nodes = {t: torch.cat([g.batch_num_nodes(t) for g in graphs]) for t in first.ntypes}
    made._batch_edges = {
        e: torch.cat([g.batch_num_edges(e) for g in graphs]) for e in first.canonical_etypes
    }
    if torch.compiler.is_dynamo_compiling():
        _tell_owners(made, graphs)
    if ndata is not None:
        for ntype, frame in made._source_frames.items():
            parts = [(g._source_frames[ntype], g.num_nodes(ntype)) for g in graphs]
            frame.update(_joined(parts, ndata, f'nodes["{ntype}"].data'))
    if edata is not None:
        for etype, frame in made._edge_frames.items():
            parts = [(g._edge_frames[etype], g.num_edges(etype)) for g in graphs]
            frame.update(_joined(parts, edata, f"edges[{etype}].data"))
    return made


def _tell_owners(made: DGLGraph, graphs: list[DGLGraph]) -> None:
    """A tracer cannot find them by the numbers of rows, which it does not know."""
    for ntype in made.ntypes:
        rows = [g.num_nodes(ntype) for g in graphs]
        found = _owners(graphs, rows, [g._node_owners.get(ntype) for g in graphs])
        if found is not None:
            made._node_owners[ntype] = found
    for etype in made.canonical_etypes:
        rows = [g.num_edges(etype) for g in graphs]
        found = _owners(graphs, rows, [g._edge_owners.get(etype) for g in graphs])
        if found is not None:
            made._edge_owners[etype] = found


def _side_by_side(graphs: list[DGLGraph]) -> Topology:
    first = graphs[0]._topology
    starts: list[dict[str, int]] = []
    counts = dict.fromkeys(first.sources, 0)
    for g in graphs:
        starts.append(dict(counts))
        for ntype in counts:
            counts[ntype] += g._topology.sources[ntype]
    relations: dict[EType, Relation] = {}
    for etype in first.relations:
        parts = [g._topology.relations[etype] for g in graphs]
        for r in parts:  # a tracer does not know it, and of joined tensors cannot find out
            torch._check(r.src.shape[0] == r.dst.shape[0])
        src = [r.src + start[etype[0]] for r, start in zip(parts, starts, strict=True)]
        dst = [r.dst + start[etype[2]] for r, start in zip(parts, starts, strict=True)]
        reached, left = Joined([r.reached for r in parts]), Joined([r.left for r in parts])
        relations[etype] = Relation(torch.cat(src), torch.cat(dst), reached, left)
    return Topology(relations, counts, None, first.idtype, first.device)


def _owners(graphs: list[DGLGraph], sizes: list[int], known: list[Tensor | None]) -> Tensor | None:
    """Which graph of a batch each row is of; `sizes` are the rows of each graph, `known` what those
    that are batches themselves have. None where one of these does not know."""
    parts: list[Tensor] = []
    first = 0
    for g, rows, own in zip(graphs, sizes, known, strict=True):
        if g._batch_nodes is None:
            parts.append(torch.full((rows,), first, device=g.device))
        elif own is None:
            return None
        else:
            torch._check(own.shape[0] == rows)
            parts.append(own + first)
        first += g.batch_size
    return torch.cat(parts)


def _joined(parts: list[tuple[Frame, int]], keys: Any, what: str) -> Frame:
    """Features of all graphs; those without rows need not have them."""
    frames = [frame for frame, rows in parts if rows > 0] or [frame for frame, _ in parts]
    known = [schemes(frame) for frame in frames]
    names = list(known[0]) if is_all(keys) else keys
    for scheme in known:
        if is_all(keys) and set(scheme) != set(names):
            raise DGLError(
                f"Expect all graphs to have the same schema on {what}, but got {list(scheme)} and "
                f"{names}."
            )
        for name in names:
            if name not in scheme or scheme[name] != known[0].get(name):
                raise DGLError(
                    f"Expect all graphs to have the same schema on {what}[{name!r}], but got "
                    f"{scheme.get(name)} and {known[0].get(name)}."
                )
    return {name: torch.cat([frame[name] for frame in frames]) for name in names}


def unbatch(g: DGLGraph, node_split: Any = None, edge_split: Any = None) -> list[DGLGraph]:
    """The graphs of which `g` is made, or as `node_split` and `edge_split` say.

    These have numbers of nodes and edges, `(graphs,)`, by type if there are several.
    """
    topology = g._topology
    nodes = _splits(node_split, {t: g.batch_num_nodes(t) for t in g.ntypes}, "node")
    edges = _splits(edge_split, {e: g.batch_num_edges(e) for e in g.canonical_etypes}, "edge")
    sizes = {len(split) for split in (*nodes.values(), *edges.values())}
    if len(sizes) != 1:
        raise DGLError("All node_split and edge_split must specify the same number of split sizes.")
    node_parts = {t: _split_frame(g._source_frames[t], nodes[t]) for t in nodes}
    edge_parts = {e: _split_frame(g._edge_frames[e], edges[e]) for e in edges}
    starts = dict.fromkeys(nodes, 0)
    ends = {
        e: (topology.relations[e].src.split(edges[e]), topology.relations[e].dst.split(edges[e]))
        for e in edges
    }
    made: list[DGLGraph] = []
    for i in range(sizes.pop()):
        counts = {t: nodes[t][i] for t in nodes}
        relations: dict[EType, Relation] = {}
        for etype, (src, dst) in ends.items():
            at = src[i] - starts[etype[0]], dst[i] - starts[etype[2]]
            relations[etype] = relation(*at, counts[etype[0]], counts[etype[2]])
        part = Topology(relations, counts, None, topology.idtype, topology.device)
        frames = {t: node_parts[t][i] for t in nodes}
        made.append(
            DGLGraph(part, None, None, (frames, frames), {e: edge_parts[e][i] for e in edges})
        )
        starts = {t: starts[t] + counts[t] for t in nodes}
    return made


def _splits(given: Any, known: dict[Any, Tensor], what: str) -> dict[Any, list[int]]:
    if given is None:
        given = known
    elif not isinstance(given, Mapping):
        if len(known) != 1:
            raise DGLError(
                f"Must provide a dictionary for argument {what}_split when there are multiple "
                f"{what} types."
            )
        given = dict.fromkeys(known, given)
    if set(given) != set(known):
        raise DGLError(f"Must specify {what}_split for each {what} type.")
    return {kind: torch.as_tensor(given[kind]).tolist() for kind in known}


def _split_frame(frame: Frame, sizes: list[int]) -> list[Frame]:
    parts: list[Frame] = [{} for _ in sizes]
    for key, value in frame.items():
        for part, rows in zip(parts, value.split(sizes), strict=True):
            part[key] = rows
    return parts


def slice_batch(g: DGLGraph, gid: int, store_ids: bool = False) -> DGLGraph:
    """Graph number `gid` of a batch; `store_ids` puts the rows in `g` into `_ID`."""
    made = unbatch(g)[gid]
    if store_ids:
        for ntype, frame in made._source_frames.items():
            start = int(g.batch_num_nodes(ntype)[:gid].sum())
            frame[NID] = made._typed_ids(made.num_nodes(ntype)) + start
        for etype, frame in made._edge_frames.items():
            start = int(g.batch_num_edges(etype)[:gid].sum())
            frame[EID] = made._typed_ids(made.num_edges(etype)) + start
    return made


def merge(graphs: Sequence[DGLGraph]) -> DGLGraph:
    """One graph with the nodes that all share and the edges of each, one after the other.

    There are as many nodes as in the largest. Features of nodes of later graphs overwrite earlier
    ones, those of edges are put one after the other.
    """
    graphs = list(graphs)
    if not graphs:
        raise DGLError("The input list of graphs cannot be empty.")
    first = graphs[0]
    counts = {t: max(g.num_nodes(t) for g in graphs) for t in first.ntypes}
    relations: dict[EType, Relation] = {}
    edges: dict[EType, Frame] = {}
    for etype in first.canonical_etypes:
        parts = [g._topology.relations[g._find_etype(etype)] for g in graphs]
        src, dst = torch.cat([r.src for r in parts]), torch.cat([r.dst for r in parts])
        relations[etype] = relation(src, dst, counts[etype[0]], counts[etype[2]])
        edges[etype] = {
            key: torch.cat([g._edge_frames[etype][key] for g in graphs])
            for key in first._edge_frames[etype]
        }
    topology = first._topology
    made = Topology(relations, counts, None, topology.idtype, topology.device)
    frames = {t: _overlaid([g._source_frames[t] for g in graphs], counts[t]) for t in counts}
    return DGLGraph(made, None, None, (frames, frames), edges)


def _overlaid(frames: list[Frame], rows: int) -> Frame:
    made: Frame = {}
    for frame in frames:
        for key, value in frame.items():
            under = made.get(key, value.new_zeros((rows, *value.shape[1:])))
            made[key] = torch.cat([value, under[value.shape[0] :]])
    return made
