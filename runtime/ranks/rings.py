"""Ranks on one machine: messages through rings of bytes in memory that they share (rings.c)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

from ..cpu import toolchain
from .board import Note
from .communicator import Kind
from .mpi import Mpi
from .peers import Channel, Messages, Peers
from .rows import Bytes
from .waiting import Pending

SMALLEST, LARGEST, TOGETHER = 4 << 10, 1 << 20, 16 << 20
"""Bytes of a ring at least and at most, and of all rings where these bounds let them: rings that
stay in a cache are not memory's business."""
PUMP_SECONDS = 2e-5
"""A message that arrives is read on while the next of its bytes come so soon."""
TYPES = ("f32", "f64", "i32", "i64")
"""Of the numbers that phases reduce over ranks, as C numbers them."""


class Message(ctypes.Structure):
    """`gnnc_message`: one side of a message."""

    _fields_: ClassVar = [
        ("next", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("key", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("moved", ctypes.c_int64),
        ("other_size", ctypes.c_int64),
        ("done", ctypes.c_int64),
    ]


def capacity(size: int) -> int:
    """The bytes of a ring among `size` ranks, a power of two."""
    each = TOGETHER // (size * size)
    return min(max(1 << each.bit_length() - 1 if each else 0, SMALLEST), LARGEST)


def memory_bytes(size: int) -> int:
    """How much memory `size` ranks have to share."""
    return library().gnnc_rings_bytes(size, capacity(size))


def source() -> str:
    """The C text of rings, and of the calls of phases (ring_calls.py)."""
    runtime = Path(__file__).parents[1]
    before = ("ranks/rings.c", "../codegen/common/comm.h")
    behind = ("standalone/mpi/combine.h", "ranks/ring_calls.c")
    enumerations = [_enumeration("Kind", get_args(Kind)), _enumeration("Type", TYPES)]
    texts = [(runtime / name).read_text() for name in (*before, *behind)]
    return "\n".join([*texts[:2], *enumerations, *texts[2:]])


def _enumeration(name: str, members: Sequence[str]) -> str:
    return f"typedef enum {{ {', '.join(members).upper()} }} {name};"


@functools.cache
def library() -> ctypes.CDLL:
    """It, compiled."""
    found = toolchain.load(toolchain.compile_source(source()))
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    found.gnnc_rings_bytes.argtypes = [number, number]
    found.gnnc_rings_bytes.restype = number
    found.gnnc_rings_open.argtypes = [pointer, number, number, number]
    found.gnnc_rings_open.restype = pointer
    found.gnnc_ring_calls_fill.argtypes = [pointer]
    found.gnnc_ring_calls_fill.restype = None
    for function in (found.gnnc_rings_send, found.gnnc_rings_receive):
        function.argtypes = [pointer, number, pointer, number, number, pointer]
        function.restype = None
    found.gnnc_rings_wait.argtypes = [pointer, pointer, number, ctypes.c_double]
    found.gnnc_rings_wait.restype = number
    found.gnnc_rings_left.argtypes = [pointer, number]
    found.gnnc_rings_left.restype = number
    return found


class RingPending(Pending):
    """Messages of a rank, with the rank at the other end of each. `memory` lives as long as they
    do."""

    def __init__(
        self,
        name: str,
        note: Note,
        rings: int,
        messages: ctypes.Array[Message],
        ranks: Sequence[int],
        memory: Sequence[Bytes] = (),
    ) -> None:
        super().__init__(name, note)
        self._rings, self._messages, self._ranks, self._memory = rings, messages, ranks, memory

    def poll(self) -> bool:
        place, count = ctypes.addressof(self._messages), len(self._messages)
        if not library().gnnc_rings_wait(self._rings, place, count, PUMP_SECONDS):
            return False
        for message, rank in zip(self._messages, self._ranks, strict=True):
            if message.other_size >= 0:
                raise ValueError(
                    f"{self.name}: rank {rank} sends {message.other_size} bytes to rank "
                    f"{self.note.rank}, which expects {message.size}"
                )
        return True

    def missing(self) -> Sequence[int]:
        pairs = zip(self._messages, self._ranks, strict=True)
        return sorted({rank for message, rank in pairs if not message.done})

    def left(self) -> int:
        return library().gnnc_rings_left(ctypes.addressof(self._messages), len(self._messages))


class Rings(Peers):
    """A rank among those that share `memory`: the address of `memory_bytes(size)` zeros, a multiple
    of 64, which stay there while any of them does. What phases exchange goes on without Python
    (ring_calls.py).

    Raises:
        MemoryError: there is no memory for what the rank keeps of its rings.
        CompileError, NoCompiler: from the tool chain.
    """

    shares_memory = False

    def __init__(self, rank: int, size: int, memory: int, note: Note) -> None:
        super().__init__(rank, size, note)
        self.rings: int = library().gnnc_rings_open(memory, rank, size, capacity(size))
        if not self.rings:
            raise MemoryError(f"no memory for the rings of rank {rank} of {size}")
        # messages stay while their rings may move them on, though who waited for them was stopped
        self._under_way: list[RingPending] = []
        self._kept: list[Any] = []

    def carry(
        self, sends: Messages, receives: Messages, channel: Channel, tag: int, name: str
    ) -> Pending:
        ranks = [rank for rank, _ in (*receives, *sends)]
        memory = [array for _, array in (*receives, *sends)]
        messages = (Message * len(ranks))()
        key, lib = key_of(channel, tag), library()
        for k, (rank, array) in enumerate(zip(ranks, memory, strict=True)):
            function = lib.gnnc_rings_receive if k < len(receives) else lib.gnnc_rings_send
            message = ctypes.addressof(messages) + k * ctypes.sizeof(Message)
            function(self.rings, rank, message, key, len(array), array.ctypes.data)
        pending = RingPending(name, self.note, self.rings, messages, ranks, memory)
        self._under_way = [p for p in self._under_way if p.left()]
        self._under_way.append(pending)
        return pending

    def keep(self, owner: Any) -> None:
        """Has an object live as long as this rank: memory, or messages that nobody waits for."""
        self._kept.append(owner)


def among(ranks: Mpi) -> Rings:
    """The rings of a rank among processes of one machine, which MPI has started together."""
    memory = ranks.shared(memory_bytes(ranks.size))
    return Rings(ranks.rank, ranks.size, memory, ranks.note)


def key_of(channel: Channel, tag: int) -> int:
    """What messages are matched by."""
    return channel << 32 | tag
