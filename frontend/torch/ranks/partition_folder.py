"""`gnnc.PartitionFolder`: a graph of which each rank reads its part from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....runtime.partition import files
from ....runtime.partition.edges import Int64
from ....runtime.partition.files import MANIFEST, Manifest
from ....runtime.partition.types import Types
from ....runtime.ranks.communicator import Communicator
from .cut_tensors import CutTensor, EdgePart, NodePart
from .folder_rows import Rows, chosen_rows, opened
from .typed_parts import TypedParts

LOAD_PATIENCE = 3600.0
"""Seconds that ranks wait for one that reads and checks its files."""
_OURS = ("edge_index", "n_id", "e_id", "num_nodes")
Known = list[tuple[Tensor, CutTensor]]


class PartitionFolder:
    """A graph that `gnnc partition GRAPH -n P --out FOLDER` cut, for `gnnc.distribute` on P ranks.

    Each rank reads its own part, and of the rows of nodes and edges those that it owns, so no rank
    has the whole graph. What a rank has in one run of rows is not read at once but mapped into
    memory: it takes memory as it is used, and the system may take that back. Tensors in files can
    be written to; the files stay as they are. A run of rows of an array or a tensor shares its
    memory.

    Args:
        folder: what `--out` named, with `partition.json`.
        edges: rows of edges by name, as `nodes`, in the order that the edges had in the graph. Of a
            graph with types, a dict with those of types of edges, by the three names of each:
            `{"edge_attr": {("author", "writes", "paper"): "attr.npy"}}`.
        **nodes: rows of nodes, [nodes, ..] of any dtype that torch has: the path of a `.npy` file,
            an array that can be written to, or a tensor on the CPU. They become tensors of this
            name of the rank's `Data`. Of a graph with types, a dict with those of types of nodes,
            `x={"author": "authors.npy", "paper": "papers.npy"}`, for the rank's `HeteroData`; types
            that are not named have no such rows.

    Raises:
        TypeError: a value, of a type where it is a dict, is no path, array or tensor.
        ValueError: a name is one of those that `gnnc.distribute` gives (`edge_index`, `n_id`,
            `e_id`, `num_nodes`), or both of nodes and of edges.
    """

    def __init__(
        self, folder: str | Path, /, *, edges: Mapping[str, Any] | None = None, **nodes: Any
    ) -> None:
        self.folder = Path(folder).expanduser()
        self.nodes, self.edges = dict(nodes), dict(edges or {})
        for name, value in (*self.nodes.items(), *self.edges.items()):
            if name in _OURS:
                raise ValueError(f"{name}: gnnc.distribute gives it, from the partition")
            for key, x in _by_type(value):
                if not isinstance(x, str | Path | np.ndarray | Tensor):
                    wrong = type(x).__name__
                    raise TypeError(f"{_of(name, key)}: a path, an array or a tensor, not {wrong}")
        if both := self.nodes.keys() & self.edges.keys():
            raise ValueError(f"{min(both)}: rows of nodes and of edges under one name")

    def part(self, communicator: Communicator, chunks: int = 1) -> tuple[Any, Known]:
        """The `Data` or `HeteroData` of this rank, whose rows cross in so many chunks, and what its
        tensors hold.

        Raises:
            OSError: a file cannot be read, or is not there.
            BadPartition: the folder has no partition, one for another number of ranks, or files
                that are cut or changed.
            TypeError: the dtype of rows is none of torch's.
            ValueError: rows are not one a node or one an edge, are of types that the graph has not,
                or a file is no `.npy` file.
            Disagreement: ranks have other partitions or other rows.
        """
        from torch_geometric.data import Data, HeteroData

        with communicator.stage("read a part of the graph", LOAD_PATIENCE):
            manifest = files.read_manifest(self.folder, ranks=communicator.size)
            types = _types(manifest)
            typed = manifest.types is not None
            nodes = self._opened(self.nodes, types.nodes, "node", typed)
            edges = self._opened(self.edges, types.edges, "edge", typed)
            communicator.agree("the partition", manifest.digest)
            every = [_shapes(of_type) for of_type in (*nodes, *edges)]
            communicator.agree("the rows of nodes and edges", str(every))
            found = files.load_of(self.folder, manifest, communicator.rank)
            parts = TypedParts(found, types, chunks)
            data, known = HeteroData() if typed else Data(), Known()
            for (name, _), rows, part in zip(types.nodes, nodes, parts.nodes, strict=True):
                _fill_nodes(data[name] if typed else data, rows, part, known)
            for (key, _), rows, of_type in zip(types.edges, edges, parts.edges, strict=True):
                _fill_edges(data[key] if typed else data, rows, *of_type, known)
            return data, known

    def _opened(
        self, given: Mapping[str, Any], types: Iterable[tuple[Any, int]], row: str, typed: bool
    ) -> list[dict[str, Rows]]:
        """The rows of each type, by name."""
        out = {key: dict[str, Rows]() for key, _ in types}
        counts = dict(types)
        for name, value in given.items():
            path = self.folder / MANIFEST
            if isinstance(value, Mapping) != typed:
                wanted = f"a dict with those of types of {row}s" if typed else "no dict by type"
                raise ValueError(f"{name}: {path} is of a graph {_kind(typed)}: {wanted} is needed")
            for key, x in _by_type(value):
                if typed and key not in counts:
                    known = ", ".join(map(repr, counts))
                    raise ValueError(
                        f"{name}: the graph of {path} has no {row}s of type {key!r}, only {known}"
                    )
                at = key if typed else next(iter(counts))
                out[at][name] = opened(_of(name, key), x, counts[at], row)
        return list(out.values())


def _kind(typed: bool) -> str:
    return "with types" if typed else "without types"


def _of(name: str, key: Any) -> str:
    """What errors call rows of a type, or of the only one."""
    return name if key is None else f"{name} of {key!r}"


def _by_type(value: Any) -> list[tuple[Any, Any]]:
    """Rows by their type, which is None where there are no types."""
    return list(value.items()) if isinstance(value, Mapping) else [(None, value)]


def _types(manifest: Manifest) -> Types:
    """The types of a graph; of one without types, one of each."""
    if manifest.types is not None:
        return manifest.types
    return Types((("", manifest.nodes),), ((("", "", ""), manifest.edges),))


def _shapes(rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    return {k: (tuple(r.x.shape), r.x.dtype) for k, r in rows.items()}


def _fill_nodes(store: Any, rows: Mapping[str, Rows], part: NodePart, known: Known) -> None:
    store.num_nodes = len(part.owned)
    for name, r in rows.items():
        x = chosen_rows(r, part.owned, (len(part.owned),))
        store[name] = _noted(known, x, "nodes", part, tuple(r.x.shape))
    store.n_id = _noted(known, torch.from_numpy(part.owned), "nodes", part, (part.total,))


def _fill_edges(
    store: Any, rows: Mapping[str, Rows], part: EdgePart, ends: Int64, known: Known
) -> None:
    store.edge_index = _noted(known, index_of(ends), "index", part, (2, part.total))
    for name, r in rows.items():
        x = chosen_rows(r, part.numbers, part.stops)
        store[name] = _noted(known, x, "edges", part, tuple(r.x.shape))
    store.e_id = _noted(known, torch.from_numpy(part.numbers), "edges", part, (part.total,))


def _noted(
    known: Known, x: Tensor, kind: Any, part: NodePart | EdgePart, shape: tuple[int, ...]
) -> Tensor:
    known.append((x, CutTensor(kind, part, shape)))
    return x


def index_of(ends: Int64) -> Tensor:
    """Ends of edges, [2, edges], as a tensor; without edges NumPy has strides of its own."""
    return torch.from_numpy(ends) if ends.size else torch.zeros(ends.shape, dtype=torch.int64)
