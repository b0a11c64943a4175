"""Whether the kernels of ranks that are processes can read each other's memory: all of them try."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..exports import CannotExport, handle_of, see
from ..memory import CannotOpen, Exporting, Handle
from .communicator import Communicator

_BOOT = Path("/proc/sys/kernel/random/boot_id")
"""What a machine has for itself, containers and all, from when it starts."""
_PROOF = 32
"""Bytes that a rank shows the others."""


@dataclass(frozen=True)
class _Offer:
    """What a rank shows: where its memory is, and what is to be read there; or why it shows none.
    `how` says what its programs run by."""

    how: str
    machine: str
    why_not: str | None
    handle: Handle
    proof: bytes


def why_unreachable(communicator: Communicator, how: str, memory: Exporting | str) -> str | None:
    """Why kernels of some rank cannot read the memory of another: the same on all ranks; None where
    all can read that of all. All ranks call it, each with what its programs run by, and with the
    memory of its device, or why that is not to be read.
    """
    lease = None if isinstance(memory, str) else memory.take_exported(_PROOF)
    offers: list[_Offer] = _of_all(communicator, _offer(how, memory, lease))
    if (refused := _refused(offers)) is not None:
        return refused
    assert not isinstance(memory, str)
    found: list[str | None] = _of_all(communicator, _tried(communicator.rank, memory, offers))
    del lease  # until here others have read it
    return next((f for f in found if f is not None), None)


def _of_all(communicator: Communicator, mine: Any) -> list[Any]:
    return communicator.broadcast(communicator.gather(mine))


def _offer(how: str, memory: Exporting | str, lease: Any) -> _Offer:
    if isinstance(memory, str):  # on any system: what only Linux tells is not asked for
        return _Offer(how, "", memory, Handle(b"", 0), b"")
    proof, machine = os.urandom(_PROOF), _BOOT.read_text().strip()
    try:
        handle = handle_of(memory, lease)
    except CannotExport as error:
        return _Offer(how, machine, str(error), Handle(b"", 0), proof)
    at = ctypes.create_string_buffer(proof, _PROOF)
    memory.copy(lease.address, ctypes.addressof(at), _PROOF)
    return _Offer(how, machine, None, handle, proof)


def _refused(offers: Sequence[_Offer]) -> str | None:
    """Why nobody has to try."""
    first = offers[0]
    for rank, offer in enumerate(offers):
        if offer.how != first.how:
            return f"programs run by {first.how} on rank 0 and by {offer.how} on rank {rank}"
        if offer.why_not is not None:
            return f"{offer.why_not} (rank {rank})"
        if offer.machine != first.machine:
            return f"ranks 0 and {rank} are on two machines"
    return None


def _tried(here: int, memory: Exporting, offers: Sequence[_Offer]) -> str | None:
    """Why this rank cannot read what others show."""
    for rank, offer in enumerate(offers):
        if rank == here:
            continue
        read = ctypes.create_string_buffer(_PROOF)
        try:
            seen = see(memory, offer.handle, _PROOF)
        except CannotOpen as error:
            return f"rank {here} cannot open memory of rank {rank}: {error}"
        memory.copy(ctypes.addressof(read), seen.address, _PROOF)
        if read.raw != offer.proof:
            return f"rank {here} reads other numbers in memory of rank {rank} than are there"
    return None
