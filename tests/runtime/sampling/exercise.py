"""Calls of every sampler on small graphs of many forms, for the sanitizers: `python -m` with the
shared object that they are in."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

from gnnc.runtime.sampling import kernels
from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.non_edges import NonEdges
from gnnc.runtime.sampling.rows import gather
from gnnc.runtime.sampling.sampler import Graph, Key, NeighborSampler, Seeds
from gnnc.runtime.sampling.walks import walk

from .checks import random_edges

SIZES = ((3, 5), (5, 3))
"""Targets and sources of the relations of a graph of two types."""


def neighbours(nodes: int, edges: int) -> None:
    src, dst = random_edges(edges, nodes, edges)
    rng = np.random.default_rng(nodes)
    weights, times = rng.integers(0, 3, edges), rng.integers(0, 9, edges)
    plain = in_edges(src, dst, nodes, nodes)
    full = in_edges(src, dst, nodes, nodes, weights=weights, times=times)
    seeds = rng.integers(0, nodes, 9)
    for blocks, threads, fanouts in itertools.product(
        (False, True), (1, 3), ([2, 3], [0, -1, 60], [-1, 500])
    ):
        key = Key(nodes, edges, threads)
        for pick, replace in (("uniform", False), ("uniform", True), ("labor", False)):
            for graph in (plain, Graph((nodes,), (plain, plain), ((0, 0), (0, 0)))):
                NeighborSampler(graph, fanouts, pick=pick, replace=replace, blocks=blocks).sample(
                    seeds, key, threads=threads
                )
        for pick, replace in (("last", False), ("weighted", False), ("weighted", True)):
            sampler = NeighborSampler(
                full, fanouts, pick=pick, replace=replace, blocks=blocks, disjoint=True
            )
            sampler.sample(Seeds((seeds,), times=rng.integers(0, 9, 9)), key, threads=threads)
    for fanouts, disjoint, threads in itertools.product(([], [2, 3], [-1]), (False, True), (1, 3)):
        sampler = NeighborSampler(plain, fanouts, induced=True, disjoint=disjoint)
        sampler.sample(seeds, Key(nodes), threads=threads)
    both = [random_edges(edges + i, count, edges, other) for i, (count, other) in enumerate(SIZES)]
    relations = tuple(in_edges(*b, *reversed(s)) for b, s in zip(both, SIZES, strict=True))
    graph = Graph((5, 3), relations, ((0, 1), (1, 0)))
    for blocks, disjoint, induced, threads in itertools.product((False, True), repeat=4):
        if not (blocks and induced):
            sampler = NeighborSampler(
                graph, [[2, 3], [-1, 1]], blocks=blocks, disjoint=disjoint, induced=induced
            )
            for seeds_of in (([0, 1], []), ([], [2]), ([4, 4], [0, 1])):
                given = tuple(np.array(s, int) for s in seeds_of)
                sampler.sample(Seeds(given), threads=1 + 2 * threads)
    starts = rng.integers(0, nodes, 100)
    reach = in_edges(src, dst, nodes, nodes, weights=weights)
    for ends, weighted, threads in itertools.product((False, True), (False, True), (1, 3)):
        walk(reach, starts, 5, back=0.2, ends=ends, weighted=weighted, threads=threads)
        non_edges = NonEdges(src, dst, nodes, nodes, loops=ends)
        non_edges.pairs(50 if non_edges.count else 0, threads=threads)
        non_edges.sources_for(starts, 3, threads=threads)

    x, ids = rng.random((nodes, 3)), rng.integers(0, nodes, 70)
    for columns, threads in itertools.product((0, 1, 3), (1, 3)):
        rows = np.ascontiguousarray(x[:, :columns])
        made = np.empty((70, columns))
        gather(rows.ctypes.data, nodes, 8 * columns, ids, made.ctypes.data, threads=threads)


def main(path: str) -> None:
    library = kernels.bind(Path(path))
    kernels.library = lambda: library
    for nodes, edges in itertools.product((1, 2, 60), (0, 1, 9, 1500)):
        neighbours(nodes, edges)
    print("all samplers ran")


if __name__ == "__main__":
    main(sys.argv[1])
