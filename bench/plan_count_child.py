"""The child process of `gnnc bench plan` that counts what ranks send each other in a step.

The question is `{"model": .., "widths": [..], "nodes": .., "edges": .., "ranks": ..}`; the answer
has, for each rank, the `bytes` and `messages` that it sends. The ranks are threads; the graph is
drawn, and so are the owners.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import gnnc
from gnnc.bench.plan_graphs import scattered
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.models import Net
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.peers import Messages
from gnnc.runtime.ranks.virtual import Virtual

PATIENCE = 600.0
"""Seconds that ranks wait for each other: they compile one after the other."""
WARM = 3


def counted(model: str, widths: Sequence[int], nodes: int, edges: int, ranks: int) -> Message:
    """The answer."""
    index, owner = scattered(nodes, edges, ranks)
    torch.manual_seed(0)
    data = Data(
        x=torch.randn(nodes, widths[0]),
        edge_index=torch.from_numpy(index),
        y=torch.randint(0, widths[-1], (nodes,)),
    )
    net, sent = Net(model, widths), Sent(ranks)

    def work(rank: Communicator) -> None:
        torch.set_num_threads(1)
        owners = torch.from_numpy(owner)
        compiled, part = gnnc.distribute(copy.deepcopy(net), data, owner=owners)
        optimizer = torch.optim.Adam(compiled.parameters(), lr=0.01)
        step = gnnc.train_step(
            lambda: F.cross_entropy(compiled(part.x, part.edge_index), part.y), optimizer
        )
        for _ in range(WARM):
            step()
        rank.barrier()
        sent.begin(rank.rank)
        step()
        sent.end(rank.rank)

    virtual.run(ranks, work, wrap=sent.counting, patience=PATIENCE)
    return {"bytes": sent.bytes, "messages": sent.messages}


class Sent:
    """Bytes and messages that each rank sends between `begin` and `end`."""

    def __init__(self, ranks: int) -> None:
        self.bytes, self.messages = [0] * ranks, [0] * ranks
        self._on = [False] * ranks

    def begin(self, rank: int) -> None:
        self._on[rank] = True

    def end(self, rank: int) -> None:
        self._on[rank] = False

    def counting(self, communicator: Virtual) -> Communicator:
        """The communicator, whose messages are counted from now on."""
        inner: Any = communicator
        plain = inner.carry

        def carry(sends: Messages, *rest: Any) -> Any:
            if self._on[inner.rank]:
                self.bytes[inner.rank] += sum(len(x) for _, x in sends)
                self.messages[inner.rank] += len(sends)
            return plain(sends, *rest)

        inner.carry = carry
        return communicator


def main() -> None:
    serve(lambda question: counted(**question))


if __name__ == "__main__":
    main()
