"""The arguments of a captured step on each of several ranks: what these have in folders of their
own, beside what all read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ....codegen.standalone.description import (
    LISTED,
    PART,
    Array,
    Condition,
    Fixed,
    Key,
    MapArgument,
    NoProgram,
    Numbers,
    OfArray,
    SetArgument,
    SizeText,
)
from ....runtime.sets.sets import SetData
from ..graph_step import StepCall
from ..importer.binding import FromSize, FromTensor, Imported, RowsBinding
from ..ranks.partitioned import Ranked, WholeNumbers
from .arguments import Arguments
from .array_names import ArrayNames
from .cut_graph import CutGraph


class RankArguments(Arguments):
    """What the program of a step is given on each of `ranks` ranks. `read` are the names of the
    rows that its phases and its structure take. Sizes are those of the graph that is cut, so there
    are no conditions.

    Raises:
        NoProgram: what the step changes has a row for each node or edge, or as CutGraph does.
    """

    def __init__(
        self,
        call: StepCall,
        ranked: Ranked,
        names: ArrayNames,
        begun: Sequence[bool],
        ranks: int,
        read: frozenset[str],
    ) -> None:
        pairs = zip(call.given, ranked.imported.placeholders, strict=True)
        self.cut = CutGraph(ranked, call.given, [names.shown(x, p) for x, p in pairs], ranks)
        imported = _read(ranked.imported, read)
        self.set_of_rows = {r.name: self.cut.set_of(r) for r in imported.rows}
        self.whole = {
            r.source.placeholder
            for r in imported.rows
            if isinstance(r.source, FromTensor) and self.set_of_rows[r.name] is None
        }
        self.on_rank: dict[int, Callable[[int], NDArray[Any]]] = {}
        """For each array of the folders of ranks, by its number, what it holds on a rank."""
        self.of_rows: dict[str, int] = {}
        """The arrays of arguments of rows, by their names."""
        self.taken = {LISTED}
        super().__init__(call, imported, names, begun)
        for r in imported.rows:
            if (s := self.set_of_rows[r.name]) is not None:
                self._cut_rows(r, s)
        self.cut_sets = [self._cut_set(name, x) for name, x in self.cut.sets[0].items()]

    def parts(self) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
        """The folders of ranks, with their arrays by name."""
        for rank in range(self.cut.ranks):
            listed = np.array([rank, self.cut.ranks, self.cut.number], np.int64)
            arrays = {self.arrays[k].name: of(rank) for k, of in self.on_rank.items()}
            yield f"data/{PART}-{rank}", {LISTED: listed, **arrays}

    # ------------------------------------------------------------ arrays

    def _array(self, place: int, x: Tensor) -> None:
        """Arrays that all ranks read, as where there are none."""
        if place in self.whole:
            super()._array(place, x)

    def _dims(self, sizes: Sequence[Any], x: Tensor) -> Iterator[int | str | None]:
        yield from map(int, x.shape)

    def _cut_rows(self, r: RowsBinding, s: str) -> None:
        name = f"{s}.number"
        if isinstance(r.source, FromTensor):
            place = r.source.placeholder
            x: Tensor = self.call.given[place]
            name = self.names.of(x, self._name(place))[1]
            if x.requires_grad or place in {u.placeholder for u in self.imported.updates}:
                raise NoProgram(
                    f"{name} has rows that belong to ranks, and the step changes them: what a "
                    "program for ranks learns is the same on all, and has no row for each node or "
                    "edge"
                )
        first = self.cut.rows(r, 0)
        dims = (s, *first.shape[1:])
        self.of_rows[r.name] = self._part(name, r.elem, dims, lambda k: self.cut.rows(r, k))

    def _cut_set(self, name: str, x: SetData) -> SetArgument:
        """A set whose maps are arrays; the size is that of these, or the same on all ranks."""
        maps: list[MapArgument] = []
        of_name = self.cut.ranked.cut.types[name].map_dict()
        for label, m in of_name.items():
            array = self._part(f"{name}.{label}", "i32", (name,), self._map_on(name, label))
            maps.append(MapArgument(label, m.codomain, array, 0, 0))
        if not maps:
            return SetArgument(name, SizeText(str(x.size), {}), ())
        return SetArgument(name, SizeText("n", {"n": (maps[0].array, 0)}), tuple(maps))

    def _map_on(self, name: str, label: str) -> Callable[[int], NDArray[Any]]:
        return lambda rank: self.cut.sets[rank][name].map(label).array

    def _part(
        self,
        name: str,
        elem: str,
        dims: tuple[int | str, ...],
        on_rank: Callable[[int], NDArray[Any]],
    ) -> int:
        unique, k = name, 1
        while unique in self.taken:
            k += 1
            unique = f"{name}_{k}"
        self.taken.add(unique)
        self.arrays.append(Array(unique, PART, elem, dims))
        self.on_rank[len(self.arrays) - 1] = on_rank
        return len(self.arrays) - 1

    # ------------------------------------------------------------ the description

    def sets(self) -> list[SetArgument]:
        """See Arguments: those of the partitioned program."""
        return self.cut_sets

    def conditions(self) -> list[Condition]:
        """See Arguments: all have been looked at while the step was compiled."""
        return []

    def _label(self, r: RowsBinding) -> str:
        if r.name in self.of_rows:
            return self.arrays[self.of_rows[r.name]].name
        return super()._label(r)

    def _row_source(self, r: RowsBinding) -> OfArray | SizeText | Key | Numbers | Fixed:
        if r.name in self.of_rows:
            return OfArray(self.of_rows[r.name], 0)
        if isinstance(r.source, FromSize):
            number = r.source.size(self.call.given)
            return Fixed((number,)) if r.source.size.kind is float else _size(int(number))
        return super()._row_source(r)


def _read(imported: Imported, read: frozenset[str]) -> Imported:
    """Without the numbers of rows in the whole graph that nothing asks for."""
    rows = (r for r in imported.rows if r.name in read or not isinstance(r.source, WholeNumbers))
    return replace(imported, rows=tuple(rows))


def _size(n: int) -> SizeText:
    return SizeText(str(n), {})
