"""How a kernel that reads rows of other devices is launched, and what of a device that takes.

A row's local and remote neighbours are cut into partitions of at most `ps` each. A warp takes
`dist` local partitions, and the remote ones with the same numbers: it asks for a remote one, sums a
local one meanwhile, and then what has arrived. `wpb` warps are a block. These are the numbers that
MGG (Wang et al., OSDI 2023) is tuned by.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
LANES = 32
"""Threads of a warp."""


@dataclass(frozen=True, order=True)
class Launch:
    """Neighbours a partition, pairs of partitions a warp, warps a block.

    Raises:
        ValueError: one is no integer, or below 1.
    """

    ps: int = 1
    dist: int = 1
    wpb: int = 1

    def __post_init__(self) -> None:
        for f in fields(self):
            n = getattr(self, f.name)
            if not isinstance(n, int) or n < 1:
                raise ValueError(f"{f.name}: {n!r}, and it is an integer, 1 at least")

    def numbers_of_warp(self, width: int) -> int:
        """How many numbers a warp sums up: those of 2 x `dist` partitions of `ps` rows."""
        return 2 * self.ps * width * self.dist

    def shared_bytes(self, width: int, depth: int) -> int:
        """The shared memory of a block, in bytes: a warp keeps the numbers of `ps` neighbours, a
        row of `width` float32 that it sums in, and `depth` rows that are under way."""
        return 4 * self.ps * self.wpb + 4 * self.wpb * width * (1 + depth)


@dataclass(frozen=True)
class Device:
    """An accelerator.

    Attributes:
        processors: streaming multiprocessors.
        shared, shared_of_block: bytes of shared memory of a processor, and the most of a block.
        warps, blocks, registers: the most that a processor has at a time.
        bandwidth: bytes a second of its memory, for all warps together.
        latency: seconds until a read of its memory arrives.
        in_flight: rows that a warp has under way from its own memory.
    """

    name: str
    processors: int
    shared: int
    shared_of_block: int
    warps: int
    blocks: int
    registers: int
    bandwidth: float
    latency: float = 6e-7
    in_flight: int = 4

    def resident_blocks(self, launch: Launch, width: int, depth: int, registers: int = 32) -> int:
        """How many blocks a processor has at a time, from their shared memory, their warps and the
        `registers` of each thread; 0 where not one fits."""
        shared = launch.shared_bytes(width, depth)
        if shared > self.shared_of_block:
            return 0
        return min(
            self.shared // shared,
            self.warps // launch.wpb,
            self.registers // (registers * LANES * launch.wpb),
            self.blocks,
        )


DEVICES = {
    d.name: d
    for d in (
        Device("a100", 108, 164 << 10, 163 << 10, 64, 32, 65536, 2.0e12),
        Device("h100", 132, 228 << 10, 227 << 10, 64, 32, 65536, 3.35e12),
    )
}
"""By name, with the limits that their makers give for compute capability 8.0 and 9.0."""


def partitions(degrees: Int64, ps: int | None) -> Int64:
    """The neighbours of each partition, int64: those of a row are cut into partitions of `ps`, the
    last of which has the rest; None: a row's are one partition. A row without neighbours has none.

    Args:
        degrees: int64 [rows], the neighbours of each row.

    Raises:
        ValueError: a degree is negative, or `ps` below 1.
    """
    if len(degrees) and degrees.min() < 0:
        raise ValueError(f"degrees: {degrees.min()} is no number of neighbours")
    if ps is None:
        return degrees[degrees > 0]
    if ps < 1:
        raise ValueError(f"ps: {ps}, and it is 1 at least")
    counts = -(-degrees // ps)
    sizes = np.full(counts.sum(), ps, np.int64)
    some = counts > 0
    sizes[np.cumsum(counts)[some] - 1] = (degrees - (counts - 1) * ps)[some]
    return sizes
