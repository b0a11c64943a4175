"""The child process of `gnnc bench plan` that measures what each of many ranks does in a step, as
if each had a machine of its own.

The question is a task of calibration.py with `ranks` and `steps`, and others to `pace` the machine
by; the answer has `stages`, what all ranks do from one message to the next, and the median of that
over steps: `before` and `beside`, seconds by rank that messages wait for, and that they do not; and
`bytes`, by receiver, then sender. The last stage has no bytes: what comes after all messages. The
ranks are threads. All do a step together, of which what arrives at each is kept; then one after the
other repeats it alone, with those messages, so that what it works on stays in its caches as on a
machine of its own. They do so in turns with the tasks to pace by, whose `paced` seconds the answer
has too, for the machine's speed changes. Work is the time that the processor has spent on a rank.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import gnnc
from gnnc.bench.plan_child import warm
from gnnc.bench.plan_graphs import owners_of_parts, planted
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.models import Net
from gnnc.frontend.torch.ranks import given_numbers
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.alone import Nothing
from gnnc.runtime.ranks.board import Note
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.peers import Messages
from gnnc.runtime.ranks.rows import Bytes
from gnnc.runtime.ranks.virtual import Virtual
from gnnc.runtime.ranks.waiting import Pending

PATIENCE = 600.0
"""Seconds that ranks wait for each other: they compile one after the other."""
WARM = 5
"""Steps before those that are kept."""
TURNS = 4
"""Of each rank, in which it does some steps."""
AGAIN = 2
"""Steps with which a turn begins, and which are not timed: others' rows are in the caches."""


def measured(
    model: str,
    widths: Sequence[int],
    nodes: int,
    edges: int,
    across: float,
    ranks: int,
    steps: int,
    pace: Sequence[Message],
) -> Message:
    """The answer."""
    paced = Paced(pace)
    torch.manual_seed(0)
    data = Data(
        x=torch.randn(nodes, widths[0]),
        edge_index=torch.from_numpy(planted(nodes, edges, across, ranks)),
        y=torch.randint(0, widths[-1], (nodes,)),
    )
    owner = torch.from_numpy(owners_of_parts(nodes, ranks))
    net, watched = Net(model, widths), Watched(ranks, paced)

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
        return watched.spells(rank, step, steps)

    # what a rank recalls is of another step than what it is asked, and so are Adam's numbers
    with patch.object(given_numbers, "checksum", lambda numbers: 0):
        found = virtual.run(ranks, work, wrap=watched.watching, patience=PATIENCE)
    return {"stages": stages(found), "paced": paced.seconds()}


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


class Paced:
    """Trainings that tell how fast the machine is, in a thread that is no rank's."""

    def __init__(self, tasks: Sequence[Message]) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._found: list[list[float]] = [[] for _ in tasks]
        self._steps = self._thread.submit(lambda: [self._warm(task) for task in tasks]).result()

    def turn(self) -> None:
        """Some steps of each."""
        self._thread.submit(self._turn).result()

    def seconds(self) -> list[float]:
        """Of a step of each: the median."""
        return [float(np.median(found)) for found in self._found]

    def _warm(self, task: Message) -> Callable[[], Any]:
        torch.set_num_threads(1)
        return warm(task)

    def _turn(self) -> None:
        for step, found in zip(self._steps, self._found, strict=True):
            for again in range(1 + AGAIN):
                start = time.thread_time()
                step()
                if again:
                    found.append(time.thread_time() - start)


class Watched:
    """Communicators that tell what lies between their messages. Who works holds the baton."""

    def __init__(self, ranks: int, paced: Paced) -> None:
        self._baton, self._paced = threading.Lock(), paced
        self._spells: list[list[Spell]] = [[] for _ in range(ranks)]
        self._since = [0.0] * ranks
        self._carries: list[Carries | None] = [None] * ranks

    def spells(self, rank: Communicator, step: Callable[[], Any], count: int) -> list[list[Spell]]:
        """Those of each of `count` steps a turn, which repeat one that all ranks do together."""
        here = rank.rank
        kept = self._carries[here] = Kept()
        step()
        found: list[list[Spell]] = []
        for _ in range(TURNS):
            with self._baton:
                turn = [self._alone(here, step, kept) for _ in range(AGAIN + count)]
                self._paced.turn()
            found += turn[AGAIN:]
            self._carries[here] = None  # a barrier is messages as well
            rank.barrier()
        return found

    def _alone(self, rank: int, step: Callable[[], Any], kept: Kept) -> list[Spell]:
        """Those of one step, with the messages of another."""
        self._carries[rank] = Recalled(iter(kept.messages), self, rank)
        found = self._spells[rank] = list[Spell]()
        self._since[rank] = time.thread_time()
        step()
        found.append(Spell(self.lap(rank)))
        return found

    def lap(self, rank: int) -> float:
        """Seconds since the last one."""
        now = time.thread_time()
        found, self._since[rank] = now - self._since[rank], now
        return found

    def began(self, rank: int, sends: Messages) -> Spell:
        """A spell that a rank ends by messages to others."""
        spell = Spell(self.lap(rank), sent={r: len(x) for r, x in sends})
        self._spells[rank].append(spell)
        return spell

    def watching(self, communicator: Virtual) -> Communicator:
        """The communicator, whose messages are kept, or recalled, where `spells` runs."""
        inner: Any = communicator
        plain = inner.carry

        def carry(sends: Messages, receives: Messages, *rest: Any) -> Any:
            carries = self._carries[inner.rank]
            if carries is None:
                return plain(sends, receives, *rest)
            return carries.carry(inner.note, sends, receives, lambda: plain(sends, receives, *rest))

        inner.carry = carry
        return communicator


class Carries(Protocol):
    """What becomes of messages; `plain` starts them as without it."""

    def carry(
        self, note: Note, sends: Messages, receives: Messages, plain: Callable[[], Pending]
    ) -> Pending: ...


class Kept:
    """Messages that go their way, and what each rank received of them, in the order of their start
    and of senders."""

    def __init__(self) -> None:
        self.messages: list[list[Bytes]] = []

    def carry(
        self, note: Note, sends: Messages, receives: Messages, plain: Callable[[], Pending]
    ) -> Pending:
        arrived = list[Bytes]()
        self.messages.append(arrived)
        pending: Any = plain()
        wait = pending.wait

        def keep() -> None:
            wait()
            arrived.extend(x.copy() for _, x in receives)

        pending.wait = keep
        return pending


class Recalled:
    """Messages that go nowhere, and bring what others have brought."""

    def __init__(self, messages: Iterator[list[Bytes]], watched: Watched, rank: int) -> None:
        self.messages, self.watched, self.rank = messages, watched, rank

    def carry(
        self, note: Note, sends: Messages, receives: Messages, plain: Callable[[], Pending]
    ) -> Pending:
        spell = self.watched.began(self.rank, sends)
        pairs = zip((x for _, x in receives), next(self.messages), strict=True)
        return _Arrived(note, list(pairs), self.watched, spell)


class _Arrived(Nothing):
    """Messages that are there when they are awaited."""

    def __init__(
        self, note: Note, pairs: list[tuple[Bytes, Bytes]], watched: Watched, spell: Spell
    ) -> None:
        super().__init__("recalled", note)
        self.pairs, self.watched, self.spell = pairs, watched, spell

    def wait(self) -> None:
        self.spell.beside = self.watched.lap(self.note.rank)
        for into, arrived in self.pairs:
            into[...] = arrived
        super().wait()
        self.watched.lap(self.note.rank)


def main() -> None:
    serve(lambda question: measured(**question))


if __name__ == "__main__":
    main()
