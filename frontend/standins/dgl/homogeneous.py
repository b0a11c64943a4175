"""Graphs of many types as graphs of one, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import EID, ETYPE, NID, NTYPE, ONE_ETYPE, ONE_NTYPE, DGLError
from .create import heterograph, of_checked_ends
from .frames import Frame
from .graph import DGLGraph
from .topology import EType


def to_homogeneous(
    G: DGLGraph,
    ndata: list[str] | None = None,
    edata: list[str] | None = None,
    store_type: bool = True,
    return_count: bool = False,
) -> Any:
    """A graph of one type, nodes and edges of the first type first, and so on.

    Features named in `ndata` and `edata`, that all types must have, come along. `_ID` has the rows
    within types, `_TYPE` (with `store_type`) the numbers of types. With `return_count` it returns
    the numbers of nodes and edges of each type too.
    """
    if G.is_block:
        raise DGLError("to_homogeneous: a block has no homogeneous form; use block_to_graph first")
    topology = G._topology
    starts: dict[str, int] = {}
    total = 0
    for ntype, rows in topology.sources.items():
        starts[ntype] = total
        total += rows
    relations = topology.relations
    src = torch.cat([r.src + starts[etype[0]] for etype, r in relations.items()])
    dst = torch.cat([r.dst + starts[etype[2]] for etype, r in relations.items()])
    ends = {(ONE_NTYPE, ONE_ETYPE, ONE_NTYPE): G._typed(src, dst)}
    made = of_checked_ends(ends, {ONE_NTYPE: total}, None, None)
    node_counts = list(topology.sources.values())
    edge_counts = [r.src.shape[0] for r in relations.values()]
    made.ndata.update(_together(list(G._source_frames.values()), node_counts, ndata, "node"))
    made.edata.update(_together(list(G._edge_frames.values()), edge_counts, edata, "edge"))
    made.ndata[NID] = torch.cat([G._typed_ids(rows) for rows in node_counts])
    made.edata[EID] = torch.cat([G._typed_ids(rows) for rows in edge_counts])
    if store_type:
        made.ndata[NTYPE] = _numbers(node_counts, G.device)
        made.edata[ETYPE] = _numbers(edge_counts, G.device)
    return (made, node_counts, edge_counts) if return_count else made


def _numbers(counts: list[int], device: torch.device) -> Tensor:
    return torch.cat([torch.full((n,), i, device=device) for i, n in enumerate(counts)])


def _together(frames: list[Frame], counts: list[int], names: list[str] | None, what: str) -> Frame:
    """Named features of all types, one after the other; types without rows need not have them."""
    full = [frame for frame, rows in zip(frames, counts, strict=True) if rows > 0]
    made: Frame = {}
    for name in names or ():
        missing = [frame for frame in full if name not in frame]
        if missing:
            raise DGLError(f"to_homogeneous: not all {what} types have the feature {name!r}")
        parts = [frame[name] for frame in full]
        if len({(part.shape[1:], part.dtype) for part in parts}) > 1:
            shapes = [(tuple(part.shape[1:]), part.dtype) for part in parts]
            raise DGLError(f"Cannot concatenate column {name} with shapes {shapes}")
        if parts:
            made[name] = torch.cat(parts)
    return made


def to_heterogeneous(
    G: DGLGraph,
    ntypes: list[str],
    etypes: list[str],
    ntype_field: str = NTYPE,
    etype_field: str = ETYPE,
    metagraph: Any = None,
) -> DGLGraph:
    """A graph of many types of one whose features have the numbers of types.

    Types of ends tell edge types of one name apart. `metagraph`, a multigraph of networkx, says
    which there are; without it those that there are edges of. Rows in `G` are in `_ID`.
    """
    if len(G.ntypes) > 1 or len(G.etypes) > 1:
        raise DGLError(
            "The input graph should be homogeneous and have only one type of nodes and edges."
        )
    (frame,), (edge_frame,) = G._source_frames.values(), G._edge_frames.values()
    (r,) = G._topology.relations.values()
    kinds, edge_kinds = frame[ntype_field].long(), edge_frame[etype_field].long()
    nodes = {t: (kinds == i).nonzero().flatten() for i, t in enumerate(ntypes)}
    places = torch.zeros_like(kinds)
    for ids in nodes.values():
        places[ids] = torch.arange(ids.shape[0], device=ids.device)
    triples = torch.stack([kinds[r.src], edge_kinds, kinds[r.dst]], 1)
    if metagraph is None:
        wanted = triples.unique(dim=0).tolist()
    else:
        keys = metagraph.edges(keys=True)
        wanted = [(ntypes.index(u), etypes.index(e), ntypes.index(v)) for u, v, e in keys]
    edges: dict[EType, Tensor] = {}
    for src, name, dst in wanted:
        same = (triples == torch.tensor([src, name, dst], device=triples.device)).all(1)
        edges[ntypes[src], etypes[name], ntypes[dst]] = same.nonzero().flatten()
    pairs = {
        etype: G._typed(places[r.src[ids]], places[r.dst[ids]]) for etype, ids in edges.items()
    }
    made = heterograph(pairs, {t: ids.shape[0] for t, ids in nodes.items()}, G.idtype, G.device)
    for ntype, ids in nodes.items():
        rows = {k: v[ids] for k, v in frame.items() if k not in (ntype_field, NID)}
        made._source_frames[ntype].update({**rows, NID: ids})
    for etype, ids in edges.items():
        rows = {k: v[ids] for k, v in edge_frame.items() if k not in (etype_field, EID)}
        made._edge_frames[etype].update({**rows, EID: ids})
    return made
