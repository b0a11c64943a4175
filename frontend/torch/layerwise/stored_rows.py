"""Rows that stages hand on: in memory, or in files that go with them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from xdsl.ir import SSAValue

from ....dialects.inter.types import RowsType
from ....runtime.program import DTYPES
from ....runtime.tensors import TORCH


class StoredRows:
    """Values with all their rows, by what they are in the program. `load` gives an argument.

    `held` are the bytes of what was made here and not freed yet; arguments are not among them.
    """

    def __init__(self, load: Callable[[SSAValue], Tensor], folder: Path | None) -> None:
        self.load = load
        self.folder = folder
        self.values: dict[SSAValue, Tensor] = {}
        self.made: set[SSAValue] = set()
        self.held = 0

    def __getitem__(self, v: SSAValue) -> Tensor:
        if v not in self.values:
            self.values[v] = self.load(v)
        return self.values[v]

    def make(self, v: SSAValue, t: RowsType, rows: int) -> Tensor:
        """Memory for the rows of a value, undefined."""
        elem, shape = str(t.elem), (rows, *t.dims)
        size = int(np.prod(shape)) * TORCH[elem].itemsize
        if self.folder is None or not size:
            x = torch.empty(shape, dtype=TORCH[elem])
        else:
            with tempfile.TemporaryFile(dir=self.folder) as file:  # the mapping keeps it
                file.truncate(size)
                x = torch.from_numpy(np.memmap(file, DTYPES[elem], "r+", shape=shape))
        self.keep(v, x)
        return x

    def keep(self, v: SSAValue, x: Tensor) -> None:
        """Have a value that was made."""
        self.values[v] = x
        self.made.add(v)
        self.held += x.nbytes

    def free(self, v: SSAValue) -> None:
        """Drop a value that nobody reads any more."""
        x = self.values.pop(v)
        if v in self.made:
            self.held -= x.nbytes
