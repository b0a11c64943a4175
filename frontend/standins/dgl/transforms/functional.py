"""Graphs made of others: reversed, with loops, without parallel edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..base import DGLError
from ..create import graph
from ..graph import DGLGraph
from ..lookup import grouped
from ..reduce import reduce_messages
from ..topology import Coverage, EType, Relation, Topology, relation


def reverse(
    g: DGLGraph,
    copy_ndata: bool = True,
    copy_edata: bool = False,
    *,
    share_ndata: bool | None = None,
    share_edata: bool | None = None,
) -> DGLGraph:
    """The graph with every edge turned round; features of nodes, or edges, are shared if asked."""
    copy_ndata = copy_ndata if share_ndata is None else share_ndata
    copy_edata = copy_edata if share_edata is None else share_edata
    if g.is_block:
        raise DGLError("Reversing a block graph is not supported.")
    topology = g._topology
    turned: dict[EType, Relation] = {}
    for (src, name, dst), r in topology.relations.items():
        turned[dst, name, src] = Relation(r.dst, r.src, r.left, r.reached)
    made = DGLGraph(Topology(turned, topology.sources, None, topology.idtype, topology.device))
    (nodes, _), edges = g._copied_frames()
    if copy_ndata:
        made._source_frames = made._target_frames = nodes
    if copy_edata:
        made._edge_frames = {(dst, e, src): edges[src, e, dst] for src, e, dst in edges}
    return made


def add_self_loop(
    g: DGLGraph,
    edge_feat_names: list[str] | None = None,
    fill_data: float | str = 1.0,
    etype: Any = None,
) -> DGLGraph:
    """A copy with one more edge a node, to itself, after the others.

    The loops have features `edge_feat_names` (all, without it): the number `fill_data`, or its
    sum, mean, max or min over the edges that lead to the node. Other features are zero.
    """
    found = _loop_type(g, etype, "add_self_loop")
    topology, frame = g._topology, g._edge_frames[found]
    old, rows = topology.relations[found], topology.sources[found[0]]
    names = list(frame) if edge_feat_names is None else edge_feat_names
    loops = torch.arange(rows, device=topology.device)
    made = g.clone()
    # Not `relation`: while tracing it could not tell that every node is reached now.
    relations = dict(topology.relations)
    relations[found] = Relation(
        torch.cat([old.src, loops]), torch.cat([old.dst, loops]), Coverage(True), Coverage(True)
    )
    made._topology = Topology(relations, topology.sources, None, topology.idtype, topology.device)
    data = {name: _loop_feature(frame[name], old, rows, fill_data) for name in names}
    made._edge_frames[found] = g._extended(frame, data, old.src.shape[0], rows, found)
    made._batch_nodes = made._batch_edges = None
    return made


def _loop_feature(value: Tensor, old: Relation, rows: int, fill: float | str) -> Tensor:
    if isinstance(fill, str):
        if fill not in ("sum", "mean", "max", "min"):
            raise DGLError(f"Unsupported aggregation: {fill}")
        return reduce_messages(value, old.dst, rows, fill)
    return value.new_full((rows, *value.shape[1:]), fill)


def remove_self_loop(g: DGLGraph, etype: Any = None) -> DGLGraph:
    """A copy without the edges of a type that lead from a node to itself."""
    found = _loop_type(g, etype, "remove_self_loop")
    old = g._topology.relations[found]
    made = g.clone()
    made._keep_edges(found, (old.src != old.dst).nonzero().flatten(), False)
    return made


def _loop_type(g: DGLGraph, etype: Any, what: str) -> EType:
    found = g._find_etype(etype)
    if found[0] != found[2] or g.is_block:
        raise DGLError(
            f"{what} does not support unidirectional bipartite graphs: {found}. Please make sure "
            "the types of head node and tail node are identical."
        )
    return found


def add_nodes(
    g: DGLGraph, num: int, data: dict[str, Tensor] | None = None, ntype: str | None = None
) -> DGLGraph:
    """A copy with more nodes, as `DGLGraph.add_nodes`."""
    made = g.clone()
    made.add_nodes(num, data, ntype)
    return made


def add_edges(
    g: DGLGraph, u: Any, v: Any, data: dict[str, Tensor] | None = None, etype: Any = None
) -> DGLGraph:
    """A copy with more edges, as `DGLGraph.add_edges`."""
    made = g.clone()
    made.add_edges(u, v, data, etype)
    return made


def remove_edges(g: DGLGraph, eids: Any, etype: Any = None, store_ids: bool = False) -> DGLGraph:
    """A copy without some edges, as `DGLGraph.remove_edges`."""
    made = g.clone()
    made.remove_edges(eids, etype, store_ids)
    return made


def remove_nodes(
    g: DGLGraph, nids: Any, ntype: str | None = None, store_ids: bool = False
) -> DGLGraph:
    """A copy without some nodes and their edges, as `DGLGraph.remove_nodes`."""
    made = g.clone()
    made.remove_nodes(nids, ntype, store_ids)
    return made


def add_reverse_edges(
    g: DGLGraph,
    readonly: bool | None = None,
    copy_ndata: bool = True,
    copy_edata: bool = False,
    ignore_bipartite: bool = False,
    exclude_self: bool = True,
) -> DGLGraph:
    """The edges and, after them, each of them turned round (loops not, with `exclude_self`).

    Edge types between two node types stay as they are with `ignore_bipartite`, and are an error
    without it. `readonly` is of older versions and has no effect.
    """
    topology = g._topology
    relations: dict[EType, Relation] = {}
    rows: dict[EType, Tensor] = {}
    for etype, r in topology.relations.items():
        ids = torch.arange(r.src.shape[0], device=topology.device)
        if etype[0] != etype[2]:
            if not ignore_bipartite:
                raise AssertionError(
                    "add_reverse_edges is not well defined for unidirectional bipartite graphs, "
                    f"but {etype} is unidirectional bipartite"
                )
            relations[etype], rows[etype] = r, ids
            continue
        turned = (r.src != r.dst).nonzero().flatten() if exclude_self else ids
        src, dst = torch.cat([r.src, r.dst[turned]]), torch.cat([r.dst, r.src[turned]])
        count = topology.sources[etype[0]]
        relations[etype], rows[etype] = relation(src, dst, count, count), torch.cat([ids, turned])
    made = _same_types(g, relations, copy_ndata)
    if copy_edata:
        for etype, ids in rows.items():
            for key, value in g._edge_frames[etype].items():
                made._edge_frames[etype][key] = value[ids]
            made._edge_frames[etype]["_ID"] = g._typed(ids)[0]
    return made


def to_bidirected(g: DGLGraph, copy_ndata: bool = False, readonly: bool | None = None) -> DGLGraph:
    """Each edge in both directions, and once. `readonly` is of older versions, without effect."""
    both = add_reverse_edges(g, None, copy_ndata)
    return to_simple(both, None, False, copy_ndata)


def to_simple(
    g: DGLGraph,
    return_counts: str | None = "count",
    writeback_mapping: bool = False,
    copy_ndata: bool = True,
    copy_edata: bool = False,
    aggregator: str = "arbitrary",
) -> Any:
    """Each pair of ends once, sorted by source and target.

    Feature `return_counts` has how many edges were between them. With `copy_edata` features are
    those of one of these edges, or their `sum` or `mean`. With `writeback_mapping` it returns the
    new edge of each old one too, by type if there are several.
    """
    if g.is_block:
        raise DGLError("Cannot convert a block graph to a simple graph.")
    if aggregator not in ("arbitrary", "sum", "mean"):
        raise DGLError(f'Aggregator {aggregator!r} is not "arbitrary", "sum" or "mean".')
    topology = g._topology
    relations: dict[EType, Relation] = {}
    found: dict[EType, tuple[Tensor, Tensor]] = {}
    for etype, r in topology.relations.items():
        # The largest factor is the number of targets, and at least one, so that 0 / 1 stays 0.
        width = max(topology.targets[etype[2]], 1)
        keys, inverse, counts = (r.src * width + r.dst).unique(
            return_inverse=True, return_counts=True
        )
        ends = keys // width, keys % width
        relations[etype] = relation(*ends, topology.sources[etype[0]], topology.targets[etype[2]])
        found[etype] = inverse, counts
    made = _same_types(g, relations, copy_ndata)
    for etype, (inverse, counts) in found.items():
        frame = made._edge_frames[etype]
        if copy_edata:
            for key, value in g._edge_frames[etype].items():
                frame[key] = _merged(value, inverse, counts.shape[0], aggregator)
        if return_counts is not None:
            frame[return_counts] = g._typed(counts)[0]
    if not writeback_mapping:
        return made
    mapping = {etype: g._typed(inverse)[0] for etype, (inverse, _) in found.items()}
    return made, mapping if len(mapping) > 1 else next(iter(mapping.values()))


def to_simple_graph(g: DGLGraph) -> DGLGraph:
    """The old name of `to_simple`."""
    return to_simple(g)


def _merged(value: Tensor, inverse: Tensor, rows: int, aggregator: str) -> Tensor:
    if aggregator != "arbitrary":
        return reduce_messages(value, inverse, rows, aggregator)
    chosen = inverse.new_zeros(rows)
    chosen[inverse] = torch.arange(inverse.shape[0], device=inverse.device)
    return value[chosen]


def _same_types(g: DGLGraph, relations: dict[EType, Relation], copy_ndata: bool) -> DGLGraph:
    topology = g._topology
    made = DGLGraph(Topology(relations, topology.sources, None, topology.idtype, topology.device))
    if copy_ndata:
        made._source_frames = made._target_frames = g._copied_frames()[0][0]
    return made


def line_graph(g: DGLGraph, backtracking: bool = True, shared: bool = False) -> DGLGraph:
    """A node for each edge, and an edge from one to each other that starts where it ends.

    Without `backtracking` not to one that leads back; with `shared` edges' features are nodes'.
    """
    if not g.is_homogeneous:
        raise AssertionError("only homogeneous graph is supported")
    (r,) = g._topology.relations.values()
    rows = next(iter(g._topology.sources.values()))
    after = grouped(r.src, rows, r.dst)
    degrees = torch.bincount(r.src, minlength=rows)[r.dst]
    before = torch.arange(r.src.shape[0], device=g.device)
    before = before.repeat_interleave(degrees, output_size=after.shape[0])
    kept = before != after
    if not backtracking:
        kept &= r.dst[after] != r.src[before]
    before, after = before[kept], after[kept]
    made = graph(g._typed(before, after), num_nodes=r.src.shape[0])
    if shared:
        (frame,) = g._edge_frames.values()
        made.ndata.update(frame)
    return made


def norm_by_dst(g: DGLGraph, etype: Any = None) -> Tensor:
    """One over the in-degree of the target of each edge, `(edges,)` of `float32`."""
    relation_ = g._topology.relations[g._find_etype(etype)]
    return 1.0 / g.in_degrees(etype=etype)[relation_.dst].float()


def to_half(g: DGLGraph) -> DGLGraph:
    """The graph with floating features of `float16`."""
    return _with_floats(g, torch.float16)


def to_float(g: DGLGraph) -> DGLGraph:
    """The graph with floating features of `float32`."""
    return _with_floats(g, torch.float32)


def to_double(g: DGLGraph) -> DGLGraph:
    """The graph with floating features of `float64`."""
    return _with_floats(g, torch.float64)


def _with_floats(g: DGLGraph, dtype: torch.dtype) -> DGLGraph:
    made = g.local_var()
    frames = [*made._source_frames.values(), *made._edge_frames.values()]
    for frame in [*frames, *(made._target_frames.values() if made.is_block else ())]:
        for key, value in frame.items():
            if value.is_floating_point():
                frame[key] = value.to(dtype)
    return made
