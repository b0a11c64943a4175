"""How the C of a phase calls a carrier: the `gnnc_comm` of codegen/common/comm.h, of functions that
ctypes makes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .carrier import Carrier, Polling, Sharing
from .memory import Region
from .messages import Messages, Publication, Rows

_RANK_BITS = 48
"""Where the number of a rank begins in the place of a row."""

_Start = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_Wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_AllReduce = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)
)
_Publish = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)


class Functions(ctypes.Structure):
    """`gnnc_comm`."""

    _fields_: ClassVar = [
        ("start", _Start),
        ("wait", _Wait),
        ("all_reduce", _AllReduce),
        ("publish", _Publish),
        ("retire", _Wait),
        ("poll", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("failed", ctypes.c_int32),
    ]


class Reach(Protocol):
    """How a carrier, which is on the host, comes to the rows of a phase."""

    def outgoing(self, rows: Rows, address: int | None) -> NDArray[Any]:
        """Rows as they are now."""
        ...

    def incoming(self, rows: Rows, address: int | None) -> NDArray[Any]:
        """Where a carrier puts what arrives, until `arrived`."""
        ...

    def arrived(self, array: NDArray[Any], address: int | None) -> None:
        """What lies in an array of `incoming` or `outgoing` is there for the phase."""
        ...

    def write(self, array: NDArray[Any], address: int | None) -> None:
        """Put an array of anybody's there."""
        ...

    def settle(self) -> None:
        """Return when all that the phase has begun so far is done."""
        ...

    def aside(self) -> AbstractContextManager[Any]:
        """While a carrier waits for other ranks."""
        ...

    def lend(self, regions: Sequence[Region]) -> None:
        """From here on the phase may read there."""
        ...


class HostReach:
    """Of a phase whose rows lie where its carrier is."""

    def outgoing(self, rows: Rows, address: int | None) -> NDArray[Any]:
        """See Reach."""
        return rows.at(address)

    def incoming(self, rows: Rows, address: int | None) -> NDArray[Any]:
        """See Reach."""
        return rows.at(address)

    def arrived(self, array: NDArray[Any], address: int | None) -> None:
        """See Reach."""

    def write(self, array: NDArray[Any], address: int | None) -> None:
        """See Reach."""
        if array.nbytes:
            ctypes.memmove(address or 0, array.ctypes.data, array.nbytes)

    def settle(self) -> None:
        """See Reach."""

    def aside(self) -> AbstractContextManager[Any]:
        """See Reach."""
        return nullcontext()

    def lend(self, regions: Sequence[Region]) -> None:
        """See Reach."""


class Call:
    """The functions for one call of a phase. They take Python's lock, which is free while C runs,
    and keep what a carrier raises: an exception does not cross C.
    """

    def __init__(
        self, phase: str, messages: Messages, carrier: Carrier, reach: Reach | None = None
    ) -> None:
        self.phase = phase
        self.messages = messages
        self.carrier = carrier
        self.reach = reach or HostReach()
        self.error: BaseException | None = None
        self.arriving: dict[int, tuple[NDArray[Any], int | None]] = {}
        polls = isinstance(carrier, Polling)
        self.functions = Functions(
            _Start(self._start),
            _Wait(self._wait),
            _AllReduce(self._all_reduce),
            _Publish(self._publish),
            _Wait(self._retire),
            carrier.poll if polls else None,
            carrier.poll_state if polls else None,
            0,
        )

    @property
    def address(self) -> int:
        """Where the functions lie, while this object lives."""
        return ctypes.addressof(self.functions)

    def end(self) -> None:
        """Raises what the carrier raised, if it did, with a note on where that was; the rows
        that the phase gives are worth nothing then."""
        if self.error is not None:
            raise self.error

    # ------------------------------------------------------------ messages

    def _start(self, _: int, k: int, source: int | None, target: int | None) -> None:
        move = self.messages.moves[k]

        def start() -> None:
            sent = self.reach.outgoing(move.sent, source)
            received = self.reach.incoming(move.received, target)
            self.arriving[k] = received, target
            with self.reach.aside():
                self.carrier.start(move.plan, sent, received)

        self._try(f"move {k}, the start of plan {move.plan!r}", start)

    def _wait(self, _: int, k: int) -> None:
        plan = self.messages.moves[k].plan

        def wait() -> None:
            with self.reach.aside():
                self.carrier.wait(plan)
            self.reach.arrived(*self.arriving.pop(k))

        self._try(f"move {k}, the wait for plan {plan!r}", wait)

    def _all_reduce(self, _: int, k: int, given: ctypes.Array[ctypes.c_void_p]) -> None:
        reduction = self.messages.reductions[k]

        def reduce() -> None:
            # indexing gives an int of a void *, None for NULL
            addresses = [given[i] for i in range(len(reduction.buffers))]
            pairs = zip(reduction.buffers, addresses, strict=True)
            arrays = [self.reach.outgoing(rows, at) for rows, at in pairs]
            with self.reach.aside():
                self.carrier.all_reduce(reduction.kind, arrays)
            for array, at in zip(arrays, addresses, strict=True):
                self.reach.arrived(array, at)

        self._try(f"reduction {k}, a {reduction.kind} over all ranks", reduce)

    # ------------------------------------------------------------ rows that others read

    def _publish(
        self,
        _: int,
        k: int,
        given: ctypes.Array[ctypes.c_void_p],
        peers: ctypes.Array[ctypes.c_void_p],
        places: int | None,
    ) -> None:
        publication = self.messages.publications[k]

        def publish() -> None:
            carrier, sent = self.carrier, publication.numbers
            assert isinstance(carrier, Sharing)  # PhaseOnGraph asks for one
            own = [Region(given[i] or 0, size) for i, size in enumerate(publication.bytes)]
            self.reach.settle()
            with self.reach.aside():
                every = carrier.publish(publication.plan, own)
                found = None
                if sent is not None and not publication.placed:
                    found = carrier.places(publication.plan, sent)
            if found is not None:
                owners, numbers = (x.astype(np.uint64) for x in found)
                self.reach.write(owners << np.uint64(_RANK_BITS) | numbers, places)
                publication.placed = True
            publication.shown = every  # what is in no publication any more is closed
            addresses = [[region.address for region in of_rank] for of_rank in every]
            self._tell(publication, np.array(addresses, np.int64), peers)
            self.reach.lend([region for of_rank in every for region in of_rank])

        self._try(f"publication {k}, of {publication.said}", publish)

    def _tell(
        self,
        publication: Publication,
        addresses: NDArray[np.int64],
        peers: ctypes.Array[ctypes.c_void_p],
    ) -> None:
        """Put where a buffer lies on each rank, `[ranks, buffers]`, in its table, unless the last
        call has."""
        if np.array_equal(publication.known, addresses):
            return
        for i, table in enumerate(addresses.T.copy()):
            self.reach.write(table, peers[i])
        publication.known = addresses

    def _retire(self, _: int, k: int) -> None:
        publication = self.messages.publications[k]

        def retire() -> None:
            assert isinstance(self.carrier, Sharing)
            self.reach.settle()
            with self.reach.aside():
                self.carrier.retire(publication.plan)

        self._try(f"the end of publication {k}, of {publication.said}", retire)

    def _try(self, where: str, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # whatever it is, it goes on after the phase
            error.add_note(f"in @{self.phase}: {where}")
            self.error = error
            self.functions.failed = 1
