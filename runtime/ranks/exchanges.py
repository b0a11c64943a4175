"""Carries what the phases of programs exchange (runtime/carrier.py) by what ranks say to each other
(communicator.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..carrier import Region, ends_of
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


class SharedExchanges(Exchanges):
    """The carrier of a rank that sees the memory of the others."""

    @property
    def ranks(self) -> int:
        """See Sharing."""
        return self.communicator.size

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        """See Sharing."""
        every = np.zeros((self.communicator.size, len(buffers), 2), np.int64)
        every[self.communicator.rank] = buffers
        found = self.communicator.all_reduce(every, "sum").tolist()
        return [[(address, size) for address, size in of_rank] for of_rank in found]

    def places(self, plan: str, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See Sharing."""
        to, by = (self.counts[name] for name in ends_of(plan))
        found = np.empty(sum(by), np.int64)
        self.communicator.start(rows, to, found, by, 0).wait()
        return np.repeat(np.arange(len(by)), by), found

    def retire(self, plan: str) -> None:
        """See Sharing."""
        self.communicator.barrier()


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


def exchanges(communicator: Communicator, peers: Mapping[str, NDArray[Any]]) -> Exchanges:
    """The carrier of one rank. Raises what Exchanges raises."""
    if isinstance(communicator, Rings):
        return RingExchanges(communicator, peers)
    kind = SharedExchanges if communicator.shares_memory else Exchanges
    return kind(communicator, peers)


def _counts(name: str, ranks: NDArray[Any], size: int) -> list[int]:
    if len(ranks) and not 0 <= ranks[0] <= ranks[-1] < size:
        raise ValueError(f"{name}: messages with rank {ranks[-1]}, and they are 0 to {size - 1}")
    if np.any(ranks[1:] < ranks[:-1]):
        raise ValueError(f"{name}: messages do not lie by the rank at their other end")
    return np.bincount(ranks, minlength=size).tolist()
