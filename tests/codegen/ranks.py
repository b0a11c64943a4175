"""Ranks that are threads: a small graph in parts, and messages through queues."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnc.dialects.meaning import SetVal
from gnnc.runtime.memory import Region

Array = NDArray[Any]
PATIENCE = 20
"""Seconds after which a message does not come any more."""
FOLDS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Rank:
    """A carrier. `plans` are numbers of rows, by plan, to each rank and from each."""

    def __init__(
        self, me: int, queues: Sequence[Sequence[SimpleQueue]], plans: Mapping[str, Any]
    ) -> None:
        self.me, self.queues, self.plans = me, queues, plans
        self.under_way: dict[str, tuple[Array, Array]] = {}
        self.called: list[str] = []

    def send(self, to: int, rows: Array) -> None:
        self.queues[self.me][to].put(rows.copy())

    def receive(self, by: int) -> Array:
        return self.queues[by][self.me].get(timeout=PATIENCE)

    def know(self, messages: str, ranks: Array) -> None:
        """All messages are known by their plans."""

    def start(self, plan: str, sent: Array, received: Array) -> None:
        """What is sent is read at the wait, the last moment; what arrives is spoilt before."""
        self.called.append(f"start {plan}")
        received.view(np.uint8)[...] = 0xFF
        self.under_way[plan] = sent, received

    def wait(self, plan: str) -> None:
        self.called.append(f"wait {plan}")
        sent, received = self.under_way.pop(plan)
        to, by = self.plans[plan]
        for rank, rows in enumerate(np.split(sent, np.cumsum(to)[:-1])):
            self.send(rank, rows)
        received[...] = np.concatenate([self.receive(rank) for rank in range(len(by))])

    @property
    def ranks(self) -> int:
        return len(self.queues)

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        self.called.append(f"publish {plan}")
        own = np.array([[region.address, region.size] for region in buffers])
        return [[Region(*x) for x in of_rank] for of_rank in self.all_have(own)]

    def places(self, plan: str, rows: Array) -> tuple[Array, Array]:
        by = self.plans[plan][1]
        found = np.empty(sum(by), np.int64)
        self.start(plan, rows, found)
        self.wait(plan)
        del self.called[-2:]
        return np.repeat(np.arange(len(by)), by), found

    def retire(self, plan: str) -> None:
        self.called.append(f"retire {plan}")
        self.all_have(np.zeros(0))

    def all_have(self, x: Array) -> list[Any]:
        """What all ranks give."""
        for rank in range(self.ranks):
            self.send(rank, x)
        return [self.receive(rank).tolist() for rank in range(self.ranks)]

    def all_reduce(self, kind: str, arrays: Sequence[Array]) -> None:
        self.called.append(f"{kind} {len(arrays)}")
        for x in arrays:
            for rank in range(len(self.queues)):
                self.send(rank, x)
            x[...] = functools.reduce(
                FOLDS[kind], [self.receive(rank) for rank in range(len(self.queues))]
            )


def on_ranks(plans: Sequence[Mapping[str, Any]], run: Callable[[int, Rank], Any]) -> list[Any]:
    """What each rank gives, all running at once; raises what one of them raises."""
    count = len(plans)
    queues = [[SimpleQueue() for _ in range(count)] for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(run, k, Rank(k, queues, p)) for k, p in enumerate(plans)]
        return [r.result() for r in running]


def parts(
    src: Array, dst: Array, owner: Array, x: Array, ranks: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The sets and rows of each rank, and its plans: nodes N that it owns, R those that others
    read, sorted by reader, H those of others that it reads, sorted by owner; edges gl from N and gr
    from H. `halo` fills H, `back` returns rows of H to R.
    """
    local = np.zeros(len(owner), np.int64)
    for rank in range(ranks):
        local[owner == rank] = np.arange(np.sum(owner == rank))
    read = [
        [
            np.unique(src[(owner[dst] == a) & (owner[src] == b)]) if a != b else src[:0]
            for b in range(ranks)
        ]
        for a in range(ranks)
    ]
    values: list[dict[str, Any]] = []
    plans: list[dict[str, Any]] = []
    for rank in range(ranks):
        halo = np.concatenate(read[rank])
        sent = np.concatenate([read[other][rank] for other in range(ranks)])
        place = {int(node): k for k, node in enumerate(halo)}
        mine = owner[dst] == rank
        here, there = mine & (owner[src] == rank), mine & (owner[src] != rank)
        far = np.array([place[int(s)] for s in src[there]], np.int64)
        n = int(np.sum(owner == rank))
        values.append(
            {
                "N": SetVal(n),
                "R": SetVal(len(sent), {"owner": local[sent]}),
                "H": SetVal(len(halo)),
                "gl": SetVal(int(here.sum()), {"src": local[src[here]], "dst": local[dst[here]]}),
                "gr": SetVal(int(there.sum()), {"src": far, "dst": local[dst[there]]}),
                "x": x[owner == rank],
            }
        )
        to = [len(read[other][rank]) for other in range(ranks)]
        by = [len(read[rank][other]) for other in range(ranks)]
        plans.append({"halo": (to, by), "back": (by, to)})
    return values, plans
