"""Moves of nodes between parts that lower the rows which parts read of each other.

Partitioners minimize cut edges, or estimate the volume; here the volume itself falls, as in the
hypergraph model of U. Catalyurek, C. Aykanat, *Hypergraph-Partitioning-Based Decomposition for
Parallel Sparse-Matrix Vector Multiplication*, TPDS 1999: a node and its readers are a net, which
costs the number of parts it spans, less 1. The moves are those of C. Fiduccia, R. Mattheyses, *A
Linear-Time Heuristic for Improving Network Partitions*, DAC 1982, many at a time: gains are
computed for all nodes at a boundary, and a round of moves that together do not pay is halved.
"""

from __future__ import annotations

import numpy as np

from .edges import Int32, Int64
from .graph import Graph
from .moves import Bools, Floats, admitted, loads
from .sparse import choices

ROUNDS = 80
PATIENCE = 6
"""Rounds in a row that lower nothing, after which there is no other."""
_SHARE = 0.6
"""Of the moves that pay, those taken in a round: neighbours that move together gain less."""
_IDLE = 0.2
"""Of the moves that gain and cost nothing, those taken: others pay after some."""
_KICK = 0.3
"""Of the moves that cost a row at most, those made at a kick."""
_KICK_ROUNDS, _KICK_PATIENCE = 15, 3


def refine(
    graph: Graph,
    owner: Int32,
    bounds: Floats,
    *,
    rounds: int = ROUNDS,
    kicks: int = 0,
    seed: int = 0,
) -> Int32:
    """Owners (int32) with at most the volume of `owner`, but for what brings parts within bounds.

    `bounds` has the most work of each part; those above it lose nodes first. Then at most `rounds`
    rounds of moves follow, and `kicks` times some moves that cost little, with rounds of their own,
    which are kept where the volume is not higher in the end. Takes about 16 bytes a node and part,
    and as many at a boundary. The same for the same `seed`.
    """
    if graph.nodes == 0 or len(bounds) == 1:
        return owner.copy()
    state = _State(graph, owner, bounds)
    random = np.random.default_rng(seed)
    state.relieve()
    state.settle(random, rounds, PATIENCE)
    for _ in range(kicks):
        before = state.count, state.owner, state.volume
        state.kick(random)
        state.settle(random, _KICK_ROUNDS, _KICK_PATIENCE)
        if state.volume > before[2]:
            state.take(*before)
    return state.owner


class _State:
    """An assignment with its reader counts: `count[v, p]` nodes of part p read v."""

    def __init__(self, graph: Graph, owner: Int32, bounds: Floats) -> None:
        self.graph = graph
        self.owner = owner.copy()
        self.bounds = bounds
        self.parts = len(bounds)
        self.load = loads(graph.work, owner, self.parts)
        self.count: Int32 = (graph.readers @ choices(self.owner, self.parts)).toarray()
        self.volume = self._volume(self.count, self.owner)
        self.ends: tuple[Int64, Int64] = graph.neighbours.nonzero()

    @staticmethod
    def _volume(count: Int32, owner: Int32) -> int:
        own = count[np.arange(len(owner)), owner] > 0
        return int(np.count_nonzero(count)) - int(np.count_nonzero(own))

    def relieve(self) -> None:
        """Takes nodes, those that cost least a unit of work, from parts above their bounds."""
        while (self.load > self.bounds).any():
            excess = np.maximum(self.load - self.bounds, 0)
            (nodes,) = np.nonzero(excess[self.owner] > 0)
            nodes, target, gain = self._best(nodes, self.bounds - self.load)
            work = self.graph.work[nodes]
            order = np.argsort(-gain / work, kind="stable")
            nodes, target, work = nodes[order], target[order], work[order]
            needed = np.zeros(len(nodes), np.bool_)
            for part in np.flatnonzero(excess):
                (mine,) = np.nonzero(self.owner[nodes] == part)
                needed[mine] = np.cumsum(work[mine]) - work[mine] < excess[part]
            nodes, target, work = nodes[needed], target[needed], work[needed]
            if not len(nodes):
                return
            taken = admitted(self.owner[nodes], target, work, self.bounds - self.load)
            self._move(nodes[taken], target[taken])

    def settle(self, random: np.random.Generator, rounds: int, patience: int) -> None:
        """Rounds of moves until there is none that pays, or some rounds in a row have not."""
        stale = 0
        for _ in range(rounds):
            before = self.volume
            if not self._improve(random):
                return
            stale = stale + 1 if self.volume >= before else 0
            if stale == patience:
                return

    def kick(self, random: np.random.Generator) -> None:
        """Makes some moves that cost a row at most, whatever they cost together."""
        room = self.bounds - self.load
        nodes, target, gain = self._best(self._boundary(), room)
        (chosen,) = np.nonzero((gain >= -1) & (random.random(len(nodes)) < _KICK))
        nodes, target = nodes[chosen], target[chosen]
        taken = admitted(self.owner[nodes], target, self.graph.work[nodes], room)
        self._move(nodes[taken], target[taken])

    def _improve(self, random: np.random.Generator) -> bool:
        """One round of moves; whether there were any that pay, or that cost nothing."""
        room = self.bounds - self.load
        nodes, target, gain = self._best(self._boundary(), room)
        work = self.graph.work[nodes]
        evens = self.load[target] + work < self.load[self.owner[nodes]]
        idle = (gain == 0) & (evens | (random.random(len(nodes)) < _IDLE))
        (wanted,) = np.nonzero((gain > 0) | idle)
        if not len(wanted):
            return False
        chosen = wanted[random.random(len(wanted)) < _SHARE]
        chosen = chosen[np.lexsort((work[chosen], -gain[chosen]))]
        while len(chosen):
            source = self.owner[nodes[chosen]]
            chosen = chosen[admitted(source, target[chosen], work[chosen], room)]
            if self._try(nodes[chosen], target[chosen]):
                break
            chosen = chosen[: len(chosen) // 2]
        return True

    def _boundary(self) -> Int64:
        a, b = self.ends
        flags: Bools = np.zeros(self.graph.nodes, np.bool_)
        flags[a[self.owner[a] != self.owner[b]]] = True
        return np.flatnonzero(flags)

    def _best(self, nodes: Int64, room: Floats) -> tuple[Int64, Int32, Int64]:
        """The nodes that a part has room for, the best such part, and what moving there gains."""
        gains = self._gains(nodes)
        work = self.graph.work[nodes]
        full = work[:, None] > room[None, :]
        full[np.arange(len(nodes)), self.owner[nodes]] = True
        gains[full] = np.iinfo(np.int64).min
        target = gains.argmax(axis=1).astype(np.int32)
        (movable,) = np.nonzero(~full.all(axis=1))
        best = gains[movable, target[movable]]
        return nodes[movable], target[movable], best

    def _gains(self, nodes: Int64) -> Int64:
        """By how much the volume falls if a node (line) alone moves to a part (column).

        A row is no longer received where the node was its last reader, and has to be where it is
        the first; the node's own row likewise where the node has readers.
        """
        count, every = self.count, np.arange(self.graph.nodes)
        sources = self.graph.sources[nodes]
        own = self.owner[nodes]
        last = (count == 1).astype(np.int32)
        last[every, self.owner] = 0
        lines = np.arange(len(nodes))
        freed = (sources @ last)[lines, own]
        first = (count == 0).astype(np.int32)
        first[every, self.owner] = 0
        read = (count[nodes] > 0).astype(np.int64)
        return freed[:, None] - (sources @ first) + read - read[lines, own][:, None]

    def _try(self, nodes: Int64, target: Int32) -> bool:
        """Moves the nodes unless the volume would rise; whether it did."""
        count = self._count_after(nodes, target)
        owner = self.owner.copy()
        owner[nodes] = target
        volume = self._volume(count, owner)
        if volume > self.volume:
            return False
        self.take(count, owner, volume)
        return True

    def _move(self, nodes: Int64, target: Int32) -> None:
        count = self._count_after(nodes, target)
        owner = self.owner.copy()
        owner[nodes] = target
        self.take(count, owner, self._volume(count, owner))

    def take(self, count: Int32, owner: Int32, volume: int) -> None:
        self.count, self.owner, self.volume = count, owner, volume
        self.load = loads(self.graph.work, owner, self.parts)

    def _count_after(self, nodes: Int64, target: Int32) -> Int32:
        change = choices(target, self.parts) - choices(self.owner[nodes], self.parts)
        return self.count + (self.graph.sources[nodes].T @ change).toarray()
