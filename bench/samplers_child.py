"""The child process of `gnnc bench samplers`: one sampler on one graph.

The first question, `{"library": .., "rule": .., "workers": .., "nodes": .., "edges": ..,
"fanouts": .., "batch_size": .., "batches": .., "threads": ..}`, draws the graph and the seeds of
all batches. `{}` after that samples all batches, and answers `seconds` of a batch and its `edges`,
both in the mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch_geometric import loader as pyg
from torch_geometric import typing
from torch_geometric.data import Data

from gnnc.bench import dgl_shim
from gnnc.bench.large_graphs import large_power_law
from gnnc.frontend.tools.children import Message, Refused, serve
from gnnc.frontend.torch.loader import NeighborLoader
from gnnc.runtime.prefetch import Prefetched
from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Key, NeighborSampler

Batches = Callable[[], Iterator[int]]
"""Samples all batches; the edges of each."""


def seeds(nodes: int, batch_size: int, batches: int) -> np.ndarray:
    """Those of all batches, shape (batches, batch size), each time different nodes."""
    random = np.random.default_rng(1)
    size = min(batch_size, nodes)
    return np.stack([random.choice(nodes, size, replace=False) for _ in range(batches)])


def by_gnnc(task: Message, edge_index: np.ndarray, batches: np.ndarray) -> Batches:
    """By DGL's rule the sampler as it is, by PyG's gnnc.loader."""
    if task["rule"] == "once":
        return _by_loader(NeighborLoader, task, edge_index, batches)
    nodes, threads = task["nodes"], task["threads"]
    graph = in_edges(*edge_index, nodes, nodes)
    sampler = NeighborSampler(graph, task["fanouts"][::-1], blocks=True)

    def edges(number: int) -> int:
        of_one = 1 if task["workers"] else threads
        return len(sampler.sample(batches[number], Key(0, 0, number), threads=of_one).edges[0].ids)

    def run() -> Iterator[int]:
        if task["workers"]:
            return Prefetched(edges, len(batches), threads, 2 * threads)
        return map(edges, range(len(batches)))

    return run


def by_dgl(task: Message, edge_index: np.ndarray, batches: np.ndarray) -> Batches:
    """DGL's sampler; with workers by its DataLoader."""
    dgl_shim.install()
    dgl_shim.ignore_affinity()
    import dgl

    graph = dgl.graph(tuple(torch.from_numpy(edge_index)), num_nodes=task["nodes"])
    graph = graph.formats("csc")
    sampler = dgl.dataloading.NeighborSampler(task["fanouts"])
    if not task["workers"]:
        found = torch.from_numpy(batches)
        return lambda: (_of_blocks(sampler.sample(graph, s)[2]) for s in found)
    loader = dgl.dataloading.DataLoader(
        graph,
        torch.from_numpy(batches.ravel()),
        sampler,
        batch_size=batches.shape[1],
        num_workers=task["threads"],
        persistent_workers=True,
    )
    return lambda: (_of_blocks(blocks) for _, _, blocks in loader)


def _of_blocks(blocks: list[Any]) -> int:
    return sum(block.num_edges() for block in blocks)


def by_pyg(task: Message, edge_index: np.ndarray, batches: np.ndarray) -> Batches:
    """PyG's loader."""
    if not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE):
        raise Refused("PyG samples with pyg-lib or torch-sparse, and neither is installed")
    return _by_loader(pyg.NeighborLoader, task, edge_index, batches)


def _by_loader(kind: Any, task: Message, edge_index: np.ndarray, batches: np.ndarray) -> Batches:
    """A loader with PyG's interface, of a graph without features."""
    loader = kind(
        Data(edge_index=torch.from_numpy(edge_index), num_nodes=task["nodes"]),
        task["fanouts"][::-1],
        torch.from_numpy(batches.ravel()),
        batch_size=batches.shape[1],
        num_workers=task["threads"] if task["workers"] else 0,
        persistent_workers=task["workers"],
    )
    return lambda: (batch.num_edges for batch in loader)


LIBRARIES = {"gnnc": by_gnnc, "dgl": by_dgl, "pyg": by_pyg}


def main() -> None:
    run: Batches | None = None

    def work(question: Message) -> Message:
        nonlocal run
        if run is None:
            task = question
            drawn = seeds(task["nodes"], task["batch_size"], task["batches"])
            edge_index = large_power_law(task["nodes"], task["edges"])
            run = LIBRARIES[task["library"]](task, edge_index, drawn)
            next(run())  # what is made once is there
            return {}
        start = time.perf_counter()
        edges = list(run())
        seconds = time.perf_counter() - start
        return {"seconds": seconds / len(edges), "edges": sum(edges) / len(edges)}

    serve(work)


if __name__ == "__main__":
    main()
