"""Neighbours of seeds, hop by hop: seeds in, a batch out, in one call of C.

Random numbers depend on (seed, epoch, step, hop, relation, node, draw) alone (random.h): not on
threads, nor on what else is in the batch.
"""

from __future__ import annotations

import ctypes
import operator
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..cpu import pool
from ..cpu.crew import Crews
from ..sets import kernels as sets
from ..sets.kernels import Int32s, Int64s
from . import kernels
from .batch import Batch, BatchEdges, BatchNodes
from .in_edges import InEdges, checked_times, relation

Picks: TypeAlias = Literal["uniform", "weighted", "last", "labor"]
_METHODS: dict[str, int] = {"uniform": 0, "weighted": 1, "last": 2, "labor": 3}
_MOST = 2**31 - 1
_MOST_HOPS, _MOST_RELATIONS = 2**12 - 1, 2**20 - 17  # what a stream's number has room for, random.h


@dataclass(frozen=True, eq=False)
class Graph:
    """Relations among nodes of some types.

    Attributes:
        counts: the nodes of each type.
        relations: their edges.
        ends: of each relation the types of source and target, by number.

    Raises:
        ValueError: there is no type, or a relation leads from or to another one than its `ends`
            say.
    """

    counts: tuple[int, ...]
    relations: tuple[InEdges, ...]
    ends: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.counts or len(self.relations) != len(self.ends):
            raise ValueError("a graph has at least one type of nodes, and two ends a relation")
        for number, (r, (source, target)) in enumerate(zip(self.relations, self.ends, strict=True)):
            if not 0 <= min(source, target) <= max(source, target) < len(self.counts):
                raise ValueError(
                    f"ends[{number}] are {source} and {target}, but there are types 0 to "
                    f"{len(self.counts) - 1}"
                )
            if (r.sources, r.targets) != (self.counts[source], self.counts[target]):
                raise ValueError(
                    f"relation {number} leads from {r.sources} nodes to {r.targets}, but its types "
                    f"have {self.counts[source]} and {self.counts[target]}"
                )


def graph_of(relation: InEdges) -> Graph:
    """A graph with one type of nodes and of edges."""
    return Graph((relation.sources,), (relation,), ((0, 0),))


@dataclass(frozen=True)
class Key:
    """What random numbers go by; each from 0 to below 2**64, the epoch below 2**32."""

    seed: int = 0
    epoch: int = 0
    step: int = 0

    def __post_init__(self) -> None:
        for name, bits in (("seed", 64), ("epoch", 32), ("step", 64)):
            value = operator.index(getattr(self, name))  # C takes no integers of NumPy
            if not 0 <= value < 2**bits:
                raise ValueError(f"{name} is {value}, not from 0 to below 2**{bits}")
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Seeds:
    """Where a batch begins.

    Attributes:
        nodes: of each type its seeds, shape (seeds,), integers. A node may come more than once: it
            has a row each time, with the same neighbours.
        graphs: of each type the number of each seed's graph, where graphs are kept apart; else, and
            by default, they are numbered on through the types.
        times: the latest time that each graph may see, shape (graphs,), int64, in a temporal batch.
    """

    nodes: tuple[NDArray[Any], ...]
    graphs: tuple[NDArray[Any], ...] | None = None
    times: NDArray[Any] | None = None


class NeighborSampler:
    """Draws batches of neighbours from a graph. Any number of threads may call it at a time.

    Args:
        graph: the graph, or the edges of one of a single type.
        fanouts: for each hop, counted from the seeds, how many edges of a node are taken: a number
            for all relations or one for each; -1 takes all.
        replace: whether an edge may be taken more than once: then exactly so many are taken of a
            node that has any.
        pick: `uniform`; `weighted`: in proportion to the weights of edges; `last`: those with the
            latest times; `labor`: LABOR-0, as many as the fan-out in the mean.
        blocks: whether each node is expanded at every hop from that on where it is met, as message
            flow in DGL has it; else it is expanded once, at the hop after, as PyG has it.
        disjoint: whether each seed has a graph of its own. Needed for times.
        induced: whether a batch has all edges between its nodes, instead of those that it was met
            by (ShaDow; with no hop, the subgraph of the seeds). Graphs of a disjoint batch then lie
            one behind the other, each with its seed first; `met` has counts only, `found` the end.
        tied: whether the hops of LABOR share their random numbers.
        wide: whether ids and places are int64, else int32.

    Raises:
        TypeError: a fan-out is no integer.
        ValueError: a fan-out below -1, or for other relations than there are; a way to pick that is
            not known, for which the graph has no weights or times, or which does not go with
            `replace`.
    """

    def __init__(
        self,
        graph: Graph | InEdges,
        fanouts: Sequence[int | Sequence[int]],
        *,
        replace: bool = False,
        pick: Picks = "uniform",
        blocks: bool = False,
        disjoint: bool = False,
        induced: bool = False,
        tied: bool = False,
        wide: bool = True,
    ) -> None:
        self.graph = graph_of(graph) if isinstance(graph, InEdges) else graph
        self.disjoint, self.wide, self.blocks = disjoint, wide, blocks
        self._fanouts = _fanouts(fanouts, self.graph.relations, replace)
        if blocks and induced:
            raise ValueError("a batch has blocks or is an induced subgraph, not both")
        _check_pick(self.graph, pick, replace, disjoint)
        self._method, self._replace, self._tied = _METHODS[pick], replace, tied
        self._induced = induced
        self._bytes = 0  # about as long as the next batch
        self._begin()

    def _begin(self) -> None:
        """Makes what is of this process: structures that point to the graph, memory, a lock."""
        self._relations = _structures(self.graph)
        self._lock = threading.Lock()
        self._idle: list[_State] = []
        self._crews = Crews()

    def __getstate__(self) -> dict[str, Any]:
        own = ("_relations", "_lock", "_idle", "_crews")
        return {k: v for k, v in self.__dict__.items() if k not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def hops(self) -> int:
        return len(self._fanouts)

    def sample(
        self,
        seeds: Seeds | NDArray[Any],
        key: Key = Key(),  # noqa: B008
        *,
        threads: int | None = None,
    ) -> Batch:
        """The batch of these seeds.

        Args:
            seeds: or an array, for a graph of one type: shape (seeds,), integers.
            threads: how many are used at most; by default those of all compiled code.

        Raises:
            IndexError: a seed is no node.
            MemoryError: there is none, or a batch may have more than 2**31 - 1 nodes.
            TypeError, ValueError: seeds, graphs or times of another form.
        """
        given = seeds if isinstance(seeds, Seeds) else Seeds((seeds,))
        start = _Start(self.graph, given, self.disjoint)
        sizes = _Sizes(len(self.graph.counts), len(self.graph.relations), self.hops)
        request = kernels.Request(
            ctypes.addressof(self._relations),
            self._fanouts.ctypes.data,
            self.hops,
            self._method,
            self._replace,
            self.blocks,
            self.disjoint,
            self._induced,
            self.wide,
            key.seed,
            key.step,
            key.epoch,
            self._tied,
            *start.addresses(),
        )
        room = self._bytes
        memory = pool.take(room) if room >= pool.SMALL else None  # memory that was used before
        made = sizes.structure(memory, room)
        state = self._take()
        given_to = state.address, ctypes.addressof(request), ctypes.addressof(made)
        status = self._crews.run(
            "", start.size, lambda count: kernels.library().gnnc_sample(*given_to, count), threads
        )
        self._give(state)
        if status == kernels.TOO_LARGE:
            raise MemoryError("a batch may have more than 2**31 - 1 nodes; take smaller fan-outs")
        if status != kernels.OK:
            raise MemoryError(f"no memory for a batch of {start.size} seeds")
        if memory is None or made.block != memory.address:
            memory = pool.Block(made.block)
        self._bytes = made.size + made.size // 16
        return sizes.batch(memory, self.graph.ends, self.disjoint, self.wide)

    def _take(self) -> _State:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _State(self.graph)

    def _give(self, state: _State) -> None:
        with self._lock:
            self._idle.append(state)


class _State:
    """What one call at a time works in; kept, for tables have a place for every node."""

    def __init__(self, graph: Graph) -> None:
        library = kernels.library()
        counts = np.array(graph.counts, np.int64)
        made = library.gnnc_sampler_new(counts.size, len(graph.relations), counts.ctypes.data)
        if made is None:
            raise MemoryError("no memory for a sampler")
        self.address: int = made
        self._free = library.gnnc_sampler_free

    def __del__(self) -> None:
        if hasattr(self, "_free"):
            self._free(self.address)


class _Start:
    """Seeds as C reads them; lives as long as the call."""

    def __init__(self, graph: Graph, seeds: Seeds, disjoint: bool) -> None:
        if len(seeds.nodes) != len(graph.counts):
            raise ValueError(
                f"there are seeds of {len(seeds.nodes)} types, not {len(graph.counts)}"
            )
        self.nodes = [
            sets.narrow(np.asarray(s), n, what="seeds")
            for s, n in zip(seeds.nodes, graph.counts, strict=True)
        ]
        self.counts = np.array([s.size for s in self.nodes], np.int64)
        self.size = int(self.counts.sum())
        temporal = any(r.times is not None for r in graph.relations)
        if not disjoint and (seeds.graphs is not None or seeds.times is not None):
            raise ValueError("seeds have graphs or times only where each has a graph of its own")
        if temporal != (seeds.times is not None):
            raise ValueError(
                "seeds have times where, and only where, edges have: "
                + ("the graph has times" if temporal else "the graph has none")
            )
        self.graphs, self.names = self._graphs(seeds.graphs) if disjoint else ([], None)
        self.times = None if seeds.times is None else self._times(seeds.times)
        self._tables = [kernels.pointers(list(self.nodes)), kernels.pointers(list(self.graphs))]

    def _graphs(self, given: tuple[NDArray[Any], ...] | None) -> tuple[list[Int32s], Int32s]:
        """The graph of each seed, and of each graph its first seed: its name."""
        if given is None:
            numbers = np.arange(self.size, dtype=np.int32)
            found = np.split(numbers, np.cumsum(self.counts)[:-1])
            return found, np.concatenate(self.nodes)
        if [g.size for g in given] != self.counts.tolist():
            raise ValueError("graphs must have a number for each seed")
        count = 1 + max((int(g.max()) for g in given if g.size), default=-1)
        if count > self.size:  # before memory is taken for so many
            raise ValueError(
                f"graphs have numbers up to {count - 1}, and there are {self.size} seeds"
            )
        found = [sets.narrow(g, count, what="graphs") for g in given]
        names = np.full(count, -1, np.int32)
        for numbers, nodes in zip(reversed(found), reversed(self.nodes), strict=True):
            names[numbers[::-1]] = nodes[::-1]
        if (names < 0).any():
            raise ValueError(f"graph {int(np.argmin(names))} has no seed")
        return found, names

    def _times(self, times: NDArray[Any]) -> Int64s:
        assert self.names is not None
        return checked_times(times, self.names.shape, "a graph")

    def addresses(self) -> tuple[int | None, ...]:
        return (
            self._tables[0].ctypes.data,
            self.counts.ctypes.data,
            self._tables[1].ctypes.data,
            kernels.address(self.names),
            kernels.address(self.times),
            0 if self.names is None else self.names.size,
        )


class _Sizes:
    """What C says of the batch it made."""

    def __init__(self, types: int, relations: int, hops: int) -> None:
        self.met = np.zeros((types, hops + 1), np.int64)
        self.found = np.zeros((relations, hops + 1), np.int64)
        self.type_offsets = np.zeros((types, 2), np.int64)
        self.relation_offsets = np.zeros((relations, 5), np.int64)

    def structure(self, memory: pool.Memory | None, room: int) -> kernels.Batch:
        arrays = (self.met, self.found, self.type_offsets, self.relation_offsets)
        block = None if memory is None else memory.address
        return kernels.Batch(block, room, 0, *(a.ctypes.data for a in arrays))

    def batch(
        self, block: pool.Memory, ends: tuple[tuple[int, int], ...], disjoint: bool, wide: bool
    ) -> Batch:
        width = "<i8" if wide else "<i4"
        at = _Views(block)
        nodes: list[BatchNodes] = []
        for met, (ids, graphs) in zip(self.met, self.type_offsets.tolist(), strict=True):
            n = int(met[-1])
            graph = at(graphs, (n,), width) if disjoint else None
            nodes.append(BatchNodes(at(ids, (n,), width), graph, met))
        edges: list[BatchEdges] = []
        for found, offsets in zip(self.found, self.relation_offsets.tolist(), strict=True):
            m, (src, _, ids, ptr, rows) = int(found[-1]), offsets
            edges.append(
                BatchEdges(
                    at(src, (2, m), width), at(ids, (m,), width), at(ptr, (rows,), "<i8"), found
                )
            )
        return Batch(tuple(nodes), tuple(edges), ends)


class _Views:
    """Arrays in one block, which lives as long as any of them."""

    def __init__(self, block: pool.Memory) -> None:
        self._block = block

    def __call__(self, offset: int, shape: tuple[int, ...], typestr: str) -> NDArray[Any]:
        return np.asarray(pool.Leased(_Within(self._block, offset), shape, typestr))


class _Within(pool.Memory):
    def __init__(self, block: pool.Memory, offset: int) -> None:
        super().__init__(block.address + offset)
        self._block = block


def _structures(graph: Graph) -> ctypes.Array[kernels.Relation]:
    made = [relation(r, *ends) for r, ends in zip(graph.relations, graph.ends, strict=True)]
    return (kernels.Relation * len(made))(*made)


def _fanouts(
    fanouts: Sequence[int | Sequence[int]], relations: Sequence[InEdges], replace: bool
) -> Int64s:
    """Hops x relations, int64. No node has more edges than its relation, and what is at hand to
    pick so many takes memory."""
    count = len(relations)
    if len(fanouts) > _MOST_HOPS or count > _MOST_RELATIONS:
        raise ValueError(f"there are at most {_MOST_HOPS} hops and {_MOST_RELATIONS} relations")
    lines: list[list[int]] = []
    for hop, given in enumerate(fanouts):
        line = list(given) if isinstance(given, Iterable) else [given] * count
        if len(line) != count:
            raise ValueError(f"fanouts[{hop}] has {len(line)} numbers for {count} relations")
        lines.append([_fanout(k, hop) for k in line])
    found = np.array(lines, np.int64).reshape(len(lines), count)
    return found if replace else np.minimum(found, [r.edges for r in relations], dtype=np.int64)


def _fanout(k: int, hop: int) -> int:
    try:
        k = operator.index(k)
    except TypeError as error:
        raise TypeError(f"fanouts[{hop}] is {k!r}; it must be an integer") from error
    if not -1 <= k <= _MOST:
        raise ValueError(f"fanouts[{hop}] is {k}; it must be -1 (all) or from 0 on")
    return k


def _check_pick(graph: Graph, pick: Picks, replace: bool, disjoint: bool) -> None:
    if pick not in _METHODS:
        raise ValueError(f"pick is {pick!r}, none of {', '.join(_METHODS)}")
    if pick == "weighted" and any(r.weights is None for r in graph.relations):
        raise ValueError("pick='weighted' needs weights of all edges")
    if pick == "last" and any(r.times is None for r in graph.relations):
        raise ValueError("pick='last' needs times of all edges")
    if replace and pick in ("last", "labor"):
        raise ValueError(f"pick={pick!r} takes no edge twice: leave out replace=True")
    if not disjoint and any(r.times is not None for r in graph.relations):
        raise ValueError("edges with times need disjoint=True: each seed sees what its time allows")
