"""What phases exchange through rings, by C alone (ring_calls.c): a start is a copy of rows into
rings, a wait one out of them. It is laid out here once for a phase on a graph. Python comes in
where a rank waits for long, and where something is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any, ClassVar, get_args

import numpy as np

from ..carrier import ends_of
from ..comm import Functions
from ..messages import Messages, Move, Reduction
from .communicator import Kind, kind_of
from .peers import Channel, tag_of_reduction
from .rings import TYPES, Message, RingPending, Rings, key_of, library
from .rows import checked_segments
from .waiting import EAGER_SECONDS, Pending

_WORD = 8
"""Numbers of each buffer of a reduction begin at multiples of so many bytes."""
_TYPES = {np.dtype(t): k for k, t in enumerate(("f4", "f8", "i4", "i8"))}
assert len(_TYPES) == len(TYPES)


class _Move(ctypes.Structure):
    """`gnnc_move`."""

    _fields_: ClassVar = [
        ("key", ctypes.c_int64),
        ("receives", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("ranks", ctypes.c_void_p),
        ("begins", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("own_from", ctypes.c_int64),
        ("own_to", ctypes.c_int64),
        ("own_size", ctypes.c_int64),
        ("messages", ctypes.c_void_p),
    ]


class _Reduction(ctypes.Structure):
    """`gnnc_reduction`."""

    _fields_: ClassVar = [
        ("key", ctypes.c_int64),
        ("buffers", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("kind", ctypes.c_int),
        ("types", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("begins", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("messages", ctypes.c_void_p),
    ]


_Waited = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)


class _Functions(ctypes.Structure):
    """`gnnc_ring_calls`."""

    _fields_: ClassVar = [
        ("comm", Functions),
        ("rings", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("since", ctypes.c_void_p),
        ("eager", ctypes.c_double),
        ("moves", ctypes.c_void_p),
        ("reductions", ctypes.c_void_p),
        ("waited", _Waited),
    ]


def can_carry(messages: Messages) -> bool:
    """Whether the messages of a phase need no Python."""
    reduced = {rows.dtype for r in messages.reductions for rows in r.buffers}
    return not messages.publications and reduced <= _TYPES.keys()


class RingCalls:
    """The functions for the calls of a phase, one at a time. `counts` are the numbers of rows for,
    or from, each rank by the name of a set of messages.

    Raises:
        ValueError: the rows of a message are not as many as ranks send or receive.
    """

    def __init__(
        self, phase: str, messages: Messages, rings: Rings, counts: Mapping[str, list[int]]
    ) -> None:
        self.phase = phase
        self.rings = rings
        self.error: BaseException | None = None
        self._keep: list[Any] = []
        self._pending: dict[tuple[bool, int], Pending] = {}
        moves = [self._move(k, m, counts) for k, m in enumerate(messages.moves)]
        reductions = [self._reduction(k, r) for k, r in enumerate(messages.reductions)]
        note = self.rings.note
        self._functions = _Functions(
            rings=self.rings.rings,
            rank=self.rings.rank,
            since=note.board.place_of_progress(self.rings.rank),
            eager=EAGER_SECONDS,
            moves=self._place((_Move * len(moves))(*moves)),
            reductions=self._place((_Reduction * len(reductions))(*reductions)),
            waited=_Waited(self._waited),
        )
        library().gnnc_ring_calls_fill(self.address)

    @property
    def address(self) -> int:
        """See PhaseCalls."""
        return ctypes.addressof(self._functions)

    def end(self) -> None:
        """See PhaseCalls."""
        if (error := self.error) is not None:
            self.error, self._functions.comm.failed = None, 0
            raise error

    def _place(self, array: ctypes.Array[Any]) -> int:
        """Where an array lies, which lives as long as this object."""
        self._keep.append(array)
        return ctypes.addressof(array)

    def _numbers(self, numbers: Sequence[int]) -> int:
        return self._place((ctypes.c_int64 * len(numbers))(*numbers))

    def _messages(self, key: tuple[bool, int], name: str, ranks: Sequence[int]) -> int:
        messages = (Message * len(ranks))()
        self._pending[key] = RingPending(name, self.rings.note, self.rings.rings, messages, ranks)
        return self._place(messages)

    def _move(self, k: int, move: Move, counts: Mapping[str, list[int]]) -> _Move:
        arrays = [np.empty(rows.shape, rows.dtype) for rows in (move.sent, move.received)]
        source, target = (counts[name] for name in ends_of(move.plan))
        segments = checked_segments(arrays[0], source, arrays[1], target, self.rings)
        sent, received = (_Segments([len(s) for s in each], self.rings.rank) for each in segments)
        ranks = [*received.ranks, *sent.ranks]
        return _Move(
            key=key_of(Channel.EXCHANGE, 0),
            receives=len(received.ranks),
            count=len(ranks),
            ranks=self._numbers(ranks),
            begins=self._numbers([*received.begins, *sent.begins]),
            sizes=self._numbers([*received.sizes, *sent.sizes]),
            own_from=sent.own,
            own_to=received.own,
            own_size=sent.own_size,
            messages=self._messages((False, k), f"exchange {move.plan!r}", ranks),
        )

    def _reduction(self, k: int, reduction: Reduction) -> _Reduction:
        kind = kind_of(reduction.kind)
        counts = [prod(rows.shape) for rows in reduction.buffers]
        words = [
            -(-n * rows.dtype.itemsize // _WORD)
            for n, rows in zip(counts, reduction.buffers, strict=True)
        ]
        begins = [_WORD * n for n in accumulate(words, initial=0)]
        others = [r for r in range(self.rings.size) if r != self.rings.rank]
        types = [_TYPES[rows.dtype] for rows in reduction.buffers]
        table = (ctypes.c_uint8 * (begins[-1] * self.rings.size))()
        return _Reduction(
            key=key_of(Channel.COLLECTIVE, tag_of_reduction(kind)),
            buffers=len(counts),
            bytes=begins[-1],
            kind=get_args(Kind).index(kind),
            types=self._place((ctypes.c_int * len(types))(*types)),
            numbers=self._numbers(counts),
            begins=self._numbers(begins),
            table=self._place(table),
            messages=self._messages((True, k), f"all-reduce ({kind})", others * 2),
        )

    def _waited(self, is_reduction: int, k: int) -> None:
        """For a message that did not come at once."""
        try:
            self._pending[bool(is_reduction), k].wait()
        except BaseException as error:  # whatever it is, it goes on after the phase
            what = "reduction" if is_reduction else "move"
            error.add_note(f"in @{self.phase}: {what} {k}")
            self.error = error
            self._functions.comm.failed = 1
            self.rings.keep(self)


class _Segments:
    """Rows for ranks, or from them, by the bytes of each: those of `own` apart."""

    def __init__(self, sizes: Sequence[int], own: int) -> None:
        starts = list(accumulate(sizes, initial=0))
        self.ranks = [r for r, n in enumerate(sizes) if n and r != own]
        self.begins = [starts[r] for r in self.ranks]
        self.sizes = [sizes[r] for r in self.ranks]
        self.own, self.own_size = starts[own], sizes[own]
