"""`gnnc.PartitionFolder`: a graph of which each rank reads its part from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....runtime import mapped
from ....runtime.partition import files
from ....runtime.partition.edges import Int64
from ....runtime.ranks.communicator import Communicator
from .cut_tensors import CutTensor, EdgePart, NodePart
from .typed_parts import of_one_type

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
        edges: rows of edges by name, as `nodes`, in the order that the edges had in the graph.
        **nodes: rows of nodes, [nodes, ..] of any dtype that torch has: the path of a `.npy` file,
            an array that can be written to, or a tensor on the CPU. They become tensors of this
            name of the rank's `Data`.

    Raises:
        TypeError: a value is no path, array or tensor.
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
            if not isinstance(value, str | Path | np.ndarray | Tensor):
                raise TypeError(f"{name}: a path, an array or a tensor, not {type(value).__name__}")
        if both := self.nodes.keys() & self.edges.keys():
            raise ValueError(f"{min(both)}: rows of nodes and of edges under one name")

    def part(self, communicator: Communicator, chunks: int = 1) -> tuple[Any, Known]:
        """The `Data` of this rank, whose rows cross in so many chunks, and what its tensors hold.

        Raises:
            OSError: a file cannot be read.
            BadPartition: the folder has no partition, one for another number of ranks, or files
                that are cut or changed.
            TypeError: the dtype of rows is none of torch's.
            ValueError: rows are not one a node or one an edge, or a file is no `.npy` file.
            Disagreement: ranks have other partitions or other rows.
        """
        from torch_geometric.data import Data

        with communicator.stage("read a part of the graph", LOAD_PATIENCE):
            manifest = files.read_manifest(self.folder, ranks=communicator.size)
            nodes = {k: _opened(k, v, manifest.nodes, "node") for k, v in self.nodes.items()}
            edges = {k: _opened(k, v, manifest.edges, "edge") for k, v in self.edges.items()}
            communicator.agree("the partition", manifest.digest)
            shapes = {k: (tuple(r.x.shape), r.x.dtype) for k, r in (nodes | edges).items()}
            communicator.agree("the rows of nodes and edges", str(shapes))
            part = files.load_of(self.folder, manifest, communicator.rank)
            own, links, ends = of_one_type(part, manifest.edges, chunks)
            known: Known = []
            data = Data(num_nodes=len(own.owned))
            for name, rows in nodes.items():
                x = _chosen(rows, own.owned, (len(own.owned),))
                data[name] = _noted(known, x, "nodes", own, tuple(rows.x.shape))
            data.edge_index = _noted(known, index_of(ends), "index", links, (2, links.total))
            for name, rows in edges.items():
                x = _chosen(rows, links.numbers, links.stops)
                data[name] = _noted(known, x, "edges", links, tuple(rows.x.shape))
            n_id, e_id = torch.from_numpy(own.owned), torch.from_numpy(links.numbers)
            data.n_id = _noted(known, n_id, "nodes", own, (own.total,))
            data.e_id = _noted(known, e_id, "edges", links, (links.total,))
            return data, known


def _noted(
    known: Known, x: Tensor, kind: Any, part: NodePart | EdgePart, shape: tuple[int, ...]
) -> Tensor:
    known.append((x, CutTensor(kind, part, shape)))
    return x


def index_of(ends: Int64) -> Tensor:
    """Ends of edges, [2, edges], as a tensor; without edges NumPy has strides of its own."""
    return torch.from_numpy(ends) if ends.size else torch.zeros(ends.shape, dtype=torch.int64)


@dataclass(frozen=True)
class _Rows:
    """All rows, where they lie; `written` unless nobody else can have written to them."""

    x: Tensor
    written: bool


def _opened(name: str, value: Any, count: int, row: str) -> _Rows:
    written = not isinstance(value, str | Path)
    if isinstance(value, str | Path):
        try:
            value = mapped.load(Path(value).expanduser())
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:  # torch would write to it all the same
            raise ValueError(f"{name}: an array that can be written to, or the path of its file")
        try:
            value = torch.from_numpy(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}: {error}") from error
    x: Tensor = value.detach()
    if not x.is_cpu or x.layout is not torch.strided:
        raise ValueError(f"{name}: a dense tensor on the CPU is needed")
    if not x.ndim or len(x) != count:
        raise ValueError(
            f"{name}: {list(x.shape)}, and the partition is of a graph of {count} {row}s: a row "
            f"a {row} is needed"
        )
    return _Rows(x, written)


def _chosen(rows: _Rows, chosen: Int64, stops: Sequence[int]) -> Tensor:
    """The chosen rows, which ascend between these `stops`: a view where they are one after the
    other, else read block by block, so that of a file no more than a block is in memory."""
    x, count = rows.x, len(chosen)
    if not count:
        return x[:0]
    first = int(chosen[0])
    ascending = all(chosen[i - 1] < chosen[i] for i in stops if 0 < i < count)
    if ascending and int(chosen[-1]) - first + 1 == count:
        return x[first : first + count]
    out = torch.empty(count, *x.shape[1:], dtype=x.dtype)
    for run in map(slice, (0, *stops), stops):
        _take(rows, chosen[run], out[run])
    return out


def _take(rows: _Rows, chosen: Int64, out: Tensor) -> None:
    x = rows.x
    if not mapped.holds(x.data_ptr()):
        torch.index_select(x, 0, torch.from_numpy(chosen), out=out)
        return
    for first, block in mapped.passing(x.numpy(), written=rows.written):
        low, high = np.searchsorted(chosen, (first, first + len(block)))
        places = torch.from_numpy(chosen[low:high] - first)
        torch.index_select(torch.from_numpy(block), 0, places, out=out[low:high])
        mapped.give_back(chosen[low:high], written=False)
