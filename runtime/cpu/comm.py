"""How the C of a phase calls a carrier: the `gnnc_comm` of codegen/openmp/comm.h, of functions
that ctypes makes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import ClassVar

from ..carrier import Carrier, Polling
from ..messages import Messages

_Start = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_Wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_AllReduce = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)
)


class Functions(ctypes.Structure):
    """`gnnc_comm`."""

    _fields_: ClassVar = [
        ("start", _Start),
        ("wait", _Wait),
        ("all_reduce", _AllReduce),
        ("poll", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("failed", ctypes.c_int32),
    ]


class Call:
    """The functions for one call of a phase. They take Python's lock, which is free while C runs,
    and keep what a carrier raises: an exception does not cross C.
    """

    def __init__(self, phase: str, messages: Messages, carrier: Carrier) -> None:
        self.phase = phase
        self.messages = messages
        self.carrier = carrier
        self.error: BaseException | None = None
        polls = isinstance(carrier, Polling)
        self.functions = Functions(
            _Start(self._start),
            _Wait(self._wait),
            _AllReduce(self._all_reduce),
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

    def _start(self, _: int, k: int, source: int | None, target: int | None) -> None:
        move = self.messages.moves[k]
        self._try(
            f"move {k}, the start of plan {move.plan!r}",
            lambda: self.carrier.start(move.plan, move.sent.at(source), move.received.at(target)),
        )

    def _wait(self, _: int, k: int) -> None:
        plan = self.messages.moves[k].plan
        self._try(f"move {k}, the wait for plan {plan!r}", lambda: self.carrier.wait(plan))

    def _all_reduce(self, _: int, k: int, given: ctypes.Array[ctypes.c_void_p]) -> None:
        reduction = self.messages.reductions[k]
        # indexing gives an int of a void *, None for NULL
        arrays = [rows.at(given[i]) for i, rows in enumerate(reduction.buffers)]
        self._try(
            f"reduction {k}, a {reduction.kind} over all ranks",
            lambda: self.carrier.all_reduce(reduction.kind, arrays),
        )

    def _try(self, where: str, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # whatever it is, it goes on after the phase
            error.add_note(f"in @{self.phase}: {where}")
            self.error = error
            self.functions.failed = 1
