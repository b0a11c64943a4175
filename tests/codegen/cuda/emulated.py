"""Programs for CUDA on the emulator, and what they are compared by."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from gnnc.runtime.emulator import Emulator

from ..compiled import TRAIN, Case

TARGET = "cuda-emulated"
ORDERS = (0, 1, 5)
"""Blocks and threads as they are numbered, backwards, and shuffled."""


def plan(lanes: int = 0, threads: int = 64, piece: int = 3) -> str:
    """A schedule that cuts small graphs into many blocks, tiles and pieces. `lanes` compute a row,
    or as many as the nest asks for."""
    return (
        f"schedule-grid{{{{threads={threads} lanes={lanes} rows=5 grain=16 chunks=7 "
        f"piece={piece}}}}}"
    )


FINE = plan()


def emulated(text: str, phases: str = TRAIN, *, schedule: str = FINE) -> Case:
    """A program on the emulator."""
    return Case.of(text, phases, schedule=schedule, target=TARGET)


def device_of(case: Case) -> Emulator:
    """The device that a case's kernels run on."""
    return next(iter(case.program.phases.values())).entry.program.device


@contextmanager
def in_order(case: Case, order: int) -> Generator[None]:
    """While blocks and threads run in an order."""
    device = device_of(case)
    before = device.order
    device.order = order
    try:
        yield
    finally:
        device.order = before


def check_orders(case: Case, values: Mapping[str, Any], *, tolerance: float = 1e-9) -> None:
    """The interpreter's numbers, and the same bits whatever runs first."""
    want = case.check(values, tolerance=tolerance)
    for order in ORDERS:
        with in_order(case, order):
            got = case.run(values)
        for name, x in want.items():
            assert got[name].tobytes() == x.tobytes(), f"{name} in order {order}"
