"""GPUs as `gnnc bench roofline` takes them: figures of their makers, and shares of them that
kernels are taken to reach. Nothing here was measured by us.

Bandwidth of memory, size of the second-level cache (L2), float32 operations a second (a
multiply-add is two, no tensor cores) and multiprocessors are those of NVIDIA's data sheets "A100
80GB" (2021, SXM), "H100 Tensor Core GPU" (SXM) and "H200 Tensor Core GPU" (SXM). The bandwidth of
the L2 is on no data sheet: the "A100 Tensor Core GPU Architecture" white paper gives 5120 bytes a
clock, which is 7.2 TB/s at 1.41 GHz; the same at H100's 1.755 GHz is 9.0 TB/s. What a launch costs
is on none either: NVIDIA's article "Getting Started with CUDA Graphs" (2019) tells of about a
microsecond between kernels that follow one another on a V100, and several where the host waits for
each; two are taken here.
"""

from __future__ import annotations

from dataclasses import dataclass

COPY_SHARE = 0.9
"""Of the data sheet's bandwidth, what a copy reaches."""
NEAR_SHARE = 0.6
"""Of the L2's bandwidth by design, what gathers from it reach."""
FLOPS_SHARE = 0.5
"""Of the data sheet's operations, what products reach."""
GATHER_SHARE = 0.8
"""Of the copy bandwidth, what gathers of long rows from memory reach."""
FITS_SHARE = 0.5
"""Of the L2, what a buffer may take whose rows are taken to be found there: each half of it serves
half of the multiprocessors, and other buffers go through it."""
MEMORY_LINE = 64
"""Bytes that memory is read in, where a row is gathered."""
NEAR_LINE = 32
"""Bytes that the L2 is read in: a sector."""


@dataclass(frozen=True)
class Device:
    """A GPU: `memory` and `near` are bytes a second of its memory and of its L2 by design, `l2` is
    the size of that in bytes, `flops` float32 operations a second, `launch` seconds a kernel."""

    name: str
    memory: float
    l2: int
    near: float
    flops: float
    multiprocessors: int
    launch: float = 2e-6

    @property
    def copy(self) -> float:
        """Bytes a second of a copy, read and written."""
        return COPY_SHARE * self.memory

    @property
    def gathers_fit(self) -> float:
        """Bytes of the largest buffer whose rows are found in the L2."""
        return FITS_SHARE * self.l2


_MIB = 2**20
DEVICES = {
    "a100": Device("A100 80GB SXM", 2.039e12, 40 * _MIB, 7.2e12, 19.5e12, 108),
    "h100": Device("H100 SXM", 3.35e12, 50 * _MIB, 9.0e12, 67e12, 132),
    "h200": Device("H200 SXM", 4.8e12, 50 * _MIB, 9.0e12, 67e12, 132),
}


def share_of_lines(row: int, line: int) -> float:
    """How much of what is read for a gathered row, whole lines, is the row."""
    return row / (-(-row // line) * line) if row else 1.0


def gather_share(row: int) -> float:
    """The share of the copy bandwidth that gathers from memory reach, of rows of so many bytes."""
    return GATHER_SHARE * share_of_lines(row, MEMORY_LINE)


def near_share(row: int) -> float:
    """The share of the L2's bandwidth that gathers from it reach, of rows of so many bytes."""
    return NEAR_SHARE * share_of_lines(row, NEAR_LINE)
