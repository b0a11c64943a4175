"""Carriers of ranks that are processes, or threads that take each other for such."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Sequence

import numpy as np

from gnnc.runtime.emulator.memory import EmulatedMemory
from gnnc.runtime.memory import Region
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import ExportingExchanges, exchanges

from .test_totals_of_ranks import BUFFERS, cases, drawn


def exporting(c: Communicator) -> ExportingExchanges:
    """The carrier of one rank for programs of the emulator."""
    return ExportingExchanges(c, {}, EmulatedMemory())


class Spoiling(ExportingExchanges):
    """Rank 0 spoils what it has published as soon as it may, and rank 1 reads it late: with the
    fence half a second later; without, when rank 0 has gone on and spoilt it."""

    fenced = True

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        self.shown = list(buffers)
        found = super().publish(plan, buffers)
        if self.communicator.rank == 1:
            if self.fenced:
                time.sleep(0.5)
            else:
                self.communicator.barrier()
        return found

    def retire(self, plan: str) -> None:
        if self.fenced:
            super().retire(plan)
        if self.communicator.rank == 0:
            for region in self.shown:
                ctypes.memset(region.address, 0xFF, region.size)
            if not self.fenced:
                self.communicator.barrier()


def has_right_sums(c: Communicator, fenced: bool) -> bool:
    """Whether a rank of two gets the sums that messages bring."""
    published, messages = cases("i64")
    values = drawn("i64", 4, c.rank)
    want = messages.run(values, carrier=exchanges(c, {}))
    carrier = Spoiling(c, {}, EmulatedMemory())
    carrier.fenced = fenced
    got = published.run(values, carrier=carrier)
    return all(np.array_equal(got[f"{b}_sum"], want[f"{b}_sum"]) for b in BUFFERS)


class Dying(ExportingExchanges):
    """Rank 1 is killed when it has published what others are about to read."""

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        found = super().publish(plan, buffers)
        if self.communicator.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return found


def run_until_one_dies(c: Communicator) -> None:
    """A phase during which a rank is killed."""
    published, _ = cases("i64")
    published.run(drawn("i64", 4, c.rank), carrier=Dying(c, {}, EmulatedMemory()))
