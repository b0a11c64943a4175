"""Graphs with types of nodes and edges: drawn from a seed, or kept in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .graphs import EdgeType

Ints = NDArray[np.int64]

EDGES_PER_END = 3
"""Edges of a drawn relation for each node that it may start from, and for each that it may end at:
FB15k-237 has 2.9 an occurring source, and 4.8 an occurring destination."""


@dataclass(frozen=True)
class Relations:
    """`nodes` by type, and for each relation its edges (2 x e), numbered within the types of their
    ends. Nodes of type `target` are those that have labels."""

    nodes: Mapping[str, int]
    edges: Mapping[EdgeType, Ints]
    target: str

    def offsets(self) -> dict[str, int]:
        """Where the nodes of a type begin when all types are numbered one after the other."""
        ends = np.cumsum(list(self.nodes.values()))
        return {t: int(end) - n for (t, n), end in zip(self.nodes.items(), ends, strict=True)}

    def save(self, path: Path) -> None:
        """Writes everything to one `.npz` file."""
        counts = [[*kind, found.shape[1]] for kind, found in self.edges.items()]
        kinds = {"nodes": dict(self.nodes), "edges": counts, "target": self.target}
        edges = np.concatenate(list(self.edges.values()), axis=1)
        np.savez(path, kinds=np.array(json.dumps(kinds)), edges=edges)

    @staticmethod
    def load(path: Path) -> Relations:
        """What `save` wrote."""
        with np.load(path) as stored:
            kinds = json.loads(str(stored["kinds"]))
            bounds = np.cumsum([count for *_, count in kinds["edges"]])
            parts = np.split(stored["edges"], bounds[:-1], axis=1)
        names = [(a, r, b) for a, r, b, _ in kinds["edges"]]
        return Relations(kinds["nodes"], dict(zip(names, parts, strict=True)), kinds["target"])


ALPHA = 0.6
"""The k-th most popular node occurs about k ** -ALPHA times as often as the most popular one."""


def draw(
    nodes: Mapping[str, int],
    edges: Mapping[EdgeType, int],
    target: str,
    seed: int = 0,
    scattered: bool = False,
) -> Relations:
    """Edges with power-law degrees for each relation.

    A relation joins some of the nodes only, about one for each `EDGES_PER_END` of its edges at
    either side; popular nodes take part in more relations than others. Edges that are `scattered`
    begin and end at any nodes instead. A relation `rev_x` has the edges of `x`, turned.
    """
    random = np.random.default_rng(seed)
    popularity = {t: _shares(random.permutation(n) + 1) for t, n in nodes.items()}

    def ends(kind: str, count: int) -> Ints:
        """`count` nodes of a type, of which a part takes part."""
        if scattered:
            return random.integers(0, nodes[kind], count)
        part = min(nodes[kind], 1 + count // EDGES_PER_END)
        chosen = random.choice(nodes[kind], part, replace=False, p=popularity[kind])
        return random.choice(chosen, count, p=_shares(np.arange(1, part + 1)))

    found: dict[EdgeType, Ints] = {}
    for (source, name, destination), count in edges.items():
        turned = (destination, name.removeprefix("rev_"), source)
        if name.startswith("rev_") and turned in found:
            found[source, name, destination] = found[turned][::-1].copy()
        else:
            drawn = np.stack([ends(source, count), ends(destination, count)])
            found[source, name, destination] = drawn
    return Relations(nodes, found, target)


def _shares(ranks: Ints) -> NDArray[np.float64]:
    """How likely a draw is to give the node of each rank."""
    weights = ranks**-ALPHA
    return weights / weights.sum()
