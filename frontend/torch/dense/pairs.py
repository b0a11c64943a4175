"""Which rows a batch has: in order or not, and the pairs of rows of one graph, from its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ....runtime.memo import Memo

MOST_PAIRS = 512
"""So many pairs for each row, in the mean, are computed one by one (docs/decisions.md has times);
beyond, dense products of whole graphs are faster."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The rows of each graph: `begin` (graphs) and `count`, and whether a program of rows may take
    them: they are in order, and so many that torch's trace holds, which took no graph for one of a
    single place."""

    batch: Tensor
    count: Tensor
    fits: bool

    @property
    def graphs(self) -> int:
        """How many graphs there are at least."""
        return len(self.count)

    @property
    def number_of_pairs(self) -> int:
        return int((self.count * self.count).sum())

    @cached_property
    def pairs(self) -> Tensor:
        """All pairs of rows of the same graph, 2 x pairs, in the order of the first and then of the
        second."""
        partners = self.count.index_select(0, self.batch)
        first = torch.repeat_interleave(partners)
        begin = (self.count.cumsum(0) - self.count).index_select(0, self.batch)
        shift = begin - (partners.cumsum(0) - partners)
        second = torch.arange(len(first)) + shift.index_select(0, first)
        return torch.stack([first, second])


_seen = Memo()


def batch_of(x: Tensor) -> Batch:
    """What the number of a graph for each row says; looked at once for each state of it."""
    return _seen.get_for([x], (), lambda: _batch(x.detach().clone()))


def _batch(x: Tensor) -> Batch:
    in_order = bool((x[1:] >= x[:-1]).all()) and len(x) > 0 and int(x[0]) >= 0
    count = torch.bincount(x) if in_order else x.new_zeros(0)
    return Batch(x, count, in_order and int(count.max()) > 1)
