"""How a carrier comes to the rows of a phase on a GPU: through copies in memory of the host."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..memory import Region
from ..messages import Rows
from .driver import Driver


class DeviceReach:
    """Of a phase that launches on `stream` of the current device."""

    def __init__(self, driver: Driver, stream: int, phase: str) -> None:
        self.driver, self.stream, self.phase = driver, stream, phase

    def outgoing(self, rows: Rows, address: int | None) -> NDArray[Any]:
        """See Reach. Waits for what was launched."""
        array = np.empty(rows.shape, rows.dtype)
        self.settle()
        if array.nbytes:
            self._call("cuMemcpyDtoH_v2", array.ctypes.data, address, array.nbytes)
        return array

    def incoming(self, rows: Rows, address: int | None) -> NDArray[Any]:
        """See Reach."""
        return np.empty(rows.shape, rows.dtype)

    def arrived(self, array: NDArray[Any], address: int | None) -> None:
        """See Reach."""
        self.write(array, address)

    def write(self, array: NDArray[Any], address: int | None) -> None:
        """See Reach. What reads it is launched afterwards."""
        if array.nbytes:
            self.settle()
            self._call("cuMemcpyHtoD_v2", address, array.ctypes.data, array.nbytes)

    def settle(self) -> None:
        """See Reach."""
        status = self.driver.library.cuStreamSynchronize(ctypes.c_void_p(self.stream))
        self.driver.check(status, f"@{self.phase}, before ranks exchange rows")

    def aside(self) -> AbstractContextManager[Any]:
        """See Reach."""
        return nullcontext()

    def lend(self, regions: Sequence[Region]) -> None:
        """See Reach. Threads of one process share the device's addresses."""

    def _call(self, function: str, to: int | None, source: int | None, size: int) -> None:
        places = ctypes.c_void_p(to), ctypes.c_void_p(source)
        status = getattr(self.driver.library, function)(*places, ctypes.c_size_t(size))
        self.driver.check(status, f"{function} of rows of @{self.phase}")
