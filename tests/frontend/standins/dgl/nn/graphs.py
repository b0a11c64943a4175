"""Small random graphs, made alike by DGL and by gnnc.dgl."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

RELATIONS = {
    ("user", "follows", "user"): (9, 9, 25),
    ("user", "plays", "game"): (9, 5, 17),
    ("game", "played", "user"): (5, 9, 14),
    ("shop", "sells", "game"): (4, 5, 0),
}


@dataclass(frozen=True)
class Sizes:
    """Rows of the features that a graph takes."""

    sources: int
    targets: int
    edges: int
    graphs: int = 1


def _endpoints(sources: int, targets: int, edges: int, seed: int) -> tuple[Tensor, Tensor]:
    """With parallel edges; the last target gets no edge."""
    draw = torch.Generator().manual_seed(seed)
    src = torch.randint(sources, (edges,), generator=draw)
    dst = torch.randint(max(targets - 1, 1), (edges,), generator=draw)
    if edges > 1:
        src[1], dst[1] = src[0], dst[0]
    return src, dst


def _covering(src: Tensor, dst: Tensor, targets: int) -> tuple[Tensor, Tensor]:
    """With an edge more into each target, in a homogeneous graph a self-loop."""
    each = torch.arange(targets)
    return torch.cat([src, each]), torch.cat([dst, each])


def build(dgl: ModuleType, kind: str) -> tuple[Any, Sizes]:
    """The graph of a kind, and its sizes.

    "gaps" has nodes without incoming edges and "full" has none; both have parallel edges and
    self-loops, which "simple" has not. "pair", "full_pair" and "block" have two sets of nodes,
    "batch" three graphs, "relations" several types.
    """
    return _BUILDERS[kind](dgl)


def _gaps(dgl: ModuleType) -> tuple[Any, Sizes]:
    src, dst = _endpoints(13, 13, 40, 1)
    src[2] = dst[2]
    return dgl.graph((src, dst), num_nodes=13), Sizes(13, 13, 40)


def _full(dgl: ModuleType) -> tuple[Any, Sizes]:
    ends = _covering(*_endpoints(13, 13, 40, 2), 13)
    return dgl.graph(ends, num_nodes=13), Sizes(13, 13, 53)


def _simple(dgl: ModuleType) -> tuple[Any, Sizes]:
    each = torch.arange(11)
    steps = [(each, (each + step) % 11) for step in (1, 3, 4)]
    ends = tuple(torch.cat(side) for side in zip(*steps, strict=True))
    return dgl.graph(ends, num_nodes=12), Sizes(12, 12, 33)


def _pair(dgl: ModuleType) -> tuple[Any, Sizes]:
    ends = _endpoints(11, 7, 30, 3)
    nodes = {"u": 11, "v": 7}
    return dgl.heterograph({("u", "e", "v"): ends}, num_nodes_dict=nodes), Sizes(11, 7, 30)


def _full_pair(dgl: ModuleType) -> tuple[Any, Sizes]:
    ends = _covering(*_endpoints(11, 7, 30, 4), 7)
    nodes = {"u": 11, "v": 7}
    return dgl.heterograph({("u", "e", "v"): ends}, num_nodes_dict=nodes), Sizes(11, 7, 37)


def _block(dgl: ModuleType) -> tuple[Any, Sizes]:
    ends = _covering(*_endpoints(11, 7, 30, 5), 7)
    return dgl.create_block(ends, num_src_nodes=11, num_dst_nodes=7), Sizes(11, 7, 37)


def _batch(dgl: ModuleType) -> tuple[Any, Sizes]:
    sizes = ((4, 9), (6, 15), (3, 5))
    parts = [
        dgl.graph(_covering(*_endpoints(nodes, nodes, edges, edges), nodes), num_nodes=nodes)
        for nodes, edges in sizes
    ]
    return dgl.batch(parts), Sizes(13, 13, 42, graphs=3)


def _relations(dgl: ModuleType) -> tuple[Any, Sizes]:
    edges = {
        triple: _endpoints(*counts, seed) for seed, (triple, counts) in enumerate(RELATIONS.items())
    }
    nodes = {"user": 9, "game": 5, "shop": 4}
    return dgl.heterograph(edges, num_nodes_dict=nodes), Sizes(9, 5, 0)


def _relation_block(dgl: ModuleType) -> tuple[Any, Sizes]:
    edges = {
        ("user", "follows", "user"): _endpoints(9, 4, 15, 6),
        ("user", "plays", "game"): _endpoints(9, 3, 12, 7),
    }
    before, after = {"user": 9, "game": 5}, {"user": 4, "game": 3}
    block = dgl.create_block(edges, num_src_nodes=before, num_dst_nodes=after)
    return block, Sizes(9, 4, 0)


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
