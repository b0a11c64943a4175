"""Finding edges by their ends."""

from __future__ import annotations

import torch
from torch import Tensor

from .reduce import counts
from .topology import Relation


def grouped(ends: Tensor, rows: int, ids: Tensor) -> Tensor:
    """Ids of the edges whose end is in `ids`: those of `ids[0]` in ascending order, and so on."""
    by_end = ends.argsort(stable=True)
    degrees = counts(ends, rows)
    starts = (degrees.cumsum(0) - degrees)[ids]
    return by_end[ranges(starts, degrees[ids])]


def ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """`starts[0], .., starts[0] + lengths[0] - 1, starts[1], ..`."""
    before = lengths.cumsum(0) - lengths
    total = int(lengths.sum())
    offsets = torch.repeat_interleave(starts - before, lengths, output_size=total)
    return offsets + torch.arange(total, device=starts.device)


def first_edges(relation: Relation, num_dst: int, src: Tensor, dst: Tensor) -> Tensor:
    """The lowest id of an edge between each pair, -1 where there is none."""
    keys = relation.src * num_dst + relation.dst
    wanted = src * num_dst + dst
    if keys.shape[0] == 0:
        return torch.full_like(wanted, -1)
    keys, order = keys.sort(stable=True)
    places = torch.searchsorted(keys, wanted).clamp(max=keys.shape[0] - 1)
    return torch.where(keys[places] == wanted, order[places], -1)


def edges_between(relation: Relation, num_dst: int, src: Tensor, dst: Tensor) -> Tensor:
    """Ids of all edges between the pairs, those of the first pair first."""
    keys, order = (relation.src * num_dst + relation.dst).sort(stable=True)
    wanted = src * num_dst + dst
    starts = torch.searchsorted(keys, wanted)
    ends = torch.searchsorted(keys, wanted, right=True)
    return order[ranges(starts, ends - starts)]
