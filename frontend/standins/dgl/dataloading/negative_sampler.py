"""Samplers of pairs that stand for edges that there are not: callables of a graph and edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnc.frontend.torch.loader.seeds import DRAWS, generator
from gnnc.runtime.sampling.non_edges import NonEdges

from ..base import DGLError
from ..graph import DGLGraph
from ..topology import EType
from . import structure
from .keys import next_key, threads

Pairs = tuple[Tensor, Tensor]


class _NegativeSampler:
    def __call__(self, g: Any, eids: Any) -> Any:
        """Sources and targets of negatives for edges: two tensors of shape (negatives,), or by type
        as `eids`. Raises `DGLError` for edges that are not there."""
        structure.check_graph(g)
        if isinstance(eids, Mapping):
            given = {g._find_etype(etype): ids for etype, ids in eids.items()}
            return {etype: self._generate(g, ids, etype) for etype, ids in given.items()}
        if len(g.canonical_etypes) != 1:
            raise DGLError("The graph has several edge types: give eids as a dict by edge type.")
        return self._generate(g, eids, g.canonical_etypes[0])

    def _generate(self, g: DGLGraph, eids: Tensor, canonical_etype: EType) -> Pairs:
        raise NotImplementedError


class PerSourceUniform(_NegativeSampler):
    """`k` pairs for each edge, of its source and any nodes of the targets' type: each equally
    likely, and a pair may be an edge.

    Raises `ValueError` for a negative `k`.
    """

    def __init__(self, k: int) -> None:
        self.k = _number(k)

    def _generate(self, g: DGLGraph, eids: Tensor, canonical_etype: EType) -> Pairs:
        src = g.find_edges(eids, etype=canonical_etype)[0].repeat_interleave(self.k)
        key, count = next_key(), g.num_nodes(canonical_etype[2])
        random = generator(key.seed, key.epoch, key.step, DRAWS)
        drawn = random.integers(0, count, src.shape[0]) if src.shape[0] else np.zeros(0, np.int64)
        return src, g._typed(torch.from_numpy(drawn))[0]


Uniform = PerSourceUniform


class GlobalUniform(_NegativeSampler):
    """`k` pairs for each edge, drawn from all pairs that no edge joins: each equally likely.

    Args:
        exclude_self_loops: whether no pair is a node and itself.
        replace: whether a pair may come more than once. Else there are fewer than asked for where
            there are fewer pairs.

    Raises:
        ValueError: a negative `k`.
    """

    def __init__(self, k: int, exclude_self_loops: bool = True, replace: bool = False) -> None:
        self.k = _number(k)
        self.exclude_self_loops, self.replace = exclude_self_loops, replace
        self._free = structure.PerStructure[dict[EType, NonEdges]](lambda g: {})

    def _generate(self, g: DGLGraph, eids: Tensor, canonical_etype: EType) -> Pairs:
        known = self._free(g)
        if canonical_etype not in known:
            known[canonical_etype] = self._non_edges(g, canonical_etype)
        free, count = known[canonical_etype], eids.shape[0] * self.k
        found = _pairs(free, count) if self.replace else _different(free, count)
        src, dst = g._typed(*map(torch.from_numpy, found))
        return src, dst

    def _non_edges(self, g: DGLGraph, etype: EType) -> NonEdges:
        r, counts = g._topology.relations[etype], g._topology.sources
        loops = etype[0] != etype[2] or not self.exclude_self_loops
        return NonEdges(
            r.src.numpy(), r.dst.numpy(), counts[etype[0]], counts[etype[2]], loops=loops
        )


def _number(k: int) -> int:
    if k < 0:
        raise ValueError(f"k must not be negative, got {k}")
    return k


def _pairs(free: NonEdges, count: int) -> Any:
    return free.pairs(count if free.count else 0, next_key(), threads=threads())


def _different(free: NonEdges, count: int) -> Any:
    """Pairs in the order in which they were drawn, each once. No more than half of all pairs are
    found by drawing again in place of those that came before; else all are shuffled."""
    wanted, key = min(count, free.count), next_key()
    if 2 * wanted > free.count:
        random = generator(key.seed, key.epoch, key.step, DRAWS)
        return free.every()[:, random.permutation(free.count)[:wanted]]
    found, drawn = np.zeros((2, 0), np.int32), 0
    while missing := wanted - found.shape[1]:
        more = free.pairs(2 * missing, key, first=drawn, threads=threads())
        drawn += more.shape[1]
        both = np.concatenate([found, more], axis=1)
        _, first = np.unique(both[0].astype(np.int64) * free.targets + both[1], return_index=True)
        found = both[:, np.sort(first)[:wanted]]
    return found
