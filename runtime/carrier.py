"""Who carries the messages of a phase: the interpreter and compiled programs ask the same of it.

Ranks run the same steps in the same order. What a plan says, how many rows go to whom, is known to
the carrier alone; a phase knows plans by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .memory import Region
from .messages import Messages

BETWEEN = " to "
"""A plan names two sets of messages, `sent to ghost` (dialects/inter/ranks.py): the rows of one
become those of the other."""
PEER = "peer"
"""The map of a row of messages to the rank at its other end, in sets that are made of messages."""


def ends_of(plan: str) -> tuple[str, str]:
    """The sets whose rows are sent, and received."""
    source, _, target = plan.partition(BETWEEN)
    return source, target


class Carrier(Protocol):
    """One rank's part. All arrays are C-contiguous views of the phase's memory, `[rows, *row]` of
    float32, float64, int32, int64 or bool, and stay where they are while a message is under way.
    Methods are called from the thread that runs the phase, in the order of its steps. After the
    first that raises none is called for the rest of the phase, which raises the same in its end:
    from then on the arrays are left alone.
    """

    def know(self, messages: str, ranks: NDArray[Any]) -> None:
        """Learn of a set of messages, by its name in plans, which rank is at the other end of each
        of its rows, int [rows] ascending: one that the program makes of those that it is given.
        Ranks learn of the same sets."""
        ...

    def start(self, plan: str, sent: NDArray[Any], received: NDArray[Any]) -> None:
        """Begin to send the rows of `sent`, sorted by their readers, and to fill `received` with
        those of others, sorted by their owners. At most one message of a plan is under way."""
        ...

    def wait(self, plan: str) -> None:
        """Return once `received` is filled and `sent` may be written again."""
        ...

    def all_reduce(self, kind: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Put the `sum`, `max`, `min` or `mul` over all ranks into each array, `[rows, *row]`: all
        ranks have as many rows."""
        ...


class PhaseCalls(Protocol):
    """The functions that the C of a phase calls, for one call after the other."""

    @property
    def address(self) -> int:
        """Where the `gnnc_comm` lies (codegen/common/comm.h), while this object lives."""
        ...

    def end(self) -> None:
        """Raises what went wrong in the call that has returned, if something did; the rows that
        the phase gives are worth nothing then."""
        ...


@runtime_checkable
class Direct(Carrier, Protocol):
    """One whose messages are carried by functions of C, with no Python between."""

    def calls(self, phase: str, messages: Messages) -> PhaseCalls | None:
        """Those for the messages of a phase on a graph; None where they need Python."""
        ...


@runtime_checkable
class Polling(Carrier, Protocol):
    """One whose messages need a processor from time to time while others are computed with.

    `poll` is the address of a C function `void poll(gnnc_comm *)` (codegen/common/comm.h), called
    between blocks of rows while a message is under way, on the thread that runs the phase and
    without Python's lock. `poll_state` is what it finds in `state`.
    """

    poll: int
    poll_state: int


@runtime_checkable
class Sharing(Carrier, Protocol):
    """One whose ranks read each other's memory where it lies.

    `ranks` is how many there are. What one publishes stays as it is until all have retired it.
    """

    ranks: int

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        """Tell where one's buffers lie; where those of each rank do, for this one to read, once all
        of them have told."""
        ...

    def places(self, plan: str, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The ranks whose rows the plan brings here, in order, and their numbers there: `rows` are
        those of one's own that it sends."""
        ...

    def retire(self, plan: str) -> None:
        """Return once no rank reads any more what was published."""
        ...


@dataclass
class Alone:
    """A world of one rank: what it sends is what it receives. Row `plans[name][i]` of what is sent
    arrives as row i; the rows of a plan without an entry keep their order. The rows arrive when
    they are awaited, not before.
    """

    plans: Mapping[str, NDArray[np.int64]] = field(default_factory=dict[str, NDArray[np.int64]])
    under_way: dict[str, tuple[NDArray[Any], NDArray[Any]]] = field(
        default_factory=dict[str, tuple[NDArray[Any], NDArray[Any]]]
    )
    ranks: int = 1

    def know(self, messages: str, ranks: NDArray[Any]) -> None:
        """There is nobody else."""

    def start(self, plan: str, sent: NDArray[Any], received: NDArray[Any]) -> None:
        """Raises ValueError where one rank cannot have sent what is received."""
        want = len(self.plans[plan]) if plan in self.plans else len(sent)
        if len(received) != want:
            raise ValueError(
                f"plan {plan!r}: {len(received)} rows arrive and {want} are sent to this rank, "
                "which is alone: give a carrier"
            )
        self.under_way[plan] = sent, received

    def wait(self, plan: str) -> None:
        sent, received = self.under_way.pop(plan)
        received[...] = sent[self.plans[plan]] if plan in self.plans else sent

    def all_reduce(self, kind: str, arrays: Sequence[NDArray[Any]]) -> None:
        """The sum of one number is that number."""

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        """See Sharing."""
        return [list(buffers)]

    def places(self, plan: str, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See Sharing."""
        found = rows[self.plans[plan]] if plan in self.plans else rows
        return np.zeros(len(found), np.int64), found

    def retire(self, plan: str) -> None:
        """See Sharing."""
