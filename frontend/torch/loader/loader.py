"""What loaders share: epochs, batches made ahead, random numbers that are fixed by a seed."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ....runtime.prefetch import Prefetched
from ....runtime.sampling.sampler import Key
from .arriving import Arriving
from .seeds import Int64s, Order, drawn_seed

CALLED = 2**32 - 1
"""The epoch of batches that are asked for one by one."""


def cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Batches:
    """The batches of one epoch of a loader, by their number: the same whoever asks, and when."""

    def __init__(self, make: Callable[[int], Any], count: int) -> None:
        self._make, self._count = make, count

    def __len__(self) -> int:
        return self._count

    def __call__(self, step: Any) -> Any:
        return self._make(step)


class Loader:
    """Batches of seeds, epoch by epoch; a subclass says what a batch is.

    Args:
        count: how many seeds there are.
        batch_size: seeds a batch.
        shuffle: whether each epoch has an order of its own.
        drop_last: whether a last batch that is too short is left out.
        sampler: places of seeds, in the order in which they are taken each epoch.
        num_workers: threads that make batches ahead, no more than there are cores; 0: each batch is
            made when it is asked for.
        prefetch_factor: how many batches a thread has finished, or under way, at most.
        seed: what all random numbers go by, with epoch and step; by default drawn from torch's.
        generator: what it is drawn from.
        persistent_workers: has no effect: threads cost nothing to start.
        transform: is given each batch, by the thread that makes it, and gives one.

    Raises:
        ValueError: a number that is too small.
    """

    def __init__(
        self,
        count: int,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        sampler: Iterable[int] | None = None,
        num_workers: int = 1,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        ahead = 2 if prefetch_factor is None else prefetch_factor
        if num_workers < 0 or ahead < 1:
            raise ValueError(
                f"num_workers must be at least 0 and prefetch_factor at least 1, got {num_workers} "
                f"and {ahead}"
            )
        self.batch_size, self.drop_last = batch_size, drop_last
        self.num_workers, self.prefetch_factor = min(num_workers, cores()), ahead
        self.seed = drawn_seed(generator) if seed is None else seed
        Key(self.seed)
        self.transform = transform
        self.begin_thread: Callable[[], object] | None = None
        """What each thread does first."""
        self._order = Order(count, batch_size, shuffle, drop_last, sampler)
        self._count = count
        self._arriving = Arriving()
        self._lock = threading.Lock()
        self._epoch = self._called = 0

    @property
    def splits(self) -> bool:
        """Whether what a model computes for a seed is the same, whatever part of the batch the seed
        comes in: what is sampled for it depends on no other seed."""
        return False

    def shared(self, rank: int, size: int) -> Self:
        """The loader of one of `size` processes: of each batch of this one its part of the seeds,
        sampled by the random numbers of the whole batch.

        Raises:
            ValueError: a process would get a batch without seeds.
        """
        made = copy.copy(self)
        made._order = self._order.shared(rank, size)
        made._lock = threading.Lock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @property
    def epoch(self) -> int:
        """The number of the next epoch: how often the loader has been iterated over."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes on with this epoch, as after a checkpoint."""
        Key(self.seed, epoch)
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            epoch, self._epoch = self._epoch, self._epoch + 1
        batches = self.batches(epoch, threads=self._threads())
        if self.num_workers == 0:
            return map(batches, range(len(batches)))
        ahead = self.num_workers * self.prefetch_factor
        return Prefetched(batches, len(batches), self.num_workers, ahead, self.begin_thread)

    def batches(self, epoch: int, *, threads: int | None = None) -> Batches:
        """The batches of an epoch, to be asked for in any order and by any thread.

        Args:
            threads: how many threads the sampler uses for one batch; by default those of all
                compiled code.
        """
        places = self._order.batches(self.seed, epoch)

        def make(step: int) -> Any:
            return self._batch(places[step], Key(self.seed, epoch, step), threads)

        return Batches(make, len(places))

    def __call__(self, index: Tensor | Sequence[int]) -> Any:
        """The batch of the seeds at these places."""
        places = np.asarray(torch.as_tensor(index, dtype=torch.int64).cpu()).reshape(-1)
        if ((places < 0) | (places >= self._count)).any():
            raise IndexError(f"index has a place that is none of {self._count} seeds")
        with self._lock:
            called, self._called = self._called, self._called + 1
        return self._batch(places, Key(self.seed, CALLED, called), None)

    def _threads(self) -> int | None:
        """Threads of the sampler: those that make batches ahead are one each, beside training."""
        return None if self.num_workers == 0 else 1

    def _batch(self, places: Int64s, key: Key, threads: int | None) -> Any:
        made = self.make(places, key, threads)
        made = made if self.transform is None else self.transform(made)
        if threads is not None:  # it is made ahead
            self._arriving(made)
        return made

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        """The batch of the seeds at these places, by random numbers of this key."""
        raise NotImplementedError
