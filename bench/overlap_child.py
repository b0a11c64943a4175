"""The child process of `gnnc bench overlap`: two ranks that are threads, and the links between.

The first question, `{"model": .., "nodes": .., "edges": .., "across": .., "chunks": ..,
"features": .., "hidden": .., "classes": ..}`, draws a graph. `{"links": [null, [latency,
bandwidth], ..], "steps": n, "turns": t}` trains with each link in turns and answers the median
seconds of a step for each, and what a rank sends in a step: `bytes` and `messages`, of the rank
that sends most.
"""

from __future__ import annotations

import copy
import statistics
import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data  # pyright: ignore[reportMissingTypeStubs]
from torch_geometric.nn import (  # pyright: ignore[reportMissingTypeStubs]
    GCNConv,
    GINConv,
    SAGEConv,
    SimpleConv,
)

import gnnc
from gnnc.frontend.tools.children import Message, serve
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.peers import Messages
from gnnc.runtime.ranks.virtual import Link, Virtual

RANKS = 2
HOPS = 3
WARM = 4


class Net(nn.Module):
    """Two layers."""

    def __init__(self, model: str, widths: tuple[int, int, int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_layer(model, a, b) for a, b in pairwise(widths))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        first, second = self.layers
        return second(first(x, edges).relu(), edges)


class Spread(nn.Module):
    """A product, and sums or means over neighbours of what it gives, again and again."""

    def __init__(self, model: str, features: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, features)
        self.hops = nn.ModuleList(SimpleConv(aggr=model) for _ in range(HOPS))
        self.classes = classes

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for hop in self.hops:
            x = hop(x, edges) * 0.1
        return x[:, : self.classes]


def _net(model: str, widths: tuple[int, int, int]) -> nn.Module:
    if model in ("sum", "mean"):
        return Spread(model, widths[0], widths[-1])
    return Net(model, widths)


def _layer(model: str, a: int, b: int) -> nn.Module:
    match model:
        case "gcn":
            return GCNConv(a, b)
        case "sage":
            return SAGEConv(a, b)
        case _:
            return GINConv(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b)))


class Linked:
    """A model and a graph of two halves, with a share of the edges between them."""

    def __init__(
        self,
        model: str,
        nodes: int,
        edges: int,
        across: float,
        chunks: int,
        features: int,
        hidden: int,
        classes: int,
    ) -> None:
        torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
        self.chunks = chunks
        half = nodes // RANKS
        src, dst = torch.randint(0, half, (RANKS, edges))
        of_dst = torch.randint(0, RANKS, (edges,))
        of_src = (of_dst + (torch.rand(edges) < across)) % RANKS
        index = torch.stack([src + of_src * half, dst + of_dst * half])
        x, y = torch.randn(half * RANKS, features), torch.randint(0, classes, (half * RANKS,))
        self.data = Data(x=x, edge_index=index, y=y)
        self.owner = torch.arange(half * RANKS) // half
        self.net = _net(model, (features, hidden, classes))
        ends = index.numpy()
        reads = [ends[0, (ends[1] // half == r) & (ends[0] // half != r)] for r in range(RANKS)]
        self.halo = max(len(np.unique(x)) for x in reads)

    def timed(self, links: list[list[float] | None], steps: int, turns: int) -> Message:
        found: list[list[float]] = [[] for _ in links]
        sent = Sent()
        for _ in range(turns):
            for link, seconds in zip(links, found, strict=True):
                between = Link() if link is None else Link(*link)
                works = virtual.run(
                    RANKS, lambda c: self._steps(c, steps, sent), link=between, wrap=sent.counting
                )
                seconds += [max(of_step) for of_step in zip(*works, strict=True)]
        medians = [statistics.median(s) for s in found]
        return {"seconds": medians, "halo": self.halo, **sent.of_a_step()}

    def _steps(self, rank: Any, steps: int, sent: Sent) -> list[float]:
        """Seconds of steps; all ranks begin each together."""
        torch.set_num_threads(1)
        model, part = gnnc.distribute(
            copy.deepcopy(self.net), self.data, owner=self.owner, chunks=self.chunks
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        step = gnnc.train_step(
            lambda: F.cross_entropy(model(part.x, part.edge_index), part.y), optimizer
        )
        for _ in range(WARM):
            step()
        seconds: list[float] = []
        for _ in range(steps):
            rank.barrier()
            sent.begin(rank.rank)
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        return seconds


class Sent:
    """What each rank sends in its last step."""

    def __init__(self) -> None:
        self.bytes, self.messages = [0] * RANKS, [0] * RANKS

    def begin(self, rank: int) -> None:
        self.bytes[rank] = self.messages[rank] = 0

    def counting(self, communicator: Virtual) -> Communicator:
        inner: Any = communicator
        plain = inner.carry

        def carry(sends: Messages, *rest: Any) -> Any:
            self.bytes[inner.rank] += sum(len(x) for _, x in sends)
            self.messages[inner.rank] += len(sends)
            return plain(sends, *rest)

        inner.carry = carry
        return communicator

    def of_a_step(self) -> Message:
        return {"bytes": max(self.bytes), "messages": max(self.messages)}


def main() -> None:
    linked: Linked | None = None

    def work(question: Message) -> Message:
        nonlocal linked
        if linked is None:
            linked = Linked(**question)
            return {}
        return linked.timed(**question)

    serve(work)


if __name__ == "__main__":
    main()
