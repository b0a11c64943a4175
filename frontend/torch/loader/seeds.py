"""What a loader takes its seeds from, and in which order."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

Int64s = NDArray[np.int64]


def input_nodes(data: Any, given: Any) -> tuple[str | None, Int64s, Int64s]:
    """The type of the seeds, the seeds, and what a batch calls them (`input_id`): where they come
    from a mask themselves, else their places.

    Args:
        given: node numbers or a mask, None for all; of a `HeteroData` a type, or a pair of a type
            and one of these.

    Raises:
        TypeError, ValueError: anything else.
    """
    name = None
    if isinstance(data, HeteroData):
        name, given = (given, None) if isinstance(given, str) else _pair(given)
        if name not in data.node_types:
            raise ValueError(f"input_nodes names {name!r}, but the types are {data.node_types}")
    count = int((data if name is None else data[name]).num_nodes)
    nodes = torch.arange(count, device="cpu") if given is None else torch.as_tensor(given)
    if nodes.dim() != 1 or nodes.is_floating_point():
        raise TypeError("input_nodes must be node numbers or a mask, of one dimension")
    if nodes.dtype == torch.bool:
        if nodes.numel() != count:
            raise ValueError(f"the mask input_nodes has {nodes.numel()} entries, not {count}")
        found = nodes.nonzero().view(-1).cpu().numpy()
        return name, found, found
    numbers = nodes.to("cpu", torch.int64).numpy()
    if bad := np.flatnonzero((numbers < 0) | (numbers >= count)).tolist():
        raise IndexError(f"input_nodes[{bad[0]}] is {numbers[bad[0]]}, but there are {count} nodes")
    return name, numbers, np.arange(numbers.size)


def _pair(given: Any) -> tuple[str, Any]:
    if not isinstance(given, list | tuple) or len(given) != 2 or not isinstance(given[0], str):
        raise TypeError(
            "input_nodes of a HeteroData must be a type of nodes, or a pair of it and the nodes"
        )
    return given[0], given[1]


def drawn_seed(generator: torch.Generator | None) -> int:
    """A seed out of torch's random numbers: after `torch.manual_seed` always the same."""
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_(generator=generator))


ORDER, STARTS, DRAWS = 0, 1, 2
"""What a generator is for."""


def generator(seed: int, epoch: int, step: int, use: int) -> np.random.Generator:
    """NumPy's random numbers by these alone. The generator counts up from a block that is so far
    from that of any other that no two share one."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, use, step, epoch]))


class Order:
    """The places of seeds, batch by batch.

    Args:
        count: how many seeds there are.
        shuffle: whether each epoch has them in an order of its own, which depends on seed and epoch
            alone.
        sampler: places in an order of its own, iterated anew each epoch.
        drop_last: whether a last batch that is too short is left out.

    Raises:
        ValueError: a size below 1; a sampler that is to be shuffled.
    """

    def __init__(
        self,
        count: int,
        batch_size: int,
        shuffle: bool,
        drop_last: bool,
        sampler: Iterable[int] | None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if sampler is not None and shuffle:
            raise ValueError("a sampler has an order of its own: leave out shuffle=True")
        self._count, self._size = count, batch_size
        self._shuffle, self._drop, self._sampler = shuffle, drop_last, sampler
        self._rank, self._ranks = 0, 1

    def shared(self, rank: int, ranks: int) -> Order:
        """Of each batch the places of one of so many processes: every `ranks`-th.

        Raises:
            ValueError: a process would get a batch without seeds.
        """
        last = 0 if self._drop else self._places_count() % self._size
        if self._size < ranks or 0 < last < ranks:
            raise ValueError(
                f"batch_size, drop_last: batches of {self._size} seeds, the last of"
                f" {last or self._size}, are not enough for {ranks} processes"
            )
        made = copy.copy(self)
        made._rank, made._ranks = rank, ranks
        return made

    def __len__(self) -> int:
        count = self._places_count()
        return count // self._size if self._drop else -(-count // self._size)

    def _places_count(self) -> int:
        places: Any = self._sampler
        return self._count if places is None else len(places)

    def batches(self, seed: int, epoch: int) -> list[Int64s]:
        """The places of each batch of an epoch, int64.

        Raises:
            IndexError: the sampler names a place that there is not.
        """
        places = self._places(seed, epoch)
        return list(self._cut(places))

    def _cut(self, places: Int64s) -> Iterator[Int64s]:
        whole = places.size // self._size * self._size
        end = whole if self._drop else places.size
        for first in range(0, end, self._size):
            yield places[first : first + self._size][self._rank :: self._ranks]

    def _places(self, seed: int, epoch: int) -> Int64s:
        if self._sampler is not None:
            places = np.fromiter(iter(self._sampler), np.int64)
            if ((places < 0) | (places >= self._count)).any():
                raise IndexError(f"the sampler names a place that is none of {self._count} seeds")
            return places
        if not self._shuffle:
            return np.arange(self._count)
        return generator(seed, epoch, 0, ORDER).permutation(self._count)
