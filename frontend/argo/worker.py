"""What `train` is given in each process: its share of a batch, and what all do together."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from ...runtime.ranks.alone import Alone
from ...runtime.ranks.communicator import Communicator
from ...runtime.ranks.started import die_with
from ..torch.ranks import replicas
from .configurations import Configuration, default
from .cores import Masks, machine, masks

if TYPE_CHECKING:
    from ..torch.loader.loader import Loader
    from ..torch.step import TrainStep

TAIL = 10
"""One of so many steps is left out at either end."""

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
        configuration: Configuration,
        given: Masks,
        lengths: Lengths,
        communicator: Communicator | None = None,
        told: Callable[[Any], None] | None = None,
    ) -> None:
        self.communicator: Communicator = Alone() if communicator is None else communicator
        """Between the processes."""
        self.rank = self.communicator.rank
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
        return Worker(configuration, masks(found, configuration)[0], Lengths(0))

    def __getstate__(self) -> dict[str, Any]:
        """For a process that samples for this one."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_told", "communicator")}

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
        mine = loader.shared(self.rank, self.size)
        mine.seed = self.communicator.broadcast(loader.seed)
        mine.num_workers = self.configuration.samplers
        mine.begin_thread = self.bind_sampler
        return mine

    def same(self, model: torch.nn.Module) -> None:
        """Gives all processes the parameters and buffers of process 0."""
        replicas.make_same((*model.parameters(), *model.buffers()), self.communicator)

    def mean(self, losses: torch.Tensor) -> torch.Tensor:
        """The part of this process of the mean over the whole batch.

        Args:
            losses: (seeds of this process,): one loss each, as of `reduction="none"`. The gradients
                of what is returned, summed over the processes, are those of the mean of all.
        """
        count = self.sum(torch.tensor(losses.numel()))
        return losses.sum() / max(1, int(count))

    def sum(self, numbers: torch.Tensor) -> torch.Tensor:
        """The sum over the processes of a tensor that has the same shape in all, in the order of
        processes; without gradient."""
        return replicas.summed(numbers, self.communicator)

    def tell(self, value: Any) -> None:
        """Gives something that can be pickled to the `tell` of `run`."""
        if self._told is not None:
            self._told(value)

    def sum_gradients(self, model: torch.nn.Module) -> None:
        """Replaces each gradient by its sum over the processes. A parameter that no process has a
        gradient for keeps none."""
        replicas.sum_gradients(model.parameters(), self.communicator)

    def train_step(
        self, loss: Callable[..., Any], optimizer: torch.optim.Optimizer, **options: Any
    ) -> TrainStep:
        """`gnnc.train_step` of all processes: each calls it on its part of a batch, and the loss is
        the sum of what they have (divide by `sum` of their seeds for the mean). Takes the place of
        `mean`, `sum_gradients` and the optimizer's step."""
        from ..torch.step import train_step

        return train_step(loss, optimizer, ranks=self.communicator, **options)

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


def stalls(seconds: Sequence[float]) -> float:
    """What the slowest tenth took longer than `summary` says of a step: something was compiled
    again in these."""
    if not seconds:
        return 0.0
    step, _ = summary(seconds)
    slowest = sorted(seconds)[len(seconds) - len(seconds) // TAIL :]
    return sum(s - step for s in slowest)


def summary(seconds: Sequence[float]) -> tuple[float, float]:
    """The mean without the slowest and the fastest tenth, and its standard error: a step in which
    something was compiled again says nothing of the others."""
    count, cut = len(seconds), len(seconds) // TAIL
    if count < 2:
        return statistics.mean(seconds), 0.0
    order = sorted(seconds)
    inner = order[cut : count - cut]
    # of a trimmed mean: Tukey and McLaughlin, Sankhya 1963
    drawn_in = [inner[0]] * cut + inner + [inner[-1]] * cut
    error = statistics.stdev(drawn_in) / (len(inner) / count * count**0.5)
    return statistics.mean(inner), error
