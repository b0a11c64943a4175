"""Maps that a program attaches to cut sets: where they lead among the rows of a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter.builder import Builder
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import AttachOp
from ....dialects.inter.types import set_name, set_type
from ....dialects.inter.values import IotaOp
from .first_rows import FirstRows
from .places import path_of, place_in_union
from .sets import Cut

MadeMap = tuple[SSAValue, str, Sequence[str]]
"""The numbers of a map, where it leads, its flags."""


@dataclass
class MadeMaps:
    """New maps on the parts of their sets; `old` has the sets before, `of_union` says which
    operands of an old union the parts of a new one are."""

    b: Builder
    old: SetEnv
    cut: Cut
    of_union: Mapping[str, Sequence[int]]
    first_rows: FirstRows
    on: Callable[[SSAValue, str], SSAValue]
    """The rows of a value as a new set has them."""

    def of(self, op: AttachOp, part: str, label: str) -> dict[str, MadeMap]:
        """The maps that the set `label` gets, on one part of it; without those that it has there.

        Raises:
            PassFailedException: it is not known to which rank a row leads.
        """
        maps: dict[str, MadeMap] = {}
        for x, (k, m) in zip(op.xs, op.new_maps().items(), strict=True):
            whole = self.cut.parts[m.codomain] == (m.codomain,)
            if whole and not self.cut.is_cut(m.codomain):
                maps[k] = self.on(x, part), m.codomain, m.flags
            elif (made := self._to_cut_set(op, x, part, (k, m.codomain, label))) is not None:
                maps[k] = *made, m.flags
        return maps

    def _to_cut_set(
        self, op: AttachOp, x: SSAValue, part: str, named: tuple[str, str, str]
    ) -> tuple[SSAValue, str] | None:
        """A map that leads to a cut set; None where the part has it. `named` are its label, where
        it leads and the set that gets it."""
        b, (k, codomain, label) = self.b, named
        if (place := place_in_union(op, x, self.old.value(codomain))) is not None:
            (union,) = self.cut.parts[codomain]
            return self._place(part, union, *place), union
        path = self._path(op, x)
        if path is not None and (set_name(op.set), path) not in self.cut.lookups:
            return b.index(part, path), b.env.codomain(part, path)
        if not (paths := self._paths(op, x, part)):
            raise PassFailedException(
                f"partition: the map {k} of {label} is computed and leads to the cut set "
                f"{codomain}: give the set as an argument"
            )
        if k in set_type(b.set(part)).map_dict() and [k] == [p for _, p in paths]:
            return None  # a union of one part has the maps of that
        ends = {b.env.codomain(*at) for at in paths}
        if len(ends) > 1:
            raise PassFailedException(
                f"partition: the map {k} of {label} leads to {', '.join(sorted(ends))}: loops are "
                "of as many nodes as x.size(0) is, or as the greatest number of a node says"
            )
        return b.stack(part, *(b.index(*at) for at in paths)), ends.pop()

    def _path(self, op: AttachOp, x: SSAValue) -> str | None:
        """The path of maps among the rows of a rank that a new map is."""
        numbers = x.owner
        if isinstance(numbers, IotaOp) and set_name(numbers.set) in self.first_rows.part:
            return self.first_rows.path_to_nodes(numbers)
        return path_of(op, x)

    def _paths(self, op: AttachOp, x: SSAValue, part: str) -> list[tuple[str, str]]:
        """The paths of maps that a new map of a union is, one of each of its parts."""
        names = set_type(self.b.set(part)).part_names
        places = self.of_union[part] if names else ()
        return self.first_rows.paths(op, x, list(zip(names, places, strict=True)))

    def _place(self, part: str, union: str, path: str, index: int) -> SSAValue:
        """Where in a union of owned rows that row lies that a path of maps leads to, a row of the
        union's part `index`."""
        rows_of_part = set_type(self.b.set(union)).part_names[index]
        if self.b.env.codomain(part, path) != rows_of_part:
            raise PassFailedException(
                f"partition: {path} of {part} leads to rows of other ranks, which {union} has not"
            )
        return self.b.at(part, path, self.b.part(index, union, self.b.iota(union)))
