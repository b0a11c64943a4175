"""Rows that lie in files, arrays or tensors: those of one rank, of all of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....runtime import mapped
from ....runtime.partition.edges import Int64


@dataclass(frozen=True)
class Rows:
    """All rows, where they lie; `written` unless nobody else can have written to them."""

    x: Tensor
    written: bool


def opened(name: str, value: Any, count: int, row: str) -> Rows:
    """All rows of a `.npy` file, an array or a tensor; `name` and `row` are what errors call them,
    and what one of the `count` is a row of.

    Raises:
        OSError: the file cannot be read.
        TypeError: the dtype is none of torch's.
        ValueError: there are not so many rows, the file is no `.npy` file, or they do not lie on
            the CPU where they can be written to.
    """
    written = not isinstance(value, str | Path)
    if isinstance(value, str | Path):
        try:
            value = mapped.load(Path(value).expanduser())
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:  # torch would write to it all the same
            raise ValueError(f"{name}: an array that can be written to, or the path of its file")
        try:
            value = torch.from_numpy(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}: {error}") from error
    x: Tensor = value.detach()
    if not x.is_cpu or x.layout is not torch.strided:
        raise ValueError(f"{name}: a dense tensor on the CPU is needed")
    if not x.ndim or len(x) != count:
        raise ValueError(
            f"{name}: {list(x.shape)}, and the partition is of a graph of {count} {row}s: a row "
            f"a {row} is needed"
        )
    return Rows(x, written)


def chosen_rows(rows: Rows, chosen: Int64, stops: Sequence[int]) -> Tensor:
    """The chosen rows, which ascend between these `stops`: a view where they are one after the
    other, else read block by block, so that of a file no more than a block is in memory."""
    x, count = rows.x, len(chosen)
    if not count:
        return x[:0]
    first = int(chosen[0])
    ascending = all(chosen[i - 1] < chosen[i] for i in stops if 0 < i < count)
    if ascending and int(chosen[-1]) - first + 1 == count:
        return x[first : first + count]
    out = torch.empty(count, *x.shape[1:], dtype=x.dtype)
    for run in map(slice, (0, *stops), stops):
        _take(rows, chosen[run], out[run])
    return out


def _take(rows: Rows, chosen: Int64, out: Tensor) -> None:
    x = rows.x
    if not mapped.holds(x.data_ptr()):
        torch.index_select(x, 0, torch.from_numpy(chosen), out=out)
        return
    for first, block in mapped.passing(x.numpy(), written=rows.written):
        low, high = np.searchsorted(chosen, (first, first + len(block)))
        places = torch.from_numpy(chosen[low:high] - first)
        torch.index_select(torch.from_numpy(block), 0, places, out=out[low:high])
        mapped.give_back(chosen[low:high], written=False)
