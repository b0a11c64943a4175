"""The child process of `gnnc bench plan` that measures what each of many ranks does in a step, as
if each had a machine of its own.

The question is a task of calibration.py with `ranks` and `steps`; the answer has `stages`, what all
ranks do from one message to the next, and the median of that over steps: `before` and `beside`,
seconds by rank that messages wait for, and that they do not; and `bytes`, by receiver, then sender.
The last stage has no bytes: what comes after all messages. The ranks are threads, of which one
works at a time; their work is the time that the processor has spent on them.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import gnnc
from gnnc.bench.plan_graphs import owners_of_parts, planted
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.models import Net
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.peers import Messages
from gnnc.runtime.ranks.virtual import Virtual
from gnnc.runtime.ranks.waiting import Pending

PATIENCE = 600.0
"""Seconds that ranks wait for each other: they compile one after the other."""
WARM = 5


def measured(
    model: str,
    widths: Sequence[int],
    nodes: int,
    edges: int,
    across: float,
    ranks: int,
    steps: int,
) -> Message:
    """The answer."""
    torch.manual_seed(0)
    data = Data(
        x=torch.randn(nodes, widths[0]),
        edge_index=torch.from_numpy(planted(nodes, edges, across, ranks)),
        y=torch.randint(0, widths[-1], (nodes,)),
    )
    owner = torch.from_numpy(owners_of_parts(nodes, ranks))
    net, watched = Net(model, widths), Watched(ranks)

    def work(rank: Communicator) -> list[list[Spell]]:
        torch.set_num_threads(1)
        compiled, part = gnnc.distribute(copy.deepcopy(net), data, owner=owner)
        optimizer = torch.optim.Adam(compiled.parameters(), lr=0.01)
        step = gnnc.train_step(
            lambda: F.cross_entropy(compiled(part.x, part.edge_index), part.y),
            optimizer,
            remote_reads=False,  # as processes have it
        )
        for _ in range(WARM):
            step()
        return [watched.spells(rank, step) for _ in range(steps)]

    return {"stages": stages(virtual.run(ranks, work, wrap=watched.watching, patience=PATIENCE))}


@dataclass
class Spell:
    """What a rank does until it has what others send: seconds of work before and beside these
    messages, and bytes that it sends, by rank."""

    before: float
    beside: float = 0.0
    sent: dict[int, int] = field(default_factory=dict[int, int])


def stages(every: Sequence[Sequence[Sequence[Spell]]]) -> list[Message]:
    """The answer's, of the spells of each step of each rank.

    Raises:
        ValueError: ranks, or steps, have other numbers of messages.
    """
    counts = {len(step) for rank in every for step in rank}
    if len(counts) != 1:
        raise ValueError(f"steps of ranks have {sorted(counts)} messages, and not one number")
    ranks, out = len(every), list[Message]()
    for place in range(counts.pop()):
        size = np.zeros((ranks, ranks))
        for sender, steps in enumerate(every):
            for receiver, count in steps[0][place].sent.items():
                size[receiver, sender] = count
        before, beside = (
            [float(np.median([getattr(step[place], what) for step in steps])) for steps in every]
            for what in ("before", "beside")
        )
        out.append({"before": before, "beside": beside, "bytes": size.tolist()})
    return out


class Watched:
    """Communicators that tell what lies between their messages. Who works holds the baton."""

    def __init__(self, ranks: int) -> None:
        self._baton = threading.Lock()
        self._spells: list[list[Spell] | None] = [None] * ranks
        self._since = [0.0] * ranks

    def spells(self, rank: Communicator, step: Any) -> list[Spell]:
        """Those of one step."""
        rank.barrier()
        found = self._spells[rank.rank] = list[Spell]()
        with self._baton:
            self._since[rank.rank] = time.thread_time()
            step()
            found.append(Spell(self._lap(rank.rank)))
        self._spells[rank.rank] = None
        return found

    def _lap(self, rank: int) -> float:
        """Seconds since the last one."""
        now = time.thread_time()
        found, self._since[rank] = now - self._since[rank], now
        return found

    def watching(self, communicator: Virtual) -> Communicator:
        """The communicator, whose messages end spells from now on."""
        inner: Any = communicator
        plain = inner.carry

        def carry(sends: Messages, *rest: Any) -> Any:
            spells = self._spells[inner.rank]
            if spells is None:
                return plain(sends, *rest)
            spell = Spell(self._lap(inner.rank), sent={r: len(x) for r, x in sends})
            spells.append(spell)
            pending = plain(sends, *rest)
            self._lap(inner.rank)
            return self._awaited(inner.rank, spell, pending)

        inner.carry = carry
        return communicator

    def _awaited(self, rank: int, spell: Spell, pending: Pending) -> Pending:
        """Messages, while which are awaited others work."""
        inner: Any = pending
        plain = inner.wait

        def wait() -> None:
            spell.beside = self._lap(rank)
            self._baton.release()
            try:
                plain()
            finally:
                self._baton.acquire()
            self._lap(rank)

        inner.wait = wait
        return pending


def main() -> None:
    serve(lambda question: measured(**question))


if __name__ == "__main__":
    main()
