"""Carries what the phases of programs exchange (runtime/carrier.py) by what ranks say to each other
(communicator.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..carrier import ends_of
from ..cpu.memory import HOST
from ..exports import see, show
from ..memory import HANDLE_BYTES, CannotOpen, Exporting, Handle, Memory, Region
from ..messages import Messages
from .communicator import Communicator, Exchange, kind_of
from .ring_calls import RingCalls, can_carry
from .rings import Rings


class Exchanges:
    """The carrier of one rank. `peers` has, for each set of messages by name, the rank at the other
    end of each of its rows, ascending.

    Raises:
        ValueError: rows of a set do not lie by rank, or are for ranks that there are not.
    """

    def __init__(self, communicator: Communicator, peers: Mapping[str, NDArray[Any]]) -> None:
        self.communicator = communicator
        self.counts: dict[str, list[int]] = {}
        for name, ranks in peers.items():
            self.know(name, ranks)
        self._under_way: dict[str, Exchange] = {}

    def know(self, messages: str, ranks: NDArray[Any]) -> None:
        """See Carrier. Raises ValueError as the class."""
        self.counts[messages] = _counts(messages, np.asarray(ranks), self.communicator.size)

    def start(self, plan: str, sent: NDArray[Any], received: NDArray[Any]) -> None:
        """See Carrier."""
        source, target = ends_of(plan)
        # all ranks start the same plans in the same order, which is what messages are matched by
        self._under_way[plan] = self.communicator.start(
            sent, self.counts[source], received, self.counts[target], 0
        )

    def wait(self, plan: str) -> None:
        """See Carrier."""
        self._under_way.pop(plan).wait()

    def all_reduce(self, kind: str, arrays: Sequence[NDArray[Any]]) -> None:
        """See Carrier. Arrays of one dtype are one message."""
        known = kind_of(kind)
        for dtype in dict.fromkeys(a.dtype for a in arrays):
            alike = [a for a in arrays if a.dtype == dtype]
            whole = np.concatenate([a.reshape(-1) for a in alike])
            whole = self.communicator.all_reduce(whole, known)
            ends = np.cumsum([0, *(a.size for a in alike)])
            for a, (low, high) in zip(alike, pairwise(ends), strict=True):
                a[...] = whole[low:high].reshape(a.shape)


class RemoteReads(Exchanges, ABC):
    """The carrier of a rank whose kernels read the memory of the others."""

    @property
    def ranks(self) -> int:
        """See Sharing."""
        return self.communicator.size

    @abstractmethod
    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        """See Sharing."""

    def told(self, mine: NDArray[np.int64]) -> NDArray[np.int64]:
        """What all ranks tell, by rank: each as many numbers."""
        every = np.zeros((self.communicator.size, *mine.shape), np.int64)
        every[self.communicator.rank] = mine
        return self.communicator.all_reduce(every, "sum")

    def places(self, plan: str, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See Sharing."""
        to, by = (self.counts[name] for name in ends_of(plan))
        found = np.empty(sum(by), np.int64)
        self.communicator.start(rows, to, found, by, 0).wait()
        return np.repeat(np.arange(len(by)), by), found

    def retire(self, plan: str) -> None:
        """See Sharing."""
        self.communicator.barrier()


class SharedExchanges(RemoteReads):
    """The carrier of a rank that is a thread: an address is the same place for all."""

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        """See Sharing."""
        mine = [[region.address, region.size] for region in buffers]
        every = self.told(np.array(mine, np.int64)).tolist()
        return [[Region(address, size) for address, size in of_rank] for of_rank in every]


class ExportingExchanges(RemoteReads):
    """The carrier of a rank that is a process, on whose device kernels can read what others export
    of their `memory`."""

    def __init__(
        self, communicator: Communicator, peers: Mapping[str, NDArray[Any]], memory: Exporting
    ) -> None:
        super().__init__(communicator, peers)
        self.memory = memory

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        """See Sharing.

        Raises:
            CannotExport: others could not find what is published.
            CannotOpen: what another rank has published cannot be reached from here.
        """
        shown = [show(self.memory, region) for region in buffers]
        mine = [(s.region.size, s.handle.offset, *_words(s.handle.name)) for s in shown]
        every = self.told(np.array(mine, np.int64))
        return [
            [s.region for s in shown]
            if rank == self.communicator.rank
            else [self._seen(plan, rank, line) for line in lines]
            for rank, lines in enumerate(every)
        ]

    def _seen(self, plan: str, rank: int, line: NDArray[np.int64]) -> Region:
        size, offset = line[:2].tolist()
        try:
            return see(self.memory, Handle(line[2:].tobytes(), offset), size)
        except CannotOpen as error:
            raise CannotOpen(
                f"rank {self.communicator.rank} cannot read what rank {rank} has published "
                f"({plan}): {error}. gnnc.Options(remote_reads=False) has messages instead"
            ) from error


class RingExchanges(Exchanges):
    """The carrier of a rank that has rings. Raises what Exchanges raises."""

    def __init__(self, rings: Rings, peers: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(rings, peers)
        self.rings = rings
        self._of_all_graphs: dict[tuple[str, Messages], RingCalls] = {}

    def calls(self, phase: str, messages: Messages) -> RingCalls | None:
        """See Direct. Where ranks only add up, what is laid out is the same for all graphs."""
        if not can_carry(messages):
            return None
        if messages.moves:
            return RingCalls(phase, messages, self.rings, self.counts)
        key = phase, messages
        if key not in self._of_all_graphs:
            self._of_all_graphs[key] = RingCalls(phase, messages, self.rings, self.counts)
        return self._of_all_graphs[key]


def exchanges(
    communicator: Communicator, peers: Mapping[str, NDArray[Any]], memory: Memory = HOST
) -> Exchanges:
    """The carrier of one rank, for phases whose rows lie in `memory`. Raises what Exchanges
    raises."""
    if communicator.shares_memory:
        return SharedExchanges(communicator, peers)
    if isinstance(memory, Exporting):
        return ExportingExchanges(communicator, peers, memory)
    if isinstance(communicator, Rings):
        return RingExchanges(communicator, peers)
    return Exchanges(communicator, peers)


def _words(name: bytes) -> list[int]:
    """The name of an allocation as numbers that can be told."""
    return np.frombuffer(name.ljust(HANDLE_BYTES, b"\0"), np.int64).tolist()


def _counts(name: str, ranks: NDArray[Any], size: int) -> list[int]:
    if len(ranks) and not 0 <= ranks[0] <= ranks[-1] < size:
        raise ValueError(f"{name}: messages with rank {ranks[-1]}, and they are 0 to {size - 1}")
    if np.any(ranks[1:] < ranks[:-1]):
        raise ValueError(f"{name}: messages do not lie by the rank at their other end")
    return np.bincount(ranks, minlength=size).tolist()
