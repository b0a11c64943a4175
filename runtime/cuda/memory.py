"""The memory of a device, from torch's caching allocator: programs and torch share it."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from ..memory import Handle, Lease
from . import ipc
from .device import ALIGNMENT, memory_errors, number_of


class TensorMemory:
    """Memory that a tensor holds."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.address = tensor.data_ptr()
        self.nbytes = tensor.nbytes


class DeviceMemory:
    """The memory of a device that torch knows by a name: "cuda:0"."""

    alignment = ALIGNMENT

    def __init__(self, device: str) -> None:
        self.device = device

    def upload(self, array: NDArray[Any]) -> TensorMemory:
        """A copy of a table on the device.

        Raises:
            OutOfDeviceMemory: the device has no memory for it.
        """
        with memory_errors("an index table", array.nbytes):
            # a table of no rows has an address of its own too
            padded = torch.empty(max(array.nbytes, 1), dtype=torch.uint8, device=self.device)
            if array.nbytes:
                flat = torch.frombuffer(bytearray(array.tobytes()), dtype=torch.uint8)
                padded.copy_(flat)
        return TensorMemory(padded)

    def take(self, size: int) -> TensorMemory:
        """Memory of the current stream: what runs on it later may have it again.

        Raises:
            OutOfDeviceMemory: the device has no more.
        """
        with memory_errors("temporaries of a program", size):
            return TensorMemory(torch.empty(max(size, 1), dtype=torch.uint8, device=self.device))

    def export(self, address: int) -> Handle | None:
        """See Exporting."""
        return ipc.export(number_of(self.device), address)

    def open(self, name: bytes) -> Lease:
        """See Exporting."""
        return ipc.Opened(number_of(self.device), name)

    def take_exported(self, size: int) -> Lease:
        """See Exporting."""
        return ipc.block(number_of(self.device), size)

    def copy(self, to: int, source: int, size: int) -> None:
        """See Exporting."""
        ipc.copy(number_of(self.device), to, source, size)
