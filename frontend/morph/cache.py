"""The nodes that batches read most, kept on the accelerator's side: adjacency and features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Array = NDArray[Any]


@dataclass
class Hits:
    """What was read from the cache and what went over the link."""

    hits: int = 0
    misses: int = 0
    bytes_saved: int = 0
    bytes_moved: int = 0

    @property
    def rate(self) -> float:
        """The share of reads that the cache answers; 0 where nothing was read."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else 0.0

    def add(self, hits: int, misses: int, bytes_saved: int, bytes_moved: int) -> None:
        self.hits += hits
        self.misses += misses
        self.bytes_saved += bytes_saved
        self.bytes_moved += bytes_moved


class DegreeCache:
    """Features and neighbour lists of the nodes of highest degree, within a number of bytes.

    A neighbour sampler reaches a node about as often as it has edges, so the degree says who is
    read most. `indptr` (int64, N + 1) and `indices` (E) hold the neighbours of each node,
    `features` (N, ...) its row. `degrees` (N), by default the lengths of the lists, orders the
    nodes where another direction is sampled; equal degrees are ordered by id. Of `size` bytes
    the share `adjacency_share` is for neighbour lists, the rest for features.

    The cache is a copy. What misses goes through `over_link` (default: read where it lies). The
    counts are of one thread: the one that prepares the accelerator's batches.

    Raises ValueError for a wrong share, size or arrays that do not fit together.
    """

    def __init__(
        self,
        indptr: Ids,
        indices: Array,
        features: Array,
        size: int,
        *,
        adjacency_share: float = 0.5,
        degrees: Ids | None = None,
        over_link: Callable[[Array], Array] = np.asarray,
    ) -> None:
        nodes = len(indptr) - 1
        if nodes < 0 or len(features) != nodes or indptr[-1] != len(indices):
            raise ValueError("indptr, indices, features: they are not of one graph")
        if size < 0:
            raise ValueError(f"size: a number of bytes, not {size}")
        if not 0 <= adjacency_share <= 1:
            raise ValueError(f"adjacency_share: between 0 and 1, not {adjacency_share}")
        lengths = np.diff(indptr)
        if degrees is None:
            degrees = lengths
        if len(degrees) != nodes:
            raise ValueError(f"degrees: one for each of {nodes} nodes, not {len(degrees)}")
        self._indptr, self._indices, self._features = indptr, indices, features
        self._over_link = over_link
        hot = np.argsort(-degrees, kind="stable")
        of_lists = int(size * adjacency_share)
        list_bytes = np.cumsum(lengths[hot] * indices.itemsize + indptr.itemsize)
        self._listed = hot[: int(np.searchsorted(list_bytes, of_lists, side="right"))]
        self._row_bytes = int(features.itemsize * np.prod(features.shape[1:], dtype=np.int64))
        rows = (size - of_lists) // self._row_bytes if self._row_bytes else nodes
        self._rowed = hot[:rows]
        self._list_place = _places(self._listed, nodes)
        self._row_place = _places(self._rowed, nodes)
        self._list_starts, self._lists = _lists_of(self._listed, indptr, indices)
        self._rows = features[self._rowed]
        self.adjacency = Hits()
        self.features = Hits()

    @property
    def nodes(self) -> tuple[int, int]:
        """How many nodes have their neighbours and their features in the cache."""
        return len(self._listed), len(self._rowed)

    def rows(self, ids: Ids) -> Array:
        """The features of `ids` (n), an array (n, ...) of its own."""
        place = self._row_place[ids]
        hit = place >= 0
        found = np.empty((len(ids), *self._features.shape[1:]), self._features.dtype)
        found[hit] = self._rows[place[hit]]
        missed = ids[~hit]
        if len(missed):
            found[~hit] = self._over_link(self._features[missed])
        hits = len(ids) - len(missed)
        row = self._row_bytes
        self.features.add(hits, len(missed), hits * row, len(missed) * row)
        return found

    def neighbours(self, ids: Ids) -> tuple[Ids, Array]:
        """The neighbour lists of `ids` (n): where each starts (n + 1), and all of them."""
        place = self._list_place[ids]
        hit = place >= 0
        lengths = self._indptr[ids + 1] - self._indptr[ids]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        found = np.empty(int(starts[-1]), self._indices.dtype)
        chosen = place[hit]
        found[_spans(starts[:-1][hit], lengths[hit])] = self._lists[
            _spans(self._list_starts[:-1][chosen], lengths[hit])
        ]
        missed = ids[~hit]
        if len(missed):
            _, lists = _lists_of(missed, self._indptr, self._indices)
            found[_spans(starts[:-1][~hit], lengths[~hit])] = self._over_link(lists)
        item = self._indices.itemsize
        saved, moved = int(lengths[hit].sum()) * item, int(lengths[~hit].sum()) * item
        self.adjacency.add(len(ids) - len(missed), len(missed), saved, moved)
        return starts, found


def _places(cached: Ids, nodes: int) -> Ids:
    """Where each node lies in the cache, -1 where it does not."""
    places = np.full(nodes, -1, dtype=np.int64)
    places[cached] = np.arange(len(cached))
    return places


def _lists_of(ids: Ids, indptr: Ids, indices: Array) -> tuple[Ids, Array]:
    lengths = indptr[ids + 1] - indptr[ids]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return starts, indices[_spans(indptr[ids], lengths)]


def _spans(starts: Ids, lengths: Ids) -> Ids:
    """The positions start, start + 1, ... of all spans, one after the other."""
    if not len(lengths):
        return np.zeros(0, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
