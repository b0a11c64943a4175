"""How long a launch would take, in virtual time.

A warp goes through its pairs of partitions: it asks for the remote rows, sums the local ones,
waits, and sums the remote ones. A read of a row takes a share of the device's bandwidth, and at
least its latency over the rows that are under way; a remote row the same of the link. A partition
takes the numbers of its neighbours first, and its sum is written. Blocks go to the places that are
free in turn: they are done within their mean and the longest (Graham, SIAM J. Appl. Math. 1969),
and no sooner than the link and the memory carry what all of them read.

Not played: caches, what lanes do of rows that are no multiple of 32 wide, atomics, other kernels,
and that devices which read from one another share its link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..simulate import Link
from .launches import Device, Int64, Launch, partitions

Floats = NDArray[np.float64]
BLOCK_SECONDS = 1.5e-6
"""To start a block."""


class Way(Enum):
    """How a kernel goes about it: MGG's way, and those that its paper takes one idea out of."""

    PIPELINED = "pipelined"
    WHOLE_ROWS = "no partitions"
    APART = "no interleaving"
    SYNCHRONOUS = "synchronous"


@dataclass(frozen=True)
class Task:
    """What a device sums up.

    Attributes:
        local, remote: int64 [rows], the neighbours of each row there and on other devices.
        width: numbers of a row, float32.
        depth: remote rows that a warp has under way.

    Raises:
        ValueError: rows differ in number, have no whole numbers of neighbours, or `width` or
            `depth` is below 1.
    """

    local: Int64
    remote: Int64
    width: int
    depth: int = 2

    def __post_init__(self) -> None:
        if self.local.shape != self.remote.shape:
            raise ValueError(
                f"remote: {len(self.remote)} rows, and {len(self.local)} have local neighbours"
            )
        for name, degrees in (("local", self.local), ("remote", self.remote)):
            if degrees.dtype.kind not in "iu" or degrees.min(initial=0) < 0:
                raise ValueError(f"{name}: numbers of neighbours are integers of 0 or more")
        for name, n in (("width", self.width), ("depth", self.depth)):
            if n < 1:
                raise ValueError(f"{name}: {n}, and it is 1 at least")


def seconds(
    task: Task, launch: Launch, device: Device, link: Link, way: Way = Way.PIPELINED
) -> float:
    """The time of one launch; infinite where no block fits on the device."""
    places = device.processors * device.resident_blocks(launch, task.width, task.depth)
    if not places:
        return float("inf")
    warps = _warps(task, launch, device, link, way, places)
    blocks = _in_runs(warps, launch.wpb).max(axis=1, initial=0.0)
    if not len(blocks):
        return 0.0
    blocks = blocks + BLOCK_SECONDS
    made = blocks.sum() / places + (1 - 1 / places) * blocks.max()
    row = 4.0 * task.width
    carried = task.remote.sum() * row / link.bandwidth
    read = (task.local.sum() + task.remote.sum()) * row / device.bandwidth
    return float(max(made, carried, read))


def of_all(
    tasks: Sequence[Task],
    launch: Launch,
    device: Device,
    link: Link,
    way: Way = Way.PIPELINED,
) -> float:
    """The time of the device that takes longest."""
    return max((seconds(t, launch, device, link, way) for t in tasks), default=0.0)


def _warps(task: Task, launch: Launch, device: Device, link: Link, way: Way, places: int) -> Floats:
    """The seconds of each warp."""
    ps = None if way is Way.WHOLE_ROWS else launch.ps
    local, remote = partitions(task.local, ps), partitions(task.remote, ps)
    if way is Way.APART:
        empty = np.zeros(0, np.int64)
        runs = [paired(local, empty, launch.dist), paired(empty, remote, launch.dist)]
        near, far = (np.concatenate(x) for x in zip(*runs, strict=True))
    else:
        near, far = paired(local, remote, launch.dist)
    active = min(len(near), places * launch.wpb)
    row = 4.0 * task.width
    each = max(device.latency / device.in_flight, row * active / device.bandwidth)
    gets = max(1, min(active, int(np.count_nonzero(far.any(axis=1)))))
    away = max(link.latency / task.depth, row * gets / link.bandwidth)
    start = device.latency + each  # the numbers of neighbours, and the sum
    here = near * each + (near > 0) * start
    there = far * away + (far > 0) * (link.latency + link.overhead)
    added = far * row / _SHARED_BANDWIDTH + (far > 0) * start
    both = here + there if way is Way.SYNCHRONOUS else np.maximum(here, there)
    return (both + added).sum(axis=1)


_SHARED_BANDWIDTH = 6.4e10
"""Bytes a second that a warp reads of shared memory."""


def paired(local: Int64, remote: Int64, dist: int) -> tuple[Int64, Int64]:
    """The neighbours of the pairs of each warp, int64 [warps, dist]; 0 where there is none."""
    warps = -(-max(len(local), len(remote)) // dist)
    out = np.zeros((2, warps * dist), np.int64)
    out[0, : len(local)], out[1, : len(remote)] = local, remote
    near, far = out.reshape(2, warps, dist)
    return near, far


def _in_runs(x: Floats, length: int) -> Floats:
    """Numbers in rows of so many, the last of which is filled up with 0."""
    rows = -(-len(x) // length)
    out = np.zeros(rows * length)
    out[: len(x)] = x
    return out.reshape(rows, length)
