"""What ranks can say to each other.

A communicator belongs to one rank, which calls it from one thread at a time. Every rank calls the
collective methods (all but `start`, `stage`) in the same order. All of them raise Stuck or
RankFailed where others do not come.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, get_args

from numpy.typing import NDArray

Kind = Literal["sum", "max", "min", "mul"]
"""How the arrays of an all-reduce are combined."""


def kind_of(name: str) -> Kind:
    """The kind of that name; there is one."""
    return next(kind for kind in get_args(Kind) if kind == name)


class Exchange(Protocol):
    """An exchange under way."""

    def poll(self) -> bool:
        """Moves it on without waiting; True once it is complete. Between polls messages may rest.

        Raises:
            ValueError: a peer sends another number of bytes than this rank expects.
        """
        ...

    def wait(self) -> None:
        """Waits until it is complete: what is received is there, what is sent may be overwritten.

        Raises:
            ValueError: as `poll`.
            Stuck, RankFailed: what is missing does not come.
        """
        ...


class Reduction(Protocol):
    """An all-reduce under way."""

    def poll(self) -> bool:
        """Moves it on without waiting; True once it is complete."""
        ...

    def wait(self) -> NDArray[Any]:
        """Waits until it is complete; a new array of the shape and dtype given."""
        ...


class Communicator(Protocol):
    """One rank among `size`; `rank` counts from 0. With `shares_memory` an address of one rank is
    the same place for all. `on_one_machine`: messages are copies that the ranks' own processors
    make, and not beside other work."""

    rank: int
    size: int
    shares_memory: bool
    on_one_machine: bool

    def start(
        self,
        sent: NDArray[Any],
        send_counts: Sequence[int],
        received: NDArray[Any],
        receive_counts: Sequence[int],
        tag: int,
    ) -> Exchange:
        """Starts to send and to receive rows.

        `sent` has the rows for rank 0, then those for rank 1, .. (its own too: they are copied);
        `send_counts[r]` is the number of rows for rank r. `received` takes rows of the same shape
        and dtype, those of rank 0 first; `receive_counts[r]` is the number that rank r sends here,
        and may be 0. Both arrays are contiguous, are not looked at, and not written to, until the
        exchange is complete. Exchanges between two ranks with the same `tag`, 0 to 32767, are
        matched in the order in which they start.

        Raises:
            ValueError: arrays or counts do not fit each other, naming the argument.
            TypeError: rows of Python objects.
        """
        ...

    def all_reduce(self, array: NDArray[Any], kind: Kind) -> NDArray[Any]:
        """The arrays of all ranks combined, number by number, in the order of ranks: the same bits
        on every rank and in every run. All ranks give the same shape and dtype (integers or
        floats), which a new array has.

        Raises:
            ValueError: another kind, or arrays of different sizes.
            TypeError: another dtype.
        """
        ...

    def start_all_reduce(self, array: NDArray[Any], kind: Kind) -> Reduction:
        """`all_reduce` that goes on beside other work; it keeps no hold of `array`."""
        ...

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """What `root` gives, on every rank (a copy, by pickle)."""
        ...

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """On `root` what all ranks give, by rank (copies, by pickle); None on the others."""
        ...

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        ...

    def agree(self, what: str, value: str) -> None:
        """Makes sure that all ranks have the same value of `what`; only hashes are sent.

        Raises:
            Disagreement: they have not: on every rank, with the same message, which names those
                that differ from most.
        """
        ...

    def stage(self, name: str, patience: float | None = None) -> AbstractContextManager[None]:
        """Notes what this rank does, for messages on ranks that fail or are stuck. A rank that is
        waited for may go without progress (a call of a communicator, a new stage) for so many
        seconds as its stage has `patience`; None: as the stage around it.
        """
        ...

    def until_call(self, name: str, patience: float) -> AbstractContextManager[None]:
        """A stage that the next `begin_call` ends, if there is one: what comes before the call."""
        ...

    def begin_call(self) -> None:
        """Counts a call of a program of all ranks. Where no stage says what this rank does, it is
        this from here on: `call 17`.
        """
        ...
