"""A graph cut for a number of ranks while a program is built: the sets of each, and its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....codegen.standalone.description import NoProgram
from ....runtime.partition import assign, edges
from ....runtime.partition.parts import make_typed_part
from ....runtime.ranks import virtual
from ....runtime.ranks.communicator import Communicator
from ....runtime.sets.sets import MapData, SetData
from ..calls.arguments import columns_of, rows_of
from ..importer.binding import FromTensor, MapBinding, RowsBinding, SetBinding
from ..ranks import cut_tensors
from ..ranks.call_parts import Parts
from ..ranks.cut_tensors import CutTensor, EdgePart
from ..ranks.partition_folder import index_of
from ..ranks.partitioned import OfEdges, Ranked, WholeNumbers
from ..ranks.ranked_program import PATIENCE, RankSets
from ..ranks.typed_parts import EdgesOfType, TypedParts, together
from ..ranks.whole_graph import ends_of

Int64 = NDArray[np.int64]


class CutGraph:
    """The parts of a graph for `ranks` ranks, of the arguments `given` to a program, which messages
    call by `names`.

    Attributes:
        sets: for each rank the sets of the partitioned program by name.
        number: a number that tells this graph, cut in this way, from others.

    Raises:
        NoProgram: a tensor holds maps of two sets that are cut.
    """

    def __init__(
        self, ranked: Ranked, given: Sequence[Any], names: Sequence[str], ranks: int
    ) -> None:
        self.ranked, self.given, self.names, self.ranks = ranked, given, names, ranks
        self.bound = {s.name: s for s in ranked.imported.sets}
        self.nodes = list(ranked.cut.nodes)
        self.totals = [self._total(s) for s in self.nodes]
        self.edges = list(ranked.edges)
        graph, types = together(self.totals, [self._type(self.bound[s]) for s in self.edges])
        owner = assign.partition(assign.Task(graph, ranks)).owner
        digest = hashlib.sha256(f"{edges.fingerprint(graph)} {ranks} ".encode() + owner.tobytes())
        self.number = int.from_bytes(digest.digest()[:7], "big")
        starts = np.cumsum([0, *self.totals])
        self.owners = dict(zip(self.nodes, np.split(owner, starts[1:-1]), strict=True))
        self.others = {s.name: m for s in self.bound.values() if (m := self._home(s)) is not None}
        every = (make_typed_part(r, ranks, owner, graph, types) for r in range(ranks))
        self.parts = [
            RankOfGraph(self, r, TypedParts(part, types, 1)) for r, part in enumerate(every)
        ]
        self.sets: list[dict[str, SetData]] = virtual.run(
            ranks, lambda c: self.parts[c.rank].sets(c), patience=PATIENCE
        )

    def _total(self, s: str) -> int:
        return int(self.bound[s].size(self.given))

    def _type(self, s: SetBinding) -> EdgesOfType:
        ends = ends_of(s)
        assert ends is not None  # whole_graph.note_ends has made it known
        columns = [columns_of(m, self.given).astype(np.int64, copy=False) for m in ends]
        source, target = (self.nodes.index(m.codomain) for m in ends)
        return EdgesOfType(source, target, np.stack(columns), self.names[ends[0].placeholder])

    def _home(self, s: SetBinding) -> MapBinding | None:
        """The map of a set that is no edges into nodes that are cut: a row lies with its node."""
        if s.name in self.ranked.edges or s.name in self.owners:
            return None
        return next((m for m in s.maps if m.codomain in self.owners), None)

    def set_of(self, r: RowsBinding) -> str | None:
        """The set of the partitioned program that an argument of rows is of, where ranks have other
        rows of it.

        Raises:
            NoProgram: it is the ends of edges, read as numbers.
        """
        cut, source = self.ranked.cut, r.source
        if isinstance(source, WholeNumbers):
            return source.set
        if not isinstance(source, FromTensor):
            return None
        if source.placeholder in self.ranked.edges.values():
            raise NoProgram(
                f"the step computes with the numbers in {self.names[source.placeholder]}, which "
                "are others on each rank: it may lead along edges alone"
            )
        if isinstance(source, OfEdges):
            edge_set = next(s for s, p in self.ranked.edges.items() if p == source.index)
            return cut.parts[edge_set][source.part]
        s = self.ranked.row_sets.get(r.name)
        if s in self.owners or s in self.others:
            return cut.parts[s][0]
        return None

    def rows(self, r: RowsBinding, rank: int) -> NDArray[Any]:
        """The rows of one rank, of an argument that has a `set_of`."""
        chosen = self.parts[rank].numbers(self.set_of(r))
        if isinstance(r.source, WholeNumbers):
            return chosen
        return np.ascontiguousarray(rows_of(r, self.given).detach().numpy()[chosen])


class RankOfGraph:
    """What one rank has of a graph.

    Attributes:
        nodes: for each set of nodes the rank's, and edges: for each set of edges these and their
            ends, as places among nodes and ghosts.
        chosen: of each other set whose rows lie with nodes, the numbers of the rank's rows.
        args: the arguments of the program, of which those with maps are the rank's.
    """

    def __init__(self, graph: CutGraph, rank: int, parts: TypedParts) -> None:
        self.graph, self.rank = graph, rank
        self.nodes = dict(zip(graph.nodes, parts.nodes, strict=True))
        self.edges = dict(zip(graph.edges, parts.edges, strict=True))
        self.chosen = {
            s: np.flatnonzero(graph.owners[m.codomain][columns_of(m, graph.given)] == rank)
            for s, m in graph.others.items()
        }
        self.args = list(graph.given)
        self.roles: dict[int, str] = {}
        """Of which set a tensor of arguments has maps."""
        for s, (part, ends) in self.edges.items():
            self._take_ends(s, part, ends)
            self._take_maps(s, part.numbers)
        for s, part in self.nodes.items():
            self._take_maps(s, part.owned)

    def _take_ends(self, s: str, part: EdgePart, ends: Int64) -> None:
        place = self.graph.ranked.edges[s]
        self._note(s, place)
        self.args[place] = x = index_of(ends)
        cut_tensors.note(x, CutTensor("index", part, (2, part.total)))

    def _take_maps(self, s: str, chosen: Int64) -> None:
        """The rows of the other tensors that have maps of a set."""
        rows = torch.from_numpy(chosen)
        for m in self.graph.bound[s].maps:
            if m.placeholder != self.graph.ranked.edges.get(s):
                self._note(s, m.placeholder)
                x: Tensor = self.graph.given[m.placeholder]
                self.args[m.placeholder] = x.index_select(m.row_axis, rows)

    def _note(self, s: str, place: int) -> None:
        if self.roles.setdefault(place, s) != s:
            raise NoProgram(
                f"the step takes {self.graph.names[place]} for two things, of which ranks have "
                "other rows: give it twice"
            )

    def numbers(self, s: str | None) -> Int64:
        """The numbers that the rows of a set of the partitioned program have in the whole graph."""
        assert s is not None
        if s in self.chosen:
            return self.chosen[s]
        return self.of_graph().numbers(s)

    def of_graph(self) -> Parts:
        """How the graph is cut, as a rank that runs in Python knows it."""
        return Parts(self.graph.ranked, self.args, self.graph.names, {})

    def sets(self, communicator: Communicator) -> dict[str, SetData]:
        """The sets of this rank; all ranks call it, for what nodes of others have of maps."""
        graph = self.graph
        count = {s.name: int(s.size(graph.given)) for s in graph.bound.values()}
        count |= {s: len(part.owned) for s, part in self.nodes.items()}
        count |= {s: len(part.numbers) for s, (part, _) in self.edges.items()}
        return _Sets(self, count, communicator).made()


class _Sets(RankSets):
    """The sets of a rank, where those that are no edges lie with their nodes too."""

    def __init__(
        self, rank: RankOfGraph, count: Mapping[str, int], communicator: Communicator
    ) -> None:
        super().__init__(rank.graph.ranked, rank.of_graph(), count, rank.args, communicator)
        self.rank = rank

    def other(self, s: SetBinding) -> SetData:
        """See RankSets."""
        chosen = self.rank.chosen.get(s.name)
        if chosen is None:
            return super().other(s)
        maps: dict[str, MapData] = {}
        for m in s.maps:
            column = columns_of(m, self.rank.graph.given)[chosen]
            if m.codomain in self.rank.nodes:
                column = np.searchsorted(self.rank.nodes[m.codomain].owned, column)
            maps[m.label] = self._map(m, column, m.codomain)
        return self._set(s.name, len(chosen), maps)
