"""A number that changes with a batch's contents, to see that a waiting batch stays what it is."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from zlib import crc32

import numpy as np


def checksum(payload: object) -> int:
    """CRC-32 over the arrays, numbers, strings, bytes and classes of a batch, in their order.

    Goes into mappings (by their order), sequences and objects with attributes. Anything that
    numpy takes by `__array__` counts as an array, tensors on the CPU included. Raises TypeError
    for what has no contents that it knows.
    """
    return _added(payload, 0)


def _added(value: object, crc: int) -> int:
    if isinstance(value, bytes | bytearray):
        return crc32(value, crc)
    if value is None or isinstance(value, str | bool | int | float | complex):
        return crc32(repr(value).encode(), crc)
    if isinstance(value, type):
        return crc32(value.__qualname__.encode(), crc)
    if isinstance(value, Mapping):
        return _all([*cast("Mapping[object, object]", value).items()], crc)
    if isinstance(value, Sequence):
        return _all(cast("Sequence[object]", value), crc)
    if hasattr(value, "__array__"):
        array: Any = np.ascontiguousarray(cast(Any, value))
        if array.dtype.hasobject:
            raise TypeError("payload: an array of objects has no contents to sum over")
        return crc32(array.tobytes(), crc32(f"{array.shape} {array.dtype}".encode(), crc))
    if hasattr(value, "__dict__"):
        return _all([*vars(value).items()], crc)
    raise TypeError(f"payload: {type(value).__name__} has no contents that a checksum knows")


def _all(values: Sequence[object], crc: int) -> int:
    crc = crc32(str(len(values)).encode(), crc)
    for value in values:
        crc = _added(value, crc)
    return crc
