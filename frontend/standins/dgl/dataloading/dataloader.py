"""Batches of indices of a graph, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnc.frontend.torch.loader.loader import Loader
from gnnc.frontend.torch.loader.seeds import Int64s
from gnnc.runtime.sampling.sampler import Key

from ..graph import DGLGraph
from .keys import drawing


class DataLoader(Loader):
    """Batches `graph_sampler.sample(graph, some of the indices)`: for a sampler of neighbours
    `(input_nodes, output_nodes, blocks)`.

    All random numbers follow from (seed, epoch, step), and any number of threads gives the same
    batches.

    Args:
        graph: the graph.
        indices: what the sampler takes, of nodes or of edges: shape (indices,), integers, or a dict
            of these by type; of a dict a batch has the types that are in it.
        graph_sampler: has `sample(graph, indices)`; with `num_workers` threads call it.
        device: where batches are put; by default where the graph is.
        num_workers: threads that make batches ahead, no more than there are cores; 0, as by
            default: each batch is made when it is asked for.
        batch_size, shuffle, drop_last, seed, arguments: those of `gnnc.loader`'s loaders.
        use_prefetch_thread, use_alternate_streams, pin_prefetcher, gpu_cache, ddp_seed: have no
            effect.

    Raises:
        NotImplementedError: `use_ddp` or `use_uva`.
        TypeError, ValueError: indices or numbers that are none.
    """

    def __init__(
        self,
        graph: Any,
        indices: Any,
        graph_sampler: Any,
        device: Any = None,
        use_ddp: bool = False,
        ddp_seed: int = 0,
        batch_size: int = 1,
        drop_last: bool = False,
        shuffle: bool = False,
        use_prefetch_thread: bool | None = None,
        use_alternate_streams: bool | None = None,
        pin_prefetcher: bool | None = None,
        use_uva: bool = False,
        gpu_cache: Any = None,
        *,
        num_workers: int = 0,
        **arguments: Any,
    ) -> None:
        if use_ddp:
            raise NotImplementedError(
                "use_ddp=True is not supported: give each process its own part, "
                "sampler=torch.utils.data.DistributedSampler(range(len(indices)))"
            )
        if use_uva:
            raise NotImplementedError("use_uva=True is not supported: sampling runs on the CPU")
        self.graph, self.indices, self.graph_sampler = graph, indices, graph_sampler
        self.shuffle = shuffle
        self.device = torch.device(graph.device if device is None else device)
        self._ids = _Indices(indices)
        super().__init__(
            len(self._ids),
            batch_size=batch_size,
            drop_last=drop_last,
            shuffle=shuffle,
            num_workers=num_workers,
            **arguments,
        )

    @property
    def splits(self) -> bool:
        """Whether what a model computes for an index is the same, whatever part of the batch it
        comes in: for samplers of message-flow blocks."""
        return getattr(self.graph_sampler, "splits", False)

    def __getstate__(self) -> dict[str, Any]:
        prepare = getattr(self.graph_sampler, "prepare", None)
        if prepare is not None:  # once, not in every process that it is sent to
            prepare(self.graph)
        return super().__getstate__()

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        with drawing(key, threads):
            made = self.graph_sampler.sample(self.graph, self._ids.at(places))
        return _moved(made, self.device)

    @contextmanager
    def enable_cpu_affinity(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Does nothing: threads that load are no more than the cores, and run beside training."""
        yield


class _Indices:
    """Indices, of some types one type after the other."""

    def __init__(self, given: Any) -> None:
        parts = given if isinstance(given, Mapping) else {None: given}
        self._parts = {kind: _checked(part, kind) for kind, part in parts.items()}
        self._ends = np.cumsum([part.shape[0] for part in self._parts.values()])
        self._typed = isinstance(given, Mapping)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self._ends.size else 0

    def at(self, places: Int64s) -> Any:
        if not self._typed:
            return _rows(self._parts[None], places)
        kinds = np.searchsorted(self._ends, places, side="right")
        made: dict[Any, Tensor] = {}
        for number, (kind, part) in enumerate(self._parts.items()):
            if (mine := places[kinds == number]).size:
                made[kind] = _rows(part, mine - (self._ends[number] - part.shape[0]))
        return made


def _rows(part: Tensor, places: Int64s) -> Tensor:
    return torch.from_numpy(part.numpy()[places])


def _checked(given: Any, kind: Any) -> Tensor:
    name = "indices" if kind is None else f"indices[{kind!r}]"
    ids = torch.as_tensor(given)
    if ids.dim() != 1 or ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise TypeError(
            f"{name} must be integers of shape (indices,), got {ids.dtype} of shape "
            f"{tuple(ids.shape)}; of a mask: mask.nonzero().flatten()"
        )
    if ids.device.type != "cpu":
        raise ValueError(f"{name} must be in the memory of the CPU, got {ids.device}")
    return ids


def _moved(made: Any, device: torch.device) -> Any:
    """A batch, whatever it is made of, with its graphs and tensors on a device."""
    if device.type == "cpu":
        return made
    if isinstance(made, Tensor | DGLGraph):
        return made.to(device)
    if isinstance(made, Mapping):
        return {key: _moved(value, device) for key, value in made.items()}
    if isinstance(made, list | tuple):
        return type(made)([_moved(value, device) for value in made])
    return made
