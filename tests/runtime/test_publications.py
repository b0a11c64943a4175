"""What C is given of buffers that ranks publish."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnc.runtime.carrier import Alone
from gnnc.runtime.comm import Call, HostReach
from gnnc.runtime.messages import Messages, Publication


class Noting(HostReach):
    """Counts what is written."""

    def __init__(self) -> None:
        self.writes = 0

    def write(self, array: NDArray[Any], address: int | None) -> None:
        self.writes += 1
        super().write(array, address)


def addresses(*arrays: NDArray[Any]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))


def test_where_buffers_lie_is_told_when_they_have_moved() -> None:
    """Memory is that of the call before more often than not, and a table lies on a device."""
    reach = Noting()
    messages = Messages(0, (), (), (Publication("totals", (16, 8), None),))
    buffers = [np.zeros(2), np.zeros(1), np.zeros(1)]
    tables = [np.zeros(1, np.int64) for _ in range(2)]

    def publish(*which: NDArray[Any]) -> list[int]:
        call = Call("f", messages, Alone(), reach)
        call.functions.publish(None, 0, addresses(*which), addresses(*tables), None)
        call.functions.retire(None, 0)
        call.end()
        return [int(table[0]) for table in tables]

    a, b, c = buffers
    assert publish(a, b) == [a.ctypes.data, b.ctypes.data] and reach.writes == 2
    assert publish(a, b) == [a.ctypes.data, b.ctypes.data] and reach.writes == 2
    assert publish(a, c) == [a.ctypes.data, c.ctypes.data] and reach.writes == 4
