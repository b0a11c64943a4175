"""The memory of the host."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from . import pool


class HostArray:
    """An array where it lies."""

    __slots__ = ("address", "array", "nbytes")

    def __init__(self, array: NDArray[Any], address: int | None = None) -> None:
        """`address` is that of the array where it is known."""
        self.array = array
        self.address: int = array.__array_interface__["data"][0] if address is None else address
        self.nbytes = array.nbytes


class HostMemory:
    """Tables lie where they are, scratch comes from the heap or the pool."""

    device = "cpu"
    alignment = 1

    def upload(self, array: NDArray[Any]) -> HostArray:
        return HostArray(array)

    def take(self, size: int) -> pool.Memory:
        return pool.spares.take(size)


HOST = HostMemory()
