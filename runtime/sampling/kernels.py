"""The sampling kernels in C: their text, their structures and their signatures."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu import toolchain

FILES = ("random.h", "memory.h", "pick.h", "expand.h", "sample.c", "walks.c", "rows.c")
"""In the order in which they build on each other."""

OK, NO_MEMORY, TOO_LARGE = -1, -2, -3

_I32 = ctypes.c_int32
_I64 = ctypes.c_int64
_U32 = ctypes.c_uint32
_U64 = ctypes.c_uint64
_PTR = ctypes.c_void_p


class Relation(ctypes.Structure):
    """`relation` of pick.h."""

    _fields_ = [
        ("indptr", _PTR),
        ("indices", _PTR),
        ("ids", _PTR),
        ("weights", _PTR),
        ("sums", _PTR),
        ("times", _PTR),
        ("source", _I64),
        ("target", _I64),
    ]


class Request(ctypes.Structure):
    """`request` of sample.c."""

    _fields_ = [
        ("relations", _PTR),
        ("fanouts", _PTR),
        ("hops", _I64),
        ("method", _I32),
        ("replace", _I32),
        ("again", _I32),
        ("apart", _I32),
        ("induced", _I32),
        ("wide", _I32),
        ("seed", _U64),
        ("step", _U64),
        ("epoch", _U32),
        ("tied", _U32),
        ("seeds", _PTR),
        ("seed_counts", _PTR),
        ("graphs", _PTR),
        ("names", _PTR),
        ("limits", _PTR),
        ("graph_count", _I64),
    ]


class Batch(ctypes.Structure):
    """`batch` of sample.c."""

    _fields_ = [
        ("block", _PTR),
        ("room", _I64),
        ("size", _I64),
        ("met", _PTR),
        ("found", _PTR),
        ("type_offsets", _PTR),
        ("relation_offsets", _PTR),
    ]


class Walks(ctypes.Structure):
    """`walk_request` of walks.c."""

    _fields_ = [
        ("r", Relation),
        ("k0", _U32),
        ("k1", _U32),
        ("starts", _PTR),
        ("count", _I64),
        ("length", _I64),
        ("first", _I64),
        ("back", _U64),
        ("weighted", _I32),
        ("ends", _I32),
        ("nodes", _PTR),
        ("ids", _PTR),
    ]


class NonEdges(ctypes.Structure):
    """`non_edges` of walks.c."""

    _fields_ = [
        ("ptr", _PTR),
        ("free_before", _PTR),
        ("sources", _PTR),
        ("count", _I64),
        ("targets", _I64),
    ]


_KEY: list[Any] = [_U64, _U32, _U64]
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "gnnc_running_sums": (None, [_PTR, _I64, _PTR, _PTR, _I64]),
    "gnnc_sampler_new": (_PTR, [_I64, _I64, _PTR]),
    "gnnc_sampler_free": (None, [_PTR]),
    "gnnc_sample": (_I64, [_PTR, _PTR, _PTR, _I64]),
    "gnnc_walk": (None, [_PTR, *_KEY, _I64]),
    "gnnc_free_pairs": (None, [_PTR, _I64, _I64, *_KEY, _PTR, _PTR, _I64]),
    "gnnc_gather_rows": (_I64, [_PTR, _I64, _I64, _PTR, _I64, _PTR, _I64]),
    "gnnc_free_sources": (None, [_PTR, _PTR, _I64, _I64, _I64, *_KEY, _PTR, _I64]),
}


def source() -> str:
    """The C text of the kernels."""
    return "\n".join(Path(__file__).with_name(name).read_text() for name in FILES)


@functools.cache
def library() -> ctypes.CDLL:
    """The kernels, compiled where the cache has them not."""
    return bind(toolchain.compile_source(source()))


def bind(path: Path) -> ctypes.CDLL:
    """The kernels in a shared object, with their signatures."""
    found = toolchain.load(path)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(found, name)
        function.restype = result
        function.argtypes = arguments
    return found


def address(array: NDArray[Any] | None) -> int | None:
    """Where an array lies; a null pointer for none."""
    return None if array is None else array.ctypes.data


def pointers(arrays: list[NDArray[Any]]) -> NDArray[np.uintp]:
    """The addresses of several arrays, as an array that C reads."""
    return np.array([a.ctypes.data for a in arrays], np.uintp)
