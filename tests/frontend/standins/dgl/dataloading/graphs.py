"""Graphs to sample from, the same in both libraries, and batches as sets of edges of the graph."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor

from ..both import Counts, heterograph, homogeneous, ours, rows

NODES, EDGES = 60, 400
SEEDS = torch.tensor([7, 3, 50, 11, 19])
COUNTS = Counts(40, 17, 9)


def graph(library: Any) -> Any:
    """One type, with features; the last node has no edge to it, and some edges are parallel."""
    g = homogeneous(library, NODES, EDGES)
    g.ndata["x"], g.ndata["y"] = rows(NODES, 3), torch.arange(NODES)
    g.edata["w"] = rows(EDGES, seed=1).abs()
    g.edata["kept"] = torch.arange(EDGES) % 3 != 0
    return g


def typed(library: Any) -> Any:
    """Four edge types, with features of users and of one type of edges."""
    g = heterograph(library, COUNTS)
    g.nodes["user"].data["x"] = rows(COUNTS.user, 2)
    g.edges["follows"].data["w"] = rows(g.num_edges("follows"), seed=2).abs()
    return g


def types(g: Any) -> list[tuple[str, str, str]]:
    return list(g.canonical_etypes)


def edges(made: Any, etype: Any = None) -> Counter[tuple[int, int, int]]:
    """Edges as (source, target, edge) in the numbers of the graph that a batch is from."""
    source, _, target = made.to_canonical_etype(etype)
    src, dst = made.edges(etype=etype)
    u = made.srcnodes[source].data["_ID"][src]
    v = made.dstnodes[target].data["_ID"][dst]
    return Counter(zip(u.tolist(), v.tolist(), made.edges[etype].data["_ID"].tolist(), strict=True))


def check_ids(g: Any, made: Any) -> None:
    """Every edge of a batch is the edge of the graph that it names."""
    for etype in types(g):
        src, dst = g.edges(etype=etype)
        for u, v, e in edges(made, etype):
            assert (u, v) == (int(src[e]), int(dst[e]))


def check_prefix(block: Any) -> None:
    """The first sources of each type are the targets."""
    for ntype in block.dsttypes:
        targets = block.dstnodes[ntype].data["_ID"]
        sources = block.srcnodes[ntype].data["_ID"]
        assert torch.equal(sources[: targets.shape[0]], targets)
        assert sources.unique().shape == sources.shape


def degrees(block: Any, etype: Any = None) -> dict[int, int]:
    """How many edges lead to each target, by its number in the graph."""
    target = block.to_canonical_etype(etype)[2]
    ids = block.dstnodes[target].data["_ID"].tolist()
    return dict(zip(ids, block.in_degrees(etype=etype).tolist(), strict=True))


def drawn(sampler: Any, g: Any, seeds: Any, exclude: Tensor | None = None) -> Any:
    ours.seed(4)
    return sampler.sample(g, seeds) if exclude is None else sampler.sample(g, seeds, exclude)
