"""Results on sets that a program makes of cut ones: the rows of all parts, as the rows of one set.

A union that is made of cut sets is, on ranks, one union of what is local and one of what leads from
the ghosts of each chunk, each with some rows of all its parts. Callers know nothing of that: to
them the rows of a union are those of its first part, local and then remote ones, then those of the
second, as where the union is made of the sets that a rank has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from ....dialects.inter.builder import Builder
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import UnionOp
from ....dialects.inter.types import rows, set_name, set_type
from .sets import Cut


class MadeResults:
    """The rows of made sets, in the order of callers; `old` has the sets before, `of_union` says
    which operands of an old union the parts of a new one are."""

    def __init__(self, old: SetEnv, cut: Cut, of_union: Mapping[str, Sequence[int]]) -> None:
        self.old, self.cut, self.of_union = old, cut, of_union
        self.joined: dict[tuple[str, ...], str] = {}

    def of(self, b: Builder, s: str, on: Callable[[str], SSAValue]) -> SSAValue:
        """A value on the old set `s`, which `on` gives as rows of each of its parts."""
        each = self._each(b, s, {part: on(part) for part in self.cut.parts[s]})
        if len(each) == 1:
            return each[0]
        parts = tuple(rows(v).dom.set for v in each)
        if parts not in self.joined:
            self.joined[parts] = set_name(b.union(*parts, name=f"{s}_result"))
        return b.stack(self.joined[parts], *each)

    def _each(self, b: Builder, s: str, known: Mapping[str, SSAValue]) -> list[SSAValue]:
        """The rows of each part that is no union, in their order, of the rows of unions."""
        made = self.old.info(s).value.owner
        if not isinstance(made, UnionOp) or not self.of_union.keys() >= known.keys():
            return list(known.values())
        out: list[SSAValue] = []
        for i, source in enumerate(map(set_name, made.operands)):
            mine: dict[str, SSAValue] = {}
            for union, v in known.items():
                names = set_type(b.set(union)).part_names
                for j, (name, of) in enumerate(zip(names, self.of_union[union], strict=True)):
                    if of == i:
                        mine[name] = b.part(j, union, v)
            out += self._each(b, source, mine)
        return out
