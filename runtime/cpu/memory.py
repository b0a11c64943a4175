"""The memory of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from . import pool


@dataclass(frozen=True)
class HostArray:
    """An array where it lies."""

    array: NDArray[Any]

    @property
    def address(self) -> int:
        return self.array.ctypes.data

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


class HostMemory:
    """Tables lie where they are, scratch comes from the pool."""

    device = "cpu"
    alignment = 1

    def upload(self, array: NDArray[Any]) -> HostArray:
        return HostArray(array)

    def take(self, size: int) -> pool.Memory:
        return pool.take(size)


HOST = HostMemory()
