"""A partitioned program behind torch's calling convention, for the rows of one rank."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx

from ....dialects.inter.ranks import PEER, RANK
from ....passes.inter.partitioning.sets import OWNER, Nodes
from ....runtime.program import OnGraph, Program
from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.exchanges import exchanges
from ....runtime.ranks.world import world
from ....runtime.sets.sets import MapData, SetData
from ....runtime.tensors import prepare
from ..calls.arguments import SetArgument, columns_of, dropout_key
from ..calls.bound_program import BoundProgram
from ..calls.replay import Replay
from ..importer.binding import (
    DropoutKey,
    FromSize,
    Imported,
    MapBinding,
    RowsBinding,
    SetBinding,
    Size,
)
from ..importer.emit.arguments import argument_name
from . import asked_of_all, cut_tensors, given_numbers
from .call_parts import Parts, numbers_of, tables_read
from .call_start import LEAST, Begun, begun
from .cut_tensors import EdgePart, NodePart
from .lookups import edges_read
from .partitioned import OfEdges, Ranked, WholeNumbers, with_whole_sizes

PATIENCE = 600.0
"""Seconds that ranks wait for one that compiles or prepares a graph."""


class RankedProgram(BoundProgram):
    """Calls a program on the rows of this rank; all ranks make the same calls in the same order."""

    def __init__(
        self,
        ranked: Ranked,
        program: Program,
        graph: fx.GraphModule | None,
        tell: Callable[[str], None],
        prepared: Counter[int],
    ) -> None:
        """`prepared` counts, for all programs of a callable by `number`, how often they prepared
        something."""
        self.ranked, self.prepared = ranked, prepared
        self.tables: Mapping[str, NodePart] = {}  # those of the graph of a call, by their sets
        digest = hashlib.sha256(program.source.encode()).digest()
        self.number = int.from_bytes(digest[:7], "big")
        super().__init__(ranked.imported, program, graph, tell, ranked.imported.device)
        self.places = None
        changed = {u.argument for u in self.imported.updates}
        self.few = [r for r in self.passed_rows if given_numbers.are_few(r, changed)]
        self.draws = any(isinstance(r.source, DropoutKey) for r in self.passed_rows)

    def replay_of(self, graph: fx.GraphModule, imported: Imported) -> Replay:
        """See BoundProgram."""
        return NoReplay(graph, imported, self.ranked.alike)

    def in_torch(self, args: Sequence[Any], refused: Exception) -> NoReturn:
        """torch knows the rows of one rank only."""
        raise refused

    def elsewhere(self, args: Sequence[Any], refused: Exception) -> NoReturn:
        """See `in_torch`."""
        raise refused

    # ------------------------------------------------------------ rows

    def rows_of(self, r: RowsBinding, args: Sequence[Any]) -> Tensor:
        """See BoundProgram."""
        source = r.source
        if isinstance(source, WholeNumbers):
            return torch.from_numpy(self.parts(args).numbers(source.set))
        if isinstance(source, FromSize):
            return super().rows_of(r, self.whole(args))
        if isinstance(source, DropoutKey):
            return self.key
        x = super().rows_of(r, args)
        if not isinstance(source, OfEdges):
            return x
        edges = cut_tensors.edges_of(args[source.index], "edges")
        x = x[edges.runs[source.part]]
        known = cut_tensors.of(args[source.placeholder])
        return edges.numbers_of_ends(x) if known is not None and known.kind == "index" else x

    def whole(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments of a call as those with the sizes of the whole graph."""
        parts, totals = self.parts(args), self.ranked.totals
        known = [cut_tensors.whole(x) for x in args]
        return with_whole_sizes(known, {at: parts.total(s) for at, s in totals.items()})

    def parts(self, args: Sequence[Any]) -> Parts:
        """What the tensors of a call say of how the graph is cut."""
        return Parts(self.ranked, args, self.names, self.tables)

    # ------------------------------------------------------------ structure

    def on_graph(self, args: Sequence[Any]) -> OnGraph:
        """See BoundProgram. What is prepared may need rows of other ranks: it is on all or none,
        whatever each finds in its memory. What is dropped is what rank 0 drops.

        Raises:
            Disagreement: ranks call other programs, or give other numbers.
        """
        tensors, of_graph = self.graph_of(args)
        communicator, known = world(), self.memo.knows(tensors, of_graph)
        communicator.begin_call()
        key = int(dropout_key()) if self.draws else 0
        numbers = [self.rows_of(r, args) for r in self.few]
        given = given_numbers.checksum(numbers)
        drawn = LEAST if communicator.rank else key
        mine = Begun(self.number, -self.number, given, -given, not known, drawn)
        most = begun(communicator, mine, self.imported.of_all)
        if most.number != -most.minus_number:
            communicator.agree("the program of a call", self.program.source)
        if most.given != -most.minus_given:
            given_numbers.agree(communicator, [r.name for r in self.few], numbers)
        if most.unprepared:
            self.memo.drop_for(tensors, of_graph)
        self.key = torch.tensor([most.key], dtype=torch.int64)
        graph = self.memo.get_for(tensors, of_graph, lambda: self.make_graph(args, of_graph[0]))
        self.tables = graph.noted
        return graph

    def make_graph(self, args: Sequence[Any], sizes: Sequence[int]) -> OnGraph:
        """See BoundProgram."""
        communicator = world()
        asked_of_all.check(self.imported.asked, self.imported.placeholders, args)
        with communicator.stage("prepare a graph", PATIENCE):
            self.tables = tables_read(self.ranked, args, self.names, communicator)
            parts = self.parts(args)
            count = self.counts(args, sizes, communicator)
            sets = RankSets(self.ranked, parts, count, args, communicator)
            memory = self.program.loaded.memory(self.device)
            carrier = exchanges(communicator, sets.peers(), memory)
            rows = {r.name: self.structure_rows(r, args) for r in self.structure_rows_bound}
            graph = self.program.on_graph(sets.made(), rows, self.device, carrier)
            graph.noted = self.tables
            with torch.no_grad():
                prepare(graph, {r.name: self.rows_of(r, args).detach() for r in self.early_rows})
        self.note_graph(count)
        return graph

    def counts(
        self, args: Sequence[Any], sizes: Sequence[int], communicator: Communicator
    ) -> dict[str, int]:
        """How many rows this rank has of each set, of which `sizes` tell what its tensors say.

        Raises:
            Disagreement: ranks have other numbers of what all are to have.
        """
        whole, cut = self.whole(args), self.ranked.cut
        count = {
            s.name: n if s.size.place is not None else int(s.size(whole))
            for s, n in zip(self.imported.sets, sizes, strict=True)
        }
        alike = {s: n for s, n in count.items() if s in cut.types and not cut.is_cut(s)}
        if alike:
            communicator.agree("the numbers of rows that all ranks have", str(alike))
        return count

    def note_graph(self, count: Mapping[str, int]) -> None:
        """See BoundProgram. Ranks may have traced other numbers of programs with one text: what is
        counted by the text is the same on all. The sizes of graphs stay untold: no rank compiles
        for those that it alone has met."""
        self.prepared[self.number] += 1

    def states_met(self) -> int:
        """See BoundProgram."""
        return self.prepared[self.number]


class NoReplay(Replay):
    """What would be run again in torch. `alike` are the results that are the same on all ranks."""

    def __init__(self, graph: fx.GraphModule, imported: Imported, alike: Collection[str]) -> None:
        super().__init__(graph, imported)
        self.alike = {i: r.name for i, r in enumerate(imported.results) if r.name in alike}

    def begins_backward(self, cotangents: Sequence[Tensor | None]) -> None:
        """See `Replay`. What is the same on all ranks has one gradient, which all give.

        Raises:
            Disagreement: ranks give others.
        """
        given = {name: cotangents[i] for i, name in self.alike.items()}
        if given:
            given_numbers.agree_on_gradients(world(), given)

    def can_repeat(self) -> bool:
        """See `Replay`."""
        return False

    def outputs(self, *_: Any) -> NoReturn:
        """Raises RuntimeError."""
        raise RuntimeError(
            "this is done by torch, which knows the rows of one rank only: gradients of gradients "
            "and between results are not computed over several ranks"
        )

    def gradients(self, *_: Any) -> NoReturn:
        """Raises RuntimeError."""
        self.outputs()


class RankSets:
    """The sets of a partitioned program as one rank has them."""

    def __init__(
        self,
        ranked: Ranked,
        parts: Parts,
        count: Mapping[str, int],
        args: Sequence[Any],
        communicator: Communicator,
    ) -> None:
        self.ranked, self.cut, self.parts, self.count = ranked, ranked.cut, parts, count
        self.args, self.communicator = args, communicator
        self.names = [argument_name(p) for p in ranked.imported.placeholders]
        self.bound = {s.name: s for s in ranked.imported.sets}

    def peers(self) -> dict[str, NDArray[Any]]:
        """The rank at the other end of each message."""
        out: dict[str, NDArray[Any]] = {}
        for s, nodes in self.cut.nodes.items():
            part = self.parts.nodes[s]
            for chunk, (_, sent, ghost) in enumerate(nodes.crossings):
                out[sent] = part.reader[part.sent_chunk == chunk]
                out[ghost] = part.ghost_owner[part.ghost_chunk == chunk]
        return out

    def made(self) -> dict[str, SetData]:
        """By name."""
        size = self.communicator.size
        out = {
            self.cut.peers: SetData(size, {}, name=self.cut.peers),
            self.cut.ranks: SetData(size, {PEER: MapData.identity(size)}, name=self.cut.ranks),
        }
        for s, nodes in self.cut.nodes.items():
            out |= self._nodes(s, nodes, self.parts.nodes[s])
        for s, label in self.cut.lookups:
            out |= self._lookup(s, label)
        for s in self.bound.values():
            if s.name in self.parts.edges:
                out |= self._edges(s, self.parts.edges[s.name])
            elif s.name not in self.cut.nodes:
                out[s.name] = self.other(s)
        return out

    def other(self, s: SetBinding) -> SetData:
        """A set that is no nodes or edges of the graph that is cut."""
        return SetArgument(s, self.names).made(self.count, self.args)

    def _nodes(self, s: str, nodes: Nodes, part: NodePart) -> dict[str, SetData]:
        n, size = len(part.owned), self.communicator.size
        if (given := self.count[s]) != n:
            said = self._said(self.bound[s].size)
            raise ValueError(f"{said} is {given}, and counts nodes, of which this rank has {n}")
        if part.chunks != len(nodes.ghost):
            raise ValueError(
                f"the rows of this part cross in {part.chunks} chunks, those of the call that this "
                f"was compiled for in {len(nodes.ghost)}"
            )
        own: dict[str, MapData] = {RANK: self._here(n)}
        far: dict[str, NDArray[Any]] = {}
        of_nodes = [m for m in self.bound[s].maps if (s, m.label) not in self.cut.lookups]
        for m in of_nodes:
            column = np.ascontiguousarray(columns_of(m, self.args))
            own[m.label] = self._map(m, column, m.codomain)
            far[m.label] = self._of_ghosts(column, part)
        out = {nodes.own: self._set(nodes.own, n, own)}
        for chunk, (_, sent, ghost) in enumerate(nodes.crossings):
            sends, reads = part.sent_chunk == chunk, part.ghost_chunk == chunk
            rows = part.sent[sends]
            maps = {OWNER: MapData.trusted(rows, n), PEER: to_rank(part.reader[sends], size)}
            out[sent] = self._set(sent, len(rows), maps | {RANK: self._here(len(rows))})
            owners = part.ghost_owner[reads]
            maps = {m.label: self._map(m, far[m.label][reads], m.codomain) for m in of_nodes}
            maps |= {RANK: self._here(len(owners)), PEER: to_rank(owners, size)}
            out[ghost] = self._set(ghost, len(owners), maps)
        return out

    def _said(self, size: Size) -> str:
        """What the arguments call a size."""
        said = size.text
        for symbol, placeholder, dim in size.names:
            name = self.names[placeholder]
            name = name if dim is None else f"{name}.size({dim})"
            said = re.sub(rf"\b{symbol}\b", name, said)
        return said

    def _lookup(self, s: str, label: str) -> dict[str, SetData]:
        m = next(m for m in self.bound[s].maps if m.label == label)
        part = self.parts.nodes[m.codomain]
        counts = [len(part.owned), *np.bincount(part.ghost_chunk, minlength=part.chunks).tolist()]
        pairs = edges_read(part, numbers_of(m, self.args, part.total, self.names))
        out: dict[str, SetData] = {}
        for name, n, (src, dst) in zip(self.cut.lookups[s, label], counts, pairs, strict=True):
            ends = {"src": MapData.trusted(src, n), "dst": MapData.trusted(dst, self.count[s])}
            out[name] = self._set(name, len(src), ends)
        return out

    def _edges(self, s: SetBinding, part: EdgePart) -> dict[str, SetData]:
        out: dict[str, SetData] = {}
        for name, rows in zip(self.cut.parts[s.name], part.runs, strict=True):
            ends = self.cut.types[name].map_dict()
            maps: dict[str, MapData] = {}
            for m in s.maps:
                chunk = self.cut.chunk.get(ends[m.label].codomain)
                column = self._as_known(m, columns_of(m, self.args)[rows], part)
                maps[m.label] = self._map(m, column, m.codomain, chunk)
            out[name] = self._set(name, rows.stop - rows.start, maps)
        return out

    def _as_known(self, m: MapBinding, column: NDArray[Any], edges: EdgePart) -> NDArray[Any]:
        """Ends of edges as places in the part that this call has of their nodes: pairs that were
        drawn may have added ghosts to that which the edges were cut with. Where all ranks have
        these nodes, as their numbers."""
        part = self.parts.nodes.get(m.codomain)
        is_end = self.ranked.imported.cut.get(m.placeholder) == "index"
        if is_end and m.codomain not in self.cut.nodes:
            return (edges.target if m.index[0] else edges.source).numbers[column]
        if part is None or part in (edges.source, edges.target):
            return column
        of = next(p for p in (edges.source, edges.target) if part.adds_to(p))
        no_place = np.full(1, -1)
        moved = np.concatenate([no_place, part.places(of.numbers), no_place])
        return moved[np.clip(column, -1, len(of.numbers)) + 1]

    def _map(
        self, m: MapBinding, column: NDArray[Any], codomain: str, chunk: int | None = None
    ) -> MapData:
        """Where rows lead among the owned nodes, or among the ghosts of a chunk: all ghosts come
        behind the owned nodes."""
        own = self.count[codomain]
        name = self.names[m.placeholder]
        what = f"{name}{list(m.index) if m.index else ''}"
        if chunk is None:
            return MapData.of(column, own, what=what)
        part = self.parts.nodes[codomain]
        of_all = MapData.of(column, len(part.ghosts), what=what, first=own)
        if part.chunks == 1:
            return of_all
        mine = part.ghost_chunk == chunk
        place = np.where(mine, np.cumsum(mine) - 1, -1)  # -1 is no place of this chunk
        return MapData.of(place[of_all.array], int(np.count_nonzero(mine)), what=what)

    def _of_ghosts(self, column: NDArray[Any], part: NodePart) -> NDArray[Any]:
        """What other ranks have of a map, for their nodes that this rank reads."""
        out = np.empty(len(part.ghosts), column.dtype)
        size = self.communicator.size
        counts = (np.bincount(r, minlength=size) for r in (part.reader, part.ghost_owner))
        to, by = (c.tolist() for c in counts)
        self.communicator.start(column[part.sent], to, out, by, 0).wait()
        return out

    def _here(self, n: int) -> MapData:
        rank, size = self.communicator.rank, self.communicator.size
        return MapData.trusted(np.full(n, rank, np.int32), size)

    def _set(self, name: str, n: int, maps: Mapping[str, MapData]) -> SetData:
        ordered = {k: maps[k] for k in self.cut.types[name].map_dict()}
        out = SetData(n, ordered, name=name)
        out.check()
        return out


def to_rank(ranks: NDArray[np.int64], size: int) -> MapData:
    """A map to the numbers of ranks."""
    return MapData.trusted(ranks.astype(np.int32), size)
