"""What `train` is given in each process: its share of a batch, and what all do together."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed as together

from ...runtime.ranks.started import die_with
from .configurations import Configuration, default
from .cores import Masks, machine, masks

if TYPE_CHECKING:
    from ..torch.loader.loader import Loader

Batch = TypeVar("Batch")
Shared = TypeVar("Shared", bound="Loader")


class TrialOver(BaseException):
    """Ends `train` when enough steps have been timed; `except Exception` does not stop it."""


@dataclass(frozen=True)
class Lengths:
    """How long a process trains."""

    epochs: int
    warm: int = 0
    """Steps of a trial before those that are timed."""
    timed: int = 0
    """Steps of a trial that are timed; 0: it is no trial."""


@dataclass
class Timed:
    """The steps of a process."""

    seconds: list[float] = field(default_factory=list[float])
    """Of each one that was timed."""
    of_epoch: int | None = None
    """How many steps an epoch has, where the loader says so."""
    until_first: float = 0.0
    """Seconds until the end of the first step of all."""


class Shares:
    """The batches of one process, as indices: for `batch_sampler=` of torch's and PyG's loaders.

    All processes draw the same permutation from (seed, epoch); step k takes the places kB to
    (k + 1)B of it, and process r every size-th of them from r on. So the batches of all processes
    together are those of a single one.
    """

    def __init__(
        self, count: int, batch_size: int, rank: int, size: int, *, seed: int, drop_last: bool
    ) -> None:
        if count < 1 or batch_size < size:
            raise ValueError(
                f"count, batch_size: {count} seeds in batches of {batch_size} are not enough"
                f" for {size} processes"
            )
        last = count % batch_size
        if not drop_last and 0 < last < size:
            raise ValueError(
                f"drop_last: the last batch has {last} seeds, fewer than the {size} processes;"
                " drop_last=True leaves it out"
            )
        self._count, self._batch, self._rank, self._size = count, batch_size, rank, size
        self._seed = seed
        self._steps = count // batch_size if drop_last else -(-count // batch_size)
        self.epoch = 0
        """The next one that is iterated over; each iteration counts it up."""

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[list[int]]:
        random = torch.Generator().manual_seed(hash((self._seed, self.epoch)) % 2**63)
        self.epoch += 1
        order = torch.randperm(self._count, generator=random)
        for k in range(self._steps):
            batch = order[k * self._batch : (k + 1) * self._batch]
            yield batch[self._rank :: self._size].tolist()


class Worker:
    """One process of a training."""

    def __init__(
        self,
        rank: int,
        configuration: Configuration,
        given: Masks,
        lengths: Lengths,
        told: Callable[[Any], None] | None = None,
    ) -> None:
        self.rank = rank
        self.configuration = configuration
        self.masks = given
        self.timed = Timed()
        self._told = told
        self._lengths = lengths
        self._process = os.getpid()
        self._begun: float | None = time.perf_counter()

    @staticmethod
    def alone() -> Worker:
        """This process, untuned: what the tuner compares with."""
        found = machine()
        configuration = default(found.usable, least_samplers=0)
        return Worker(0, configuration, masks(found, configuration)[0], Lengths(0))

    def __getstate__(self) -> dict[str, Any]:
        """For a process that samples for this one."""
        return self.__dict__ | {"_told": None}

    @property
    def size(self) -> int:
        """The number of processes."""
        return self.configuration.processes

    @property
    def trial(self) -> bool:
        """Whether this is one of the tuner's, whose model is thrown away."""
        return self._lengths.timed > 0

    def epochs(self) -> range:
        """To iterate over."""
        return range(self._lengths.epochs)

    def shares(
        self, count: int, batch_size: int, *, seed: int = 0, drop_last: bool = False
    ) -> Shares:
        """This process's part of batches of `batch_size` over all, of `count` shuffled seeds.

        Raises:
            ValueError: A process would get a batch without seeds.
        """
        return Shares(count, batch_size, self.rank, self.size, seed=seed, drop_last=drop_last)

    def loader_options(self) -> dict[str, Any]:
        """For torch's and PyG's loaders: as many workers as there are cores to sample, bound to
        these."""
        count = self.configuration.samplers
        if not count:
            return {"num_workers": 0}
        return {
            "num_workers": count,
            "worker_init_fn": self.bind_sampler,
            "persistent_workers": True,
        }

    def bind_sampler(self, number: int = 0) -> None:
        """Binds the calling thread to the cores that sample; those that train keep theirs. Another
        process that calls this ends with this one, however that ends.

        Args:
            number: That of a loader's worker, which says it; not used.
        """
        if os.getpid() != self._process:
            die_with(self._process)
        os.sched_setaffinity(0, self.masks.samplers or self.masks.trainers)

    def loader(self, loader: Shared) -> Shared:
        """This process's part of a loader of `gnnc.loader`, with as many threads as there are cores
        to sample, bound to these. The seed is that of process 0.

        Gradients are those of a single process where `loader.splits` is true; the batches of other
        samplers depend on what else is in the batch.

        Raises:
            ValueError: A process would get a batch without seeds.
        """
        seed = torch.from_numpy(np.array([loader.seed], np.uint64).view(np.int64))
        if self.size > 1:
            together.broadcast(seed, 0)
        mine = loader.shared(self.rank, self.size)
        mine.seed = int(seed.numpy().view(np.uint64)[0])
        mine.num_workers = self.configuration.samplers
        mine.begin_thread = self.bind_sampler
        return mine

    def same(self, model: torch.nn.Module) -> None:
        """Gives all processes the parameters and buffers of process 0."""
        if self.size > 1:
            with torch.no_grad():
                for value in (*model.parameters(), *model.buffers()):
                    together.broadcast(value.data, 0)

    def mean(self, losses: torch.Tensor) -> torch.Tensor:
        """The part of this process of the mean over the whole batch.

        Args:
            losses: (seeds of this process,): one loss each, as of `reduction="none"`. The gradients
                of what is returned, summed over the processes, are those of the mean of all.
        """
        count = self.sum(torch.tensor(losses.numel()))
        return losses.sum() / max(1, int(count))

    def sum(self, numbers: torch.Tensor) -> torch.Tensor:
        """The sum over the processes of a tensor that has the same shape in all."""
        found = numbers.clone()
        if self.size > 1:
            together.all_reduce(found)
        return found

    def tell(self, value: Any) -> None:
        """Gives something that can be pickled to the `tell` of `run`."""
        if self._told is not None:
            self._told(value)

    def sum_gradients(self, model: torch.nn.Module) -> None:
        """Replaces each gradient by its sum over the processes. A parameter that no process has a
        gradient for keeps none."""
        if self.size == 1:
            return
        wanted = [p for p in model.parameters() if p.requires_grad]
        there = self.sum(torch.tensor([p.grad is not None for p in wanted], dtype=torch.int32))
        found = [p for p, n in zip(wanted, there.tolist(), strict=True) if n]
        for dtype in sorted({p.dtype for p in found}, key=str):
            _sum([p for p in found if p.dtype == dtype])

    def steps(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of a loader, timed: everything until the next one is asked for is the step.
        Ends `train` when a trial has had its steps."""
        if isinstance(loader, Sized):
            self.timed.of_epoch = len(loader)
        begun = time.perf_counter()
        for batch in loader:
            yield batch
            now = time.perf_counter()
            self._note(now - begun)
            begun = now

    def _note(self, seconds: float) -> None:
        if self._begun is not None:
            self.timed.until_first = time.perf_counter() - self._begun
            self._begun = None
        if not self.trial:
            return
        if self._lengths.warm > 0:
            warm = self._lengths.warm - 1
            self._lengths = Lengths(self._lengths.epochs, warm, self._lengths.timed)
            return
        self.timed.seconds.append(seconds)
        if len(self.timed.seconds) >= self._lengths.timed:
            raise TrialOver


def meet(file: Path, rank: int, size: int) -> None:
    """Makes the processes torch's group.

    Args:
        file: Where they find each other; it is not there when the first comes.
        rank: That of this one.
        size: How many there are. One alone needs no group.
    """
    if size > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all are on this machine
        store = together.FileStore(str(file), size)
        together.init_process_group("gloo", store=store, rank=rank, world_size=size)


def leave(size: int) -> None:
    """Ends the group, once nobody waits for numbers of this process any more."""
    if size > 1:
        together.barrier()
        together.destroy_process_group()


def summary(seconds: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    if len(seconds) < 2:
        return statistics.mean(seconds), 0.0
    return statistics.mean(seconds), statistics.stdev(seconds) / len(seconds) ** 0.5


def _sum(parameters: Sequence[torch.nn.Parameter]) -> None:
    """One message for all."""
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([g.reshape(-1) for g in grads])
    together.all_reduce(flat)
    parts = flat.split([g.numel() for g in grads])
    for parameter, grad, part in zip(parameters, grads, parts, strict=True):
        grad.copy_(part.view_as(grad))
        parameter.grad = grad
