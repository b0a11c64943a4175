"""The memory that the tiles of products.cuh and outer_sums.cuh take, for who prints kernels."""

from __future__ import annotations

SLAB_BYTES = 16384
"""Shared memory that suffices as the slab of any product or sum."""
SUM_BYTES = 192
"""Bytes of sums that a thread keeps in registers."""


def far_numbers(number_bytes: int, threads: int, sums: int) -> int:
    """Numbers of global memory that each block needs for `sums` sums of outer products: none where
    they are in the registers of its threads."""
    return sums if sums * number_bytes > SUM_BYTES * threads else 0
