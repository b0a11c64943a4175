"""Ways to spread a layer over ranks, compared: seconds of one layer, forward and backward.

- *halo*: rows of nodes are spread, and a rank receives those that its edges read (1D; what gnnc
  does).
- *replicated*: 1.5D of A. Tripathy, K. Yelick, A. Buluc, *Reducing Communication in Graph Neural
  Network Training*, SC 2020: P / c blocks of rows, each on c ranks. A rank multiplies its block of
  the adjacency with P / c^2 of the blocks of rows, which are broadcast to the P / c ranks that have
  its place among the c; then c ranks sum up their parts of a block. The products with weights are
  done on all c copies.
- *columns*: a rank has all nodes and edges, and a P-th of the numbers of each row. Aggregations
  exchange nothing; around them rows are exchanged for columns and back, all to all, for products
  need whole rows.

Broadcasts are by binomial trees, sums by rings. All ranks are taken to be alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .constants import Constants
from .layers import NUMBER_BYTES, Layer
from .loads import Loads
from .stages import row_seconds

HALO, REPLICATED, COLUMNS = "halo", "replicated", "columns"


@dataclass(frozen=True)
class Scheme:
    """A way to spread a layer.

    Attributes:
        name: one of `HALO`, `REPLICATED`, `COLUMNS`.
        copies: of each row: c, or 1.
        messages, bytes: that a rank takes part in, one after the other.
        work_seconds, message_seconds: of a rank, forward and backward.
    """

    name: str
    copies: int
    messages: float
    bytes: float
    work_seconds: float
    message_seconds: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.work_seconds + self.message_seconds


@dataclass(frozen=True)
class _Share:
    """What a rank has: shares of the edges and of the products of nodes, the rows among which its
    edges read, and among how many ranks the numbers of each are divided."""

    edges: float
    nodes: float
    rows: float
    columns: int = 1

    def widths(self, whole: Sequence[int]) -> list[int]:
        """Of rows of which the rank has a part."""
        return [math.ceil(width / self.columns) for width in whole]


def compared(layer: Layer, loads: Loads, constants: Constants) -> list[Scheme]:
    """All schemes for one layer, the fastest first; of the replicated ones the fastest. A layer
    whose aggregation is done once for all steps exchanges nothing in any, and has `halo` alone."""
    halo = _halo(layer, loads, constants)
    if loads.ranks == 1 or not layer.forward_widths:
        return [halo]
    replicated = [_replicated(layer, loads, constants, c) for c in copies(loads.ranks)]
    best = sorted(replicated, key=lambda s: s.seconds)[:1]
    found = [halo, *best, _columns(layer, loads, constants)]
    return sorted(found, key=lambda s: s.seconds)


def copies(ranks: int) -> list[int]:
    """The numbers c above 1 that 1.5D can have: their square divides that of ranks."""
    return [c for c in range(2, math.isqrt(ranks) + 1) if ranks % (c * c) == 0]


def _halo(layer: Layer, loads: Loads, constants: Constants) -> Scheme:
    widths = (layer.forward_widths, layer.backward_widths)
    numbers = sum(map(sum, widths))
    messages = float(loads.owners.max()) * sum(map(len, widths))
    size = float(loads.ghosts.max()) * numbers * NUMBER_BYTES
    share, rows = 1 / loads.ranks, float((loads.owned + loads.ghosts).max())
    work = _work(layer, loads, constants, _Share(share, share, rows))
    among = constants.among(loads.ranks)
    work += sum(float(row_seconds(rows, w, among)) for w in widths) * float(loads.sent.max())
    return _scheme(HALO, 1, messages, size, work, constants)


def _replicated(layer: Layer, loads: Loads, constants: Constants, count: int) -> Scheme:
    ranks, messages, size = loads.ranks, 0.0, 0.0
    block = loads.nodes * count / ranks
    rounds = ranks // count**2
    for widths in _aggregated(layer):
        row = sum(widths) * NUMBER_BYTES
        messages += rounds * math.ceil(math.log2(max(ranks // count, 1))) + 2 * (count - 1)
        size += rounds * block * row + 2 * (count - 1) / count * block * row
    share = _Share(1 / ranks, count / ranks, block)
    work = _work(layer, loads, constants, share)
    return _scheme(REPLICATED, count, messages, size, work, constants)


def _columns(layer: Layer, loads: Loads, constants: Constants) -> Scheme:
    ranks, messages, size = loads.ranks, 0.0, 0.0
    for widths in _aggregated(layer):
        row = sum(widths) * NUMBER_BYTES
        messages += 2 * (ranks - 1)
        size += 2 * loads.nodes / ranks * row * (ranks - 1) / ranks
    work = _work(layer, loads, constants, _Share(1.0, 1 / ranks, loads.nodes, ranks))
    return _scheme(COLUMNS, 1, messages, size, work, constants)


def _aggregated(layer: Layer) -> list[tuple[int, ...]]:
    """The widths of the rows that cross in each aggregation of a step."""
    return [w for w in (layer.forward_widths, layer.backward_widths) if w]


def _work(layer: Layer, loads: Loads, constants: Constants, share: _Share) -> float:
    """Seconds of a rank with such a share."""
    c = constants.among(loads.ranks)
    of_edge = 0.0
    forward, back = layer.forward_widths, layer.backward_widths
    for crossing, read in ((forward, layer.read_widths), (back, layer.read_back_widths)):
        if crossing:
            of_edge += float(row_seconds(share.rows, share.widths(read), c))
    of_edge += 3 * math.ceil(layer.heads / share.columns) * c.score
    products = layer.product + layer.product_back
    numbers = layer.forward_numbers + layer.backward_numbers
    of_node = numbers * c.node_number + products * c.multiply_add
    return share.edges * loads.edges * of_edge + share.nodes * loads.nodes * of_node


def _scheme(
    name: str, count: int, messages: float, size: float, work: float, constants: Constants
) -> Scheme:
    seconds = messages * constants.alpha + size / constants.bandwidth
    return Scheme(name, count, messages, size, work, seconds)
