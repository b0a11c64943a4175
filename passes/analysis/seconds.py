"""What work costs on a target, in seconds: products, rows that stream through memory, rows that are
gathered. The speeds stand in the target's record (passes/targets), the numbers of rows in costs.py.
"""

from __future__ import annotations

import math

from ..targets import Target


def product_seconds(target: Target, rows: float, k: int, f: int) -> float:
    """The product of `rows` rows of k numbers and a matrix of k x f."""
    return 2.0 * rows * k * f / target.speeds.gemm_flops


def stream_seconds(target: Target, rows: float, row_bytes: int) -> float:
    """Rows that lie one behind the other, written or read."""
    return rows * row_bytes / target.speeds.stream_bytes


def gather_seconds(target: Target, rows: float, row_bytes: int) -> float:
    """Rows that are read through a map: by whole cache lines."""
    return rows * line_bytes(row_bytes, target.caches.line) / target.speeds.gather_bytes


def dense_features_seconds(target: Target, numbers: float, f: int, number_bytes: int) -> float:
    """The product of features of so many numbers and a matrix of f columns: to read them and to
    compute it."""
    product = product_seconds(target, numbers, 1, f) * number_bytes / 4
    return product + stream_seconds(target, numbers, number_bytes)


def sparse_features_seconds(target: Target, entries: float, f: int, number_bytes: int) -> float:
    """The same where only so many numbers are looked at, each with a row of the matrix: whatever
    takes longer, to go through them or to read the rows."""
    row = line_bytes(f * number_bytes, target.caches.line) / target.speeds.near_bytes
    return entries * max(target.speeds.entry_seconds, row)


def line_bytes(row: int, line: int) -> int:
    """What a row of so many bytes takes of cache lines, on average over the rows of a buffer; of
    rows shorter than a line, several are used once one is fetched."""
    return row if row < line else row + line - math.gcd(row, line)
