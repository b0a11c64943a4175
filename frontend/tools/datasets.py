"""Graphs to train and time on that need no download: everything is drawn from a seed.

Two kinds: a citation-like graph whose classes can be learned from its words and its links, and a
graph with power-law degrees, random features and random labels, for timing only.
"""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class NodeTask:
    """Classification of the nodes of one graph.

    `x` is n x f, `edge_index` 2 x e (source row, destination row), `y` the n classes below
    `classes`; the masks, of n flags each, say which nodes are for training, for choosing the epoch,
    and for the accuracy that is reported.
    """

    name: str
    x: Floats
    edge_index: Ints
    y: Ints
    classes: int
    train: Mask
    validation: Mask
    test: Mask

    @functools.cached_property
    def checksum(self) -> int:
        """A number that is another for other data, whatever its name."""
        found = 0
        for array in (self.x, self.edge_index, self.y, self.train, self.validation, self.test):
            found = zlib.crc32(repr((array.shape, array.dtype.str)).encode(), found)
            found = zlib.crc32(np.ascontiguousarray(array).data, found)
        return found


def citation(
    nodes: int = 2708,
    links: int = 5278,
    words: int = 1433,
    classes: int = 7,
    seed: int = 0,
    *,
    words_per_node: int = 18,
    same_class: float = 0.81,
    topical: float = 0.25,
) -> NodeTask:
    """Papers that cite each other, by default as many as Cora has.

    Each paper has a topic (its class). A link, stored in both directions, joins papers of one topic
    with probability `same_class`, and papers drawn at random otherwise; some papers are cited far
    more than others. Each topic has words of its own; about `words_per_node` words occur in a
    paper, each drawn from those of its topic with probability `topical` and from all `words`
    otherwise. The features are a paper's words, as a row that sums to 1. The masks are `split`'s.
    """
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(classes, 12.0))
    y = random.choice(classes, nodes, p=shares).astype(np.int64)
    edge_index = _links(random, y, links, same_class)
    x = _bags_of_words(random, y, words, classes, words_per_node, topical)
    train, validation, test = split(y, classes, seed=seed)
    return NodeTask("default", x, edge_index, y, classes, train, validation, test)


def _links(random: np.random.Generator, y: Ints, links: int, same_class: float) -> Ints:
    popularity = random.pareto(2.5, len(y)) + 0.2
    a = random.choice(len(y), links, p=popularity / popularity.sum())
    b = random.choice(len(y), links, p=popularity / popularity.sum())
    same = random.random(links) < same_class
    for topic in np.unique(y):
        members = np.flatnonzero(y == topic)
        weights = popularity[members] / popularity[members].sum()
        chosen = np.flatnonzero(same & (y[a] == topic))
        b[chosen] = random.choice(members, len(chosen), p=weights)
    a, b = a[a != b], b[a != b]
    return np.stack([np.concatenate([a, b]), np.concatenate([b, a])]).astype(np.int64)


def _bags_of_words(
    random: np.random.Generator, y: Ints, words: int, classes: int, per_node: int, topical: float
) -> Floats:
    own = np.array_split(random.permutation(words), classes)
    x = np.zeros((len(y), words), np.float32)
    counts = np.maximum(1, random.poisson(per_node, len(y)))
    for node in range(len(y)):
        topic, count = int(y[node]), int(counts[node])
        from_topic = np.count_nonzero(random.random(count) < topical)
        x[node, random.choice(own[topic], from_topic)] = 1
        x[node, random.integers(0, words, count - from_topic)] = 1
    return x / np.maximum(x.sum(1, keepdims=True), 1)


def split(y: Ints, classes: int, *, per_class: int = 20, seed: int = 0) -> tuple[Mask, Mask, Mask]:
    """Masks (train, validation, test): `per_class` nodes a class, then up to 500 and up to 1000.

    Graphs too small for that give half of each class to training, and the rest in the ratio 1 : 2.
    """
    random = np.random.default_rng(seed)
    train = np.zeros(len(y), np.bool_)
    for topic in range(classes):
        members = random.permutation(np.flatnonzero(y == topic))
        train[members[: min(per_class, (len(members) + 1) // 2)]] = True
    rest = random.permutation(np.flatnonzero(~train))
    cut = min(500, len(rest) // 3)
    validation, test = np.zeros_like(train), np.zeros_like(train)
    validation[rest[:cut]] = True
    test[rest[cut : cut + 1000]] = True
    return train, validation, test


def power_law_edges(
    nodes: int, edges: int, *, alpha: float = 0.6, seed: int = 0, simple: bool = False
) -> Ints:
    """An edge_index (2 x edges) whose k-th most frequent end has a frequency like k ** -alpha.

    The ends of an edge are drawn independently, so the nodes with many in-edges are not those with
    many out-edges, some nodes have no edge, and there are parallel edges and loops: `simple` drops
    these and draws more until there are enough.
    """
    random = np.random.default_rng(seed)
    weights = np.arange(1, nodes + 1) ** -alpha
    cumulative = np.cumsum(weights / weights.sum())
    shuffled = np.stack([random.permutation(nodes), random.permutation(nodes)])

    def draw(count: int) -> Ints:
        ranks = np.searchsorted(cumulative, random.random((2, count)))
        return np.take_along_axis(shuffled, np.minimum(ranks, nodes - 1), 1)

    found = draw(edges)
    while simple:
        found = found[:, found[0] != found[1]]
        _, first = np.unique(found[0] * nodes + found[1], return_index=True)
        found = found[:, np.sort(first)]
        if found.shape[1] >= edges:
            return found[:, :edges]
        found = np.concatenate([found, draw(edges // 10 + 1)], 1)
    return found


def power_law(
    name: str, nodes: int, edges: int, features: int, classes: int, *, seed: int = 0
) -> NodeTask:
    """Random features and labels on simple `power_law_edges`, every node in every mask.

    For timing. Simple, because libraries disagree on what parallel edges and loops of a sparse
    matrix mean, and all should compute the same.
    """
    random = np.random.default_rng(seed + 1)
    every = np.ones(nodes, np.bool_)
    return NodeTask(
        name,
        random.standard_normal((nodes, features), np.float32),
        power_law_edges(nodes, edges, seed=seed, simple=True),
        random.integers(0, classes, nodes),
        classes,
        every,
        every,
        every,
    )
