"""How the graph of one call is cut: what its tensors say of the sets of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....runtime.ranks.communicator import Communicator
from ....runtime.sets.sets import MapData
from ..calls.arguments import columns_of
from ..importer.binding import MapBinding
from . import cut_tensors, lookups
from .cut_tensors import NodePart
from .partitioned import Ranked


class Parts:
    """How the graph of one call is cut, by the sets of the program that was partitioned. `tables`
    are those that nodes read by an index."""

    def __init__(
        self,
        ranked: Ranked,
        args: Sequence[Any],
        names: Sequence[str],
        tables: Mapping[str, NodePart],
    ) -> None:
        self.ranked = ranked
        self.edges = {s: cut_tensors.edges_of(args[i], names[i]) for s, i in ranked.edges.items()}
        self.nodes: dict[str, NodePart] = {**tables}
        for s in ranked.imported.sets:
            if s.name in self.edges:
                for m in s.maps:
                    if m.placeholder == ranked.edges[s.name]:
                        part = self.edges[s.name]
                        self._add(m.codomain, part.target if m.index[0] else part.source, names, m)
        found = [
            (s, cut_tensors.of(args[place]))
            for (place, _), s in ranked.totals.items()
            if s in ranked.cut.nodes
        ]
        for s, cut in found:
            if cut is not None and cut.kind == "nodes":
                assert isinstance(cut.part, NodePart)
                self.nodes.setdefault(s, cut.part)
        for s, cut in found:
            if cut is not None and cut.kind == "table" and s not in tables:
                assert isinstance(cut.part, NodePart)
                if not (part := self.nodes.setdefault(s, cut.part)).adds_to(cut.part):
                    raise ValueError(
                        f"{cut.parameter} is sharded and has {cut.shape[0]} rows, of which "
                        f"{len(cut.part.owned)} are this rank's: it is used as rows of "
                        f"{part.total} nodes, of which {len(part.owned)} are"
                    )

    def _add(self, name: str, part: NodePart, names: Sequence[str], m: MapBinding) -> None:
        known = self.nodes.setdefault(name, part)
        if part.adds_to(known):
            self.nodes[name] = part
        elif not known.adds_to(part):
            raise ValueError(
                f"{names[m.placeholder]} leads to nodes that are cut in another way than those of "
                "another argument"
            )

    def total(self, s: str) -> int:
        """Rows of a set on all ranks."""
        return self.edges[s].total if s in self.edges else self.nodes[s].total

    def numbers(self, name: str) -> NDArray[np.int64]:
        """The numbers that rows of a new set have in the whole graph."""
        cut = self.ranked.cut
        for s, nodes in cut.nodes.items():
            if name == nodes.own:
                return self.nodes[s].owned
            if name in nodes.ghost:
                return self.nodes[s].ghosts[self.nodes[s].ghost_chunk == cut.chunk[name]]
        for s, part in self.edges.items():
            if name in cut.parts[s]:
                return part.numbers[part.runs[cut.parts[s].index(name)]]
        raise ValueError(f"the numbers of the rows of {name} in the whole graph are not known")


def tables_read(
    ranked: Ranked, args: Sequence[Any], names: Sequence[str], communicator: Communicator
) -> dict[str, NodePart]:
    """The tables that nodes read by an index, by the sets of their rows, with the rows of other
    ranks that are read. All ranks call it.

    Raises:
        IndexError: there is no such row.
    """
    out: dict[str, NodePart] = {}
    for s, found in ranked.lookups.items():
        table = cut_tensors.of(args[found.table])
        assert table is not None and isinstance(table.part, NodePart)
        rows = [numbers_of(m, args, table.part.total, names) for m in found.maps]
        out[s] = lookups.part_read(table.part, rows, communicator)
    return out


def numbers_of(
    m: MapBinding, args: Sequence[Any], total: int, names: Sequence[str]
) -> NDArray[np.int64]:
    """The numbers of a map to rows of which there are so many on all ranks.

    Raises:
        IndexError: there is no such row.
    """
    what = f"{names[m.placeholder]}{list(m.index) if m.index else ''}"
    return MapData.of(columns_of(m, args), total, what=what).array.astype(np.int64)
