"""Small random graphs, made alike by DGL and by gnnc.dgl."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

Triple = tuple[str, str, str]
Sizes = dict[str, int]
"""How many rows features have: of "sources", "targets" and "edges", or of the types by name."""


def build(dgl: ModuleType, kind: str | None, more: int = 0) -> tuple[Any, Sizes]:
    """The graph of a kind, and its sizes; `more` nodes and edges than usual of each type.

    "gaps" has nodes without incoming edges and "full" has none; both have parallel edges and
    self-loops, which "simple" has not. "pair", "full_pair" and "block" have two sets of nodes,
    "batch" several graphs, "relations" and "relation_block" several types. None is for layers that
    take rows only.
    """
    if kind is None:
        return None, {"sources": 11, "targets": 7}
    return _BUILDERS[kind](dgl, more)


def _ends(sources: int, targets: int, edges: int) -> tuple[Tensor, Tensor]:
    """With parallel edges; the last source and the last target have none."""
    draw = torch.Generator().manual_seed(edges)
    src = torch.randint(sources - 1, (edges,), generator=draw)
    dst = torch.randint(targets - 1, (edges,), generator=draw)
    src[1:2], dst[1:2] = src[:1], dst[:1]
    return src, dst


def _full_ends(sources: int, targets: int, edges: int) -> tuple[Tensor, Tensor]:
    """With an edge into each target too, in a graph of one set of nodes a self-loop."""
    src, dst = _ends(sources, targets, edges)
    each = torch.arange(targets)
    return torch.cat([src, each]), torch.cat([dst, each])


def _sizes(graph: Any) -> Sizes:
    return {
        "sources": graph.num_src_nodes(),
        "targets": graph.num_dst_nodes(),
        "edges": graph.num_edges(),
    }


def _gaps(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    src, dst = _ends(13 + more, 13 + more, 40 + more)
    src[2] = dst[2]
    graph = dgl.graph((src, dst), num_nodes=13 + more)
    return graph, _sizes(graph)


def _full(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    graph = dgl.graph(_full_ends(13 + more, 13 + more, 40 + more), num_nodes=13 + more)
    return graph, _sizes(graph)


def _simple(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    count = 11 + more
    each = torch.arange(count)
    src, dst = each.repeat(3), torch.cat([(each + step) % count for step in (1, 3, 4)])
    graph = dgl.graph((src, dst), num_nodes=count + 1)
    return graph, _sizes(graph)


def _pair(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    return _bipartite(dgl, _ends(11 + more, 7 + more, 30 + more), more)


def _full_pair(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    return _bipartite(dgl, _full_ends(11 + more, 7 + more, 30 + more), more)


def _bipartite(dgl: ModuleType, ends: tuple[Tensor, Tensor], more: int) -> tuple[Any, Sizes]:
    nodes = {"u": 11 + more, "v": 7 + more}
    graph = dgl.heterograph({("u", "e", "v"): ends}, num_nodes_dict=nodes)
    return graph, _sizes(graph)


def _block(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    sources, targets = 11 + more, 7 + more
    ends = _full_ends(sources, targets, 30 + more)
    block = dgl.create_block(ends, num_src_nodes=sources, num_dst_nodes=targets)
    return block, _sizes(block)


def _batch(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    sizes = [(4, 9), (6, 15), (3, 5), (5, 7)][: 3 + (more > 0)]
    parts = [dgl.graph(_full_ends(n, n, e + more), num_nodes=n) for n, e in sizes]
    graph = dgl.batch(parts)
    return graph, {**_sizes(graph), "graphs": len(parts)}


def _relations(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    nodes = {"user": 9 + more, "game": 5 + more, "shop": 6 + more}
    edges = {
        ("user", "follows", "user"): 25 + more,
        ("user", "plays", "game"): 17 + more,
        ("game", "played", "user"): 14 + more,
        ("shop", "sells", "game"): 0,
    }
    graph = dgl.heterograph(_drawn(edges, nodes, nodes), num_nodes_dict=nodes)
    return graph, {**nodes, **{etype: count for (_, etype, _), count in edges.items()}}


def _relation_block(dgl: ModuleType, more: int) -> tuple[Any, Sizes]:
    before, after = {"user": 9 + more, "game": 5 + more}, {"user": 4 + more, "game": 3 + more}
    edges = {("user", "follows", "user"): 15 + more, ("user", "plays", "game"): 12 + more}
    ends = _drawn(edges, before, after)
    return dgl.create_block(ends, num_src_nodes=before, num_dst_nodes=after), before


def _drawn(edges: dict[Triple, int], before: Sizes, after: Sizes) -> dict[Triple, Any]:
    return {triple: _ends(before[triple[0]], after[triple[2]], n) for triple, n in edges.items()}


_BUILDERS = {
    "gaps": _gaps,
    "full": _full,
    "simple": _simple,
    "pair": _pair,
    "full_pair": _full_pair,
    "block": _block,
    "batch": _batch,
    "relations": _relations,
    "relation_block": _relation_block,
}
