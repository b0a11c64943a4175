"""Ranks that are processes, by MPI. mpi4py is imported when a communicator is made.

One thread of a rank calls MPI. Waiting asks and pauses: MPI's own waits keep a core busy, which
ranks may share.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from .board import Board, Note
from .peers import Channel, Messages, Peers
from .rows import Bytes
from .waiting import Pending

if TYPE_CHECKING:
    from mpi4py import MPI

CHUNK = 4 << 20
"""Longer messages go in pieces of so many bytes: each piece is progress."""


class MissingMPI(ImportError):
    """mpi4py, or the MPI below it, is not there."""


def _start_mpi() -> None:
    """Imports mpi4py's module, with which MPI starts.

    Raises:
        MissingMPI: it cannot be imported.
    """
    try:
        import mpi4py

        # autograd and compiled phases may call from other threads than the first, in turns
        mpi4py.rc.thread_level = "serialized"
        import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no library of MPI
        raise MissingMPI(f'ranks need MPI ({error}): pip install "gnnc[mpi]"') from error


class _MpiPending(Pending):
    """Requests of MPI, with what each is: the other rank, and the bytes expected from it (None for
    what is sent). `memory` lives as long as they do."""

    def __init__(
        self,
        name: str,
        note: Note,
        requests: list[MPI.Request],
        what: list[tuple[int, int | None]],
        memory: Sequence[Bytes],
    ) -> None:
        super().__init__(name, note)
        self._requests = requests
        self._what = what
        self._memory = memory

    def poll(self) -> bool:
        if not self._requests:
            return True
        from mpi4py import MPI

        statuses: list[MPI.Status] = []
        try:
            done = MPI.Request.Testsome(self._requests, statuses) or []
        except MPI.Exception as error:
            raise ValueError(
                f"{self.name}: a message is longer than rank {self.note.rank} expects, or MPI "
                f"failed: {error}"
            ) from error
        for k, status in zip(done, statuses, strict=False):
            rank, expected = self._what[k]
            if expected is not None and (found := status.Get_count(MPI.BYTE)) != expected:
                raise ValueError(
                    f"{self.name}: rank {rank} sends {found} bytes to rank {self.note.rank}, which "
                    f"expects {expected}"
                )
        if done:
            left = sorted(set(range(len(self._requests))) - set(done))
            self._requests = [self._requests[k] for k in left]
            self._what = [self._what[k] for k in left]
        return not self._requests

    def missing(self) -> Sequence[int]:
        return sorted({rank for rank, _ in self._what})

    def left(self) -> int:
        return len(self._requests)


class Mpi(Peers):
    """A rank among the processes that MPI started together. All of them make theirs at once. The
    board says how patient they are until a rank first calls others, and `patience` from then on.

    Raises:
        MissingMPI: mpi4py, or the MPI below it, is not there.
        ValueError: MPI has started another number of processes than the board has slots.
    """

    shares_memory = False

    def __init__(self, board: Board, patience: float) -> None:
        _start_mpi()
        from mpi4py import MPI

        all_ranks = MPI.COMM_WORLD
        if all_ranks.size != board.size:
            raise ValueError(f"MPI has {all_ranks.size} ranks, the board {board.size}")
        note = Note(board, all_ranks.rank, os.getpid(), patience)
        super().__init__(all_ranks.rank, all_ranks.size, note)
        self._channels = {channel: all_ranks.Dup() for channel in Channel}
        self._byte = MPI.BYTE
        self.on_one_machine = len(set(all_ranks.allgather(MPI.Get_processor_name()))) == 1
        # memory stays while MPI may write to it, though who waited for it was stopped
        self._under_way: list[_MpiPending] = []

    def shared(self, size: int) -> int:
        """The address of so many zeros, which all ranks share as long as their processes live."""
        from mpi4py import MPI

        own = size if self.rank == 0 else 0
        window = MPI.Win.Allocate_shared(own, 1, comm=MPI.COMM_WORLD)
        address = window.Shared_query(0)[0].address
        if self.rank == 0:
            ctypes.memset(address, 0, size)
        MPI.COMM_WORLD.Barrier()  # not this rank's own, from which on others are less patient
        return address

    def carry(
        self, sends: Messages, receives: Messages, channel: Channel, tag: int, name: str
    ) -> Pending:
        through = self._channels[channel]
        requests: list[MPI.Request] = []
        what: list[tuple[int, int | None]] = []
        for rank, memory in receives:
            for piece in _pieces(memory):
                requests.append(through.Irecv([piece, len(piece), self._byte], rank, tag))
                what.append((rank, len(piece)))
        for rank, memory in sends:
            for piece in _pieces(memory):
                requests.append(through.Isend([piece, len(piece), self._byte], rank, tag))
                what.append((rank, None))
        memory = [array for _, array in (*sends, *receives)]
        pending = _MpiPending(name, self.note, requests, what, memory)
        self._under_way = [p for p in self._under_way if p.left()]
        self._under_way.append(pending)
        return pending


def _pieces(memory: Bytes) -> list[Bytes]:
    return [memory[k : k + CHUNK] for k in range(0, len(memory), CHUNK)]
