"""NumPy faces of structure.c. All index arrays are int32, positions (``ptr``) int64; the number of
rows of a set is below 2**31.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import mapped
from ..cpu import toolchain
from ..cpu.crew import crews

Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

ROW_LIMIT = 2**31 - 1
"""Sets have at most this many rows."""

_OK = -1
_NO_MEMORY = -2
_IN_ORDER = -3
_I64 = ctypes.c_int64
_INT = ctypes.c_int
_PTR = ctypes.c_void_p
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "gnnc_narrow_i64": (_I64, [_PTR, _I64, _I64, _I64, _PTR, _INT]),
    "gnnc_narrow_i32": (_I64, [_PTR, _I64, _I64, _I64, _PTR, _INT]),
    "gnnc_take_i32": (_I64, [_PTR, _I64, _PTR, _I64, _PTR, _INT]),
    "gnnc_group": (_I64, [_PTR, _PTR, _I64, _I64, _PTR, _PTR, _INT]),
    "gnnc_arrange": (_I64, [_PTR, _I64, _I64, _I64, _INT]),
    "gnnc_runs": (_I64, [_PTR, _I64, _PTR, _I64, _PTR, _PTR, _PTR, _INT]),
    "gnnc_where": (_I64, [_PTR, _I64, _PTR, _INT]),
    "gnnc_where_different": (_I64, [_PTR, _PTR, _I64, _PTR, _INT]),
    "gnnc_last_loop": (_I64, [_PTR, _PTR, _I64, _I64, _PTR, _INT]),
}


class Runs(NamedTuple):
    """Equal tuples among rows: run ``j`` holds the rows ``order[start[j]:start[j + 1]]``,
    ascending.
    """

    found: int
    """How many distinct tuples there are."""
    run: Int32s
    """The run of each row, shape (rows,)."""
    first: Int32s
    """The first row of each run, shape (found,)."""
    start: Int64s
    """Shape (found + 1,)."""
    order: Int32s
    """The rows sorted by tuple, lexicographically, then by row."""


def source() -> str:
    """The C text of the structure kernels."""
    return Path(__file__).with_name("structure.c").read_text()


@functools.cache
def _library() -> ctypes.CDLL:
    return bind(toolchain.compile_source(source()))


def bind(path: Path) -> ctypes.CDLL:
    """The structure kernels in a shared object, with their signatures."""
    library = toolchain.load(path)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _call(name: str, *arguments: Any) -> int:
    """Calls a kernel with the number of threads as its last argument; arrays go by address."""
    given = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    function = getattr(_library(), name)
    size = sum(a.size for a in arguments if isinstance(a, np.ndarray))
    return crews.run(name, size, lambda threads: function(*given, threads))


def check_rows(count: int, what: str) -> int:
    """`count`, checked to be a number of rows that a set can have; `what` begins the message of the
    error (``ValueError``).
    """
    if not 0 <= count <= ROW_LIMIT:
        raise ValueError(
            f"{what} is {count}, but it must be between 0 and 2**31 - 1: "
            "rows are numbered by 32-bit integers"
        )
    return count


def integers(values: NDArray[Any], what: str) -> Int64s | Int32s:
    """`values` as a contiguous 1-d int64 or int32 array, copied only where needed. Raises
    ``TypeError`` or ``ValueError``.
    """
    if values.ndim != 1:
        raise ValueError(f"{what} must have one dimension, got shape {values.shape}")
    if values.dtype == np.int32:
        return np.ascontiguousarray(values, np.int32)
    if values.dtype.kind not in "iu" or values.dtype == np.uint64:
        raise TypeError(f"{what} must hold integers (int64 or int32), got {values.dtype}")
    return np.ascontiguousarray(values, np.int64)


def narrow(
    values: NDArray[Any],
    high: int,
    *,
    low: int = 0,
    what: str = "index",
    out: Int32s | None = None,
) -> Int32s:
    """A new read-only int32 array of `values`, each checked to be in ``[low, high)``; they are
    written to `out` where it is given. What lies in a file is read in blocks.

    Raises ``IndexError`` naming `what`, the first offending value and its position.
    """
    check_rows(values.size, f"the length of {what}")
    x = integers(values, what)
    made = np.empty(x.size, np.int32) if out is None else out
    name = f"gnnc_narrow_i{8 * x.itemsize}"
    for first, block in mapped.passing(x):
        bad = _call(name, block, block.size, low, high, made[first : first + block.size])
        if bad != _OK:
            allowed = (
                f"between {low} and {high - 1}"
                if high > low
                else "absent, since the set it points into is empty"
            )
            raise IndexError(
                f"{what}[{first + bad}] is {int(block[bad])}, but it must be {allowed}"
            )
    return frozen(made) if out is None else made


def take(table: Int32s, rows: Int32s, what: str = "index", out: Int32s | None = None) -> Int32s:
    """``table[rows]`` in parallel; -1 where a row is -1; written to `out` where it is given. Raises
    ``IndexError`` for another row outside the table.
    """
    table, rows = np.ascontiguousarray(table, np.int32), np.ascontiguousarray(rows, np.int32)
    made = np.empty(rows.size, np.int32) if out is None else out
    bad = _call("gnnc_take_i32", table, table.size, rows, rows.size, made)
    if bad != _OK:
        raise IndexError(
            f"{what}[{bad}] is {int(rows[bad])}, but the table it reads has {table.size} rows"
        )
    return frozen(made) if out is None else made


def group(
    keys: NDArray[Any], count: int, order: Int32s | None = None, *, partial: bool = False
) -> tuple[Int64s, Int32s]:
    """Group rows by key: ``(ptr, rows)``, where ``rows[ptr[k]:ptr[k + 1]]`` are the rows with key
    ``k``.

    `keys` has shape (E,), values in ``[0, count)``; with `partial` also -1, for rows that belong to
    no group. The sort is stable: rows of one group keep their order, or that of `order` (a
    permutation of the rows) where given. `ptr` is int64 of shape (count + 1,), `rows` int32. Raises
    ``IndexError`` for a key out of range. Linear in E and `count`.
    """
    ptr, rows, _ = group_with_order(keys, count, order, partial=partial)
    return ptr, rows


def group_with_order(
    keys: NDArray[Any], count: int, order: Int32s | None = None, *, partial: bool = False
) -> tuple[Int64s, Int32s, bool]:
    """The same, and whether the rows are known to be 0, 1, 2, ..: those of ascending keys are."""
    check_rows(count, "the number of groups")
    check_rows(keys.size, "the number of rows to group")
    if keys.dtype != np.int32:
        keys = narrow(keys, count, low=-1 if partial else 0, what="key")
    keys = np.ascontiguousarray(keys, np.int32)
    if order is not None:
        order = np.ascontiguousarray(order, np.int32)
        if order.size != keys.size:
            raise ValueError(f"order has {order.size} entries for {keys.size} rows")
    ptr, rows = np.empty(count + 1, np.int64), np.empty(keys.size, np.int32)
    status = _call("gnnc_group", keys, order, keys.size, count, ptr, rows)
    if status == _NO_MEMORY:
        raise MemoryError(f"no memory to group {keys.size} rows by {count} keys")
    if status not in (_OK, _IN_ORDER):
        raise IndexError(f"key[{status}] is not in 0..{count - 1}, or order[{status}] is not a row")
    kept = int(ptr[count])
    if kept != keys.size and not partial:
        missing = int(np.flatnonzero(keys < 0)[0])
        raise IndexError(
            f"key[{missing}] is {int(keys[missing])}, but it must be between 0 and {count - 1}"
        )
    return frozen(ptr), frozen(rows[:kept]), status == _IN_ORDER


def arrange(
    numbers: Sequence[int], maps: int, orders: int, rows: int, threads: int | None = None
) -> int | None:
    """Check the maps of a set of so many rows, and put the rows in orders: `numbers` are those of
    the records `map`, `order` and `taken` of structure.c. Gives the number of a map with a value
    that leads to no row, and then nothing that was written is valid.
    """
    records = struct.pack(f"{len(numbers)}q", *numbers)
    given = records, maps, orders, rows
    call, name = _library().gnnc_arrange, f"arrange {maps} {orders}"
    found: int = crews.run(name, rows, lambda count: call(*given, count), threads)
    return None if found == _OK else found


def runs(keys: Sequence[Int32s], counts: Sequence[int]) -> Runs:
    """The distinct tuples ``(keys[0][r], keys[1][r], ..)`` in lexicographic order. Each ``keys[k]``
    has values in ``[0, counts[k])``.
    """
    if not keys or any(key.size != keys[0].size for key in keys):
        raise ValueError("distinct tuples need at least one key, all of one length")
    order: Int32s | None = None
    for key, count in zip(reversed(keys), reversed(counts), strict=True):
        _, order = group(key, count, order)
    assert order is not None
    arrays = [np.ascontiguousarray(key, np.int32) for key in keys]
    pointers = (ctypes.c_void_p * len(arrays))(*[key.ctypes.data for key in arrays])
    size = order.size
    run, first = np.empty(size, np.int32), np.empty(size, np.int32)
    start = np.empty(size + 1, np.int64)
    found = _call("gnnc_runs", pointers, len(arrays), order, size, run, first, start)
    if found == _NO_MEMORY:
        raise MemoryError(f"no memory to find the distinct tuples of {size} rows")
    return Runs(found, frozen(run), _shortened(first, found), _shortened(start, found + 1), order)


def where(mask: Bools) -> Int32s:
    """The positions where `mask` holds, ascending."""
    mask = np.ascontiguousarray(mask, np.bool_)
    check_rows(mask.size, "the length of the mask")
    out = np.empty(mask.size, np.int32)
    return _compacted(_call("gnnc_where", mask, mask.size, out), out)


def where_different(a: Int32s, b: Int32s) -> Int32s:
    """The positions where two arrays of one length differ, ascending."""
    a, b = np.ascontiguousarray(a, np.int32), np.ascontiguousarray(b, np.int32)
    if a.size != b.size:
        raise ValueError(f"arrays of {a.size} and {b.size} entries cannot be compared")
    out = np.empty(a.size, np.int32)
    return _compacted(_call("gnnc_where_different", a, b, a.size, out), out)


def last_loop(src: Int32s, dst: Int32s, count: int) -> Int32s:
    """For each node the last edge that leads from it to itself, else -1; shape (count,)."""
    src, dst = np.ascontiguousarray(src, np.int32), np.ascontiguousarray(dst, np.int32)
    if src.size != dst.size:
        raise ValueError(f"src has {src.size} entries and dst has {dst.size}")
    out = np.empty(count, np.int32)
    bad = _call("gnnc_last_loop", src, dst, src.size, count, out)
    if bad != _OK:
        raise IndexError(f"src[{bad}] is {int(src[bad])}, but it must be between 0 and {count - 1}")
    return frozen(out)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """`array`, made read-only: structure is shared, so nobody may change it."""
    array.flags.writeable = False
    return array


def _compacted(found: int, out: Int32s) -> Int32s:
    if found == _NO_MEMORY:
        raise MemoryError(f"no memory to filter {out.size} rows")
    return _shortened(out, found)


def _shortened(array: NDArray[Any], count: int) -> NDArray[Any]:
    """The first entries, without the memory of the others."""
    array.resize(count, refcheck=False)  # nobody else has it yet
    return frozen(array)
