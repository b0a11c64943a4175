"""The tensors of a call as sets and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ....runtime.at_once import Given
from ....runtime.sets.arrangement import LARGEST, Column
from ....runtime.sets.sets import MapData, SetData
from ....runtime.tensors import CPU, TORCH
from ..importer.binding import (
    DropoutKey,
    FromSize,
    FromTensor,
    MapBinding,
    RowsBinding,
    SetBinding,
)
from .arrivals import ahead

INTEGERS = (torch.int64, torch.int32)
"""Types of what C checks where it lies."""


def structure_rows(r: RowsBinding, args: Sequence[Any]) -> NDArray[Any]:
    """An argument as the steps of the structure take it."""
    return for_structure(r, rows_of(r, args))


def for_structure(r: RowsBinding, x: Tensor) -> NDArray[Any]:
    """Rows as the steps of the structure take them, a single row with an axis as well."""
    x = x.detach()
    single = isinstance(r.source, FromTensor) and r.source.row_axis is None
    return (x.unsqueeze(0) if single else x).cpu().numpy()


def rows_of(r: RowsBinding, args: Sequence[Any]) -> Tensor:
    """An argument with its row axis in front, if it has one."""
    source = r.source
    if isinstance(source, FromTensor):
        x: Tensor = args[source.placeholder]
        x = x.movedim(source.row_axis, 0) if source.row_axis else x
        return x.contiguous()
    if isinstance(source, FromSize):
        return torch.tensor([source.size(args)], dtype=TORCH[r.elem], device=CPU)
    assert isinstance(source, DropoutKey)
    return dropout_key()


def dropout_key() -> Tensor:
    """The number that a call draws its masks by."""
    return torch.randint(-(2**63), 2**63 - 1, (1,), dtype=torch.int64, device=CPU)


class SetArgument:
    """Makes a set argument from the tensors that hold its maps; `names` are those of placeholders
    in errors. Where the set has an `order`, its rows are made to lie by it if they are many; those
    of a small set are in the caches anyway."""

    def __init__(self, s: SetBinding, names: Sequence[str]) -> None:
        self.name, self.order = s.name, s.order
        self.columns = [(m.label, m.placeholder, m.row_axis, m.index) for m in s.maps]
        self.maps = [
            (m, f"{names[m.placeholder]}{list(m.index) if m.index else ''}", _place(m))
            for m in s.maps
        ]
        # where all maps are rows of one list of edges: the placeholder, and which rows
        lists = {m.placeholder for m in s.maps if m.row_axis == 1 and len(m.index) == 1}
        self.edges = next(iter(lists)) if len(lists) == 1 else None
        self.rows = {m.label: m.index[0] for m in s.maps if m.placeholder == self.edges}
        if len(self.rows) < len(s.maps):
            self.edges = None

    def given(self, args: Sequence[Any]) -> Given | None:
        """The maps of a call as they lie in memory, not checked yet; None where one does not, or is
        not to."""
        columns: dict[str, Column] = {}
        rows: int | None = None
        for label, placeholder, axis, index in self.columns:
            x: Tensor = args[placeholder]
            shape, strides = x.shape, x.stride()
            if rows is None:
                rows = shape[axis]
            in_a_row = strides[axis] == 1 or rows < 2
            if shape[axis] != rows or x.dtype not in INTEGERS or not (in_a_row and x.is_cpu):
                return None
            address, width = x.data_ptr(), x.itemsize
            others = [d for d in range(len(shape)) if d != axis]
            for d, i in zip(others, index, strict=True):
                if not 0 <= i < shape[d]:
                    return None
                address += width * i * strides[d]
            columns[label] = address, width
        if self.order is not None and rows is not None and rows > LARGEST:
            return None
        made = None if self.edges is None else ahead(args[self.edges], self.rows)
        return Given(columns, rows or 0, made)

    def made(self, count: Mapping[str, int], args: Sequence[Any]) -> SetData:
        """The set of a call, by the sizes of all sets. Indices are not checked yet, and keep the
        tensors alive until they are.

        Raises:
            TypeError, ValueError: what is given for a map is none.
            IndexError: a value of a map by which rows are to lie leads to no row.
        """
        given: dict[int, NDArray[Any]] = {}  # to make an array of a tensor takes long
        maps: dict[str, MapData] = {}
        for m, what, place in self.maps:
            if m.placeholder not in given:
                given[m.placeholder] = args[m.placeholder].detach().cpu().numpy()
            column = given[m.placeholder][place]
            maps[m.label] = MapData.of(column, count[m.codomain], what=what)
        made = SetData(count[self.name], maps, name=self.name)
        if self.order is not None and made.size > LARGEST:
            return made.in_order_of(self.order)
        if self.edges is not None:
            made.ahead = ahead(args[self.edges], self.rows)
        return made


def columns_of(m: MapBinding, args: Sequence[Any]) -> NDArray[Any]:
    """The integers of a map."""
    return args[m.placeholder].detach().cpu().numpy()[_place(m)]


def _place(m: MapBinding) -> tuple[int | slice, ...]:
    """Which numbers of the tensor are the map's."""
    return (*m.index[: m.row_axis], slice(None), *m.index[m.row_axis :])
