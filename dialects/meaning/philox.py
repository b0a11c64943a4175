"""The random numbers of `inter.dropout`: Philox4x32-10, spelled out so that C can repeat it bit for
bit.

The generator is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
3" (SC 2011): a block cipher on a counter of four 32-bit words under a key of two.

Which number decides over which entry:

* key words: k0 = key mod 2^32, k1 = (key >> 32) mod 2^32 of the int64 key (two's complement);
* counter words: c0 = column // 4, c1 = row mod 2^32, c2 = (row >> 32) mod 2^32, c3 = site, where
  `row` is the number of the row in the op's set (0 without a set), or the one that the op is given
  for it (two's complement), and `column` the place in the row's numbers, C order;
* output word column mod 4 of the four is u; the entry is kept iff u >= threshold(p), with
  threshold(p) = ceil(p * 2^32), that is iff u * 2^-32 >= p, and then multiplied by 1 / (1 - p).

One block serves four columns of one row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MULTIPLIER_0 = 0xD2511F53
MULTIPLIER_1 = 0xCD9E8D57
WEYL_0 = 0x9E3779B9
WEYL_1 = 0xBB67AE85
ROUNDS = 10

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

Rows = Sequence[int] | NDArray[np.int64]
Words = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]


def philox4x32(counter: Words, key: tuple[int, int]) -> Words:
    """Four output words for counters of four words (arrays of equal shape, values below 2^32)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        p0 = np.uint64(MULTIPLIER_0) * c0
        p1 = np.uint64(MULTIPLIER_1) * c2
        c0, c1, c2, c3 = (
            (p1 >> _32) ^ c1 ^ np.uint64(k0),
            p1 & _LOW,
            (p0 >> _32) ^ c3 ^ np.uint64(k1),
            p0 & _LOW,
        )
        k0 = (k0 + WEYL_0) & 0xFFFFFFFF
        k1 = (k1 + WEYL_1) & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(key: int, site: int, rows: Rows, columns: int) -> NDArray[np.uint64]:
    """The deciding 32-bit number of every entry of the rows of these numbers."""
    blocks = -(-columns // 4)
    row = np.repeat(np.asarray(rows, np.int64).astype(np.uint64), blocks)
    block = np.tile(np.arange(blocks, dtype=np.uint64), len(rows))
    counter = (block, row & _LOW, row >> _32, np.full_like(row, site))
    out = philox4x32(counter, (key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF))
    return np.stack(out, 1).reshape(len(rows), blocks * 4)[:, :columns]


def threshold(p: float) -> int:
    """The least number that keeps an entry, between 0 (p = 0) and 2^32 (p = 1)."""
    return math.ceil(p * 2.0**32)


def keep(key: int, site: int, p: float, rows: Rows, columns: int) -> NDArray[np.bool_]:
    """Which entries of the rows of these numbers are kept."""
    return words(key, site, rows, columns) >= np.uint64(threshold(p))


def word_at(key: int, site: int, rows: Rows, columns: Rows) -> NDArray[np.uint64]:
    """The deciding number of single entries, by row and column."""
    row, column = (np.asarray(v, np.int64).astype(np.uint64) for v in (rows, columns))
    counter = ((column & _LOW) // np.uint64(4), row & _LOW, row >> _32, np.full_like(row, site))
    out = np.stack(philox4x32(counter, (key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF)))
    return out[(column % np.uint64(4)).astype(np.int64), np.arange(len(column))]


def dropout(
    x: NDArray[Any], key: int, site: int, p: float, rows: Rows, columns: Rows | None = None
) -> NDArray[Any]:
    """`x`, whose first axis are the rows of these numbers, with entries dropped and the others
    divided by 1 - p; p = 1 drops all. With `columns` there is one entry a row, at that place."""
    if p == 1.0:
        return np.zeros_like(x)
    if columns is None:
        kept = keep(key, site, p, rows, math.prod(x.shape[1:])).reshape(x.shape)
    else:
        kept = word_at(key, site, rows, columns) >= np.uint64(threshold(p))
    return np.where(kept, x * (1.0 / (1.0 - p)), 0.0)
