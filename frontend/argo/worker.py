"""What `train` is given in each process: its share of a batch, and what all do together."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as together

from ...runtime.ranks.started import die_with
from .configurations import Configuration
from .cores import Masks

Batch = TypeVar("Batch")


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
        self, rank: int, configuration: Configuration, masks: Masks, lengths: Lengths
    ) -> None:
        self.rank = rank
        self.configuration = configuration
        self.masks = masks
        self.timed = Timed()
        self._lengths = lengths
        self._process = os.getpid()

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
        count = torch.tensor(losses.numel(), dtype=torch.int64)
        if self.size > 1:
            together.all_reduce(count)
        return losses.sum() / max(1, int(count))

    def sum_gradients(self, model: torch.nn.Module) -> None:
        """Replaces each gradient by its sum over the processes. A parameter that no process has a
        gradient for keeps none."""
        if self.size == 1:
            return
        wanted = [p for p in model.parameters() if p.requires_grad]
        there = torch.tensor([p.grad is not None for p in wanted], dtype=torch.int32)
        together.all_reduce(there)
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
