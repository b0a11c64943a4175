"""The cheapest set of values that separates what is known from what is needed.

A minimum vertex cut by Dinic's algorithm (Dinitz 1970) on the graph in which every vertex is an
arc from its entrance to its exit, with the vertex's cost as capacity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

_SOURCE, _SINK = 0, 1


class MinCut(Generic[V]):
    """Vertices with integer costs, arcs between them, and the two ends that a cut keeps apart."""

    def __init__(self) -> None:
        self._entrance: dict[V, int] = {}
        self._heads: list[int] = []  # an arc and its reverse are 2 i and 2 i + 1
        self._room: list[int] = []
        self._arcs: list[list[int]] = [[], []]
        self._total = 1

    def add(self, vertex: V, cost: int) -> None:
        """A vertex that can be cut at `cost`. To be called once for each, before its arcs."""
        enter = len(self._arcs)
        self._entrance[vertex] = enter
        self._arcs += [[], []]
        self._connect(enter, enter + 1, cost)
        self._total += cost

    def start(self, vertex: V) -> None:
        """`vertex` is where things come from."""
        self._connect(_SOURCE, self._entrance[vertex], None)

    def end(self, vertex: V) -> None:
        """`vertex` is needed."""
        self._connect(self._entrance[vertex] + 1, _SINK, None)

    def arc(self, a: V, b: V) -> None:
        """What reaches `a` reaches `b`."""
        self._connect(self._entrance[a] + 1, self._entrance[b], None)

    def _connect(self, a: int, b: int, room: int | None) -> None:
        self._arcs[a].append(len(self._heads))
        self._arcs[b].append(len(self._heads) + 1)
        self._heads += [b, a]
        self._room += [-1 if room is None else room, 0]

    def solve(self) -> set[V]:
        """A cheapest set of vertices on all paths from a start to an end. Of several, the one
        nearest to the ends."""
        self._room = [self._total if r < 0 else r for r in self._room]
        while self._augment():
            pass
        late = self._levels_to_sink()
        return {v for v, e in self._entrance.items() if late[e] < 0 <= late[e + 1]}

    def _levels_to_sink(self) -> list[int]:
        """The distance to the sink over arcs with room left, -1 where there is no path."""
        level = [-1] * len(self._arcs)
        level[_SINK] = 0
        queue = deque([_SINK])
        while queue:
            n = queue.popleft()
            for arc in self._arcs[n]:
                before = self._heads[arc]
                if level[before] < 0 and self._room[arc ^ 1] > 0:
                    level[before] = level[n] + 1
                    queue.append(before)
        return level

    def _augment(self) -> bool:
        """Fills all shortest paths; False where none is left."""
        level = self._levels_to_sink()
        if level[_SOURCE] < 0:
            return False
        position = [0] * len(self._arcs)
        path: list[int] = []
        node = _SOURCE
        while True:
            if node == _SINK:
                least = min(self._room[arc] for arc in path)
                for arc in path:
                    self._room[arc] -= least
                    self._room[arc ^ 1] += least
                path, node = [], _SOURCE
                continue
            while position[node] < len(self._arcs[node]):
                arc = self._arcs[node][position[node]]
                if self._room[arc] > 0 and level[self._heads[arc]] == level[node] - 1:
                    break
                position[node] += 1
            else:
                if not path:
                    return True
                node = self._heads[path.pop() ^ 1]
                position[node] += 1
                continue
            path.append(arc)
            node = self._heads[arc]
