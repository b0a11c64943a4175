"""Pairs that are no edges, drawn of a graph that is cut: they are those that one process draws.

Rank 0 draws the candidates, and each rank says which of these are edges that it has. Of the pairs
that are left a rank has those that lead to its nodes; where they begin with nodes of others whose
rows it has not read so far, these become ghosts of the part as this call knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.world import world
from . import cut_tensors
from .cut_tensors import CutTensor, EdgePart, NodePart
from .lookups import part_read, places_in

TRIES = 3
"""How often candidates are drawn, as PyG does."""


def negative_sampling(
    edge_index: Tensor,
    nodes: Sequence[int],
    number: int,
    known: Sequence[NodePart] = (),
    both: bool = False,
) -> Tensor:
    """The pairs of one rank of those that `torch_geometric.utils.negative_sampling` draws in one
    process, with the random numbers of rank 0: about `number` on all ranks together, int
    [2, pairs]. All ranks call it.

    Args:
        edge_index: the ends of the edges of a part.
        nodes: how many there are, in the whole graph or of this rank; two numbers where the pairs
            are of nodes of two kinds, and may then have equal numbers.
        known: parts that earlier draws of the same call have made, which these pairs add to.
        both: draw half as many, from a lower to a higher number, and take both directions of each
            (`force_undirected`).

    Raises:
        ValueError: the tensor has not the edges of a part, the nodes are others than its own, or
            rows cross in several chunks.
        Disagreement: ranks ask for other pairs.
    """
    edges = cut_tensors.edges_of(edge_index, "edge_index")
    ends = edges.source, edges.target
    _check(nodes, ends)
    communicator = world()
    among = Among(ends[0].total, ends[1].total, len(nodes) == 2, both)
    own = edges.numbers_of_ends(edge_index.t()).t()
    communicator.agree("the pairs that are drawn", f"{number} of {among}")
    found = drawn(among, own, number // (1 + both), communicator)
    pairs = found.numpy().astype(np.int64, copy=False)
    source = _last_of(known, edges.source)
    places, is_mine = places_in(edges.target.owned, pairs[1])
    numbers = np.flatnonzero(is_mine)
    is_far = ~places_in(source.owned, pairs[0, numbers])[1]
    numbers = np.concatenate([numbers[~is_far], numbers[is_far]])
    read = part_read(source, [pairs[0, numbers], source.ghosts], communicator)
    read = replace(read, extends=source)
    src, dst = read.places(pairs[0, numbers]), places[numbers]
    made = torch.from_numpy(np.stack([src, dst])).to(edge_index.dtype)
    local = int(np.count_nonzero(~is_far))
    target = read if edges.target is edges.source else edges.target
    part = EdgePart(read, target, (local, len(numbers)), numbers, pairs.shape[1])
    cut_tensors.note(made, CutTensor("index", part, (2, part.total)))
    return made


class Among:
    """The pairs that there may be, by numbers, as PyG has them."""

    def __init__(self, sources: int, targets: int, two_kinds: bool, both: bool) -> None:
        self.size, self.two_kinds, self.both = (sources, targets), two_kinds, both

    def __str__(self) -> str:
        directions = "both directions of " if self.both else ""
        return f"{directions}{self.size[0]} x {self.size[1]} nodes of {1 + self.two_kinds} kinds"

    def numbers(self, ends: Tensor) -> tuple[Tensor, int]:
        """Those of some pairs, int [pairs], without loops where nodes are of one kind; and how many
        there are."""
        from torch_geometric.utils._negative_sampling import edge_index_to_vector

        return edge_index_to_vector(ends, self.size, self.two_kinds, self.both)

    def ends(self, numbers: Tensor) -> Tensor:
        """Of numbers the pairs, int [2, pairs]."""
        from torch_geometric.utils._negative_sampling import vector_to_edge_index

        return vector_to_edge_index(numbers, self.size, self.two_kinds, self.both)


def drawn(among: Among, own: Tensor, number: int, communicator: Communicator) -> Tensor:
    """All pairs that are drawn, int [2, pairs] on all ranks, of which `own` are this rank's edges.
    See PyG's `negative_sampling`, which this follows."""
    taken, population = among.numbers(own)
    edges = int(communicator.all_reduce(np.array(len(taken)), "sum"))
    if edges >= population:
        return own.new_empty((2, 0))
    candidates = int(1.1 * number / (1.0 - edges / population))
    found = own.new_empty(0)
    for _ in range(TRIES):
        new = _sample(population, candidates, communicator).to(own.dtype)
        is_edge = np.isin(new.numpy(), taken.numpy()).astype(np.int32)
        is_edge = communicator.all_reduce(is_edge, "max").astype(bool)
        free = new[torch.from_numpy(~is_edge & ~np.isin(new.numpy(), found.numpy()))]
        found = torch.cat([found, free])
        if len(found) >= number:
            found = found[:number]
            break
    return among.ends(found)


def _sample(population: int, candidates: int, communicator: Communicator) -> Tensor:
    from torch_geometric.utils._negative_sampling import sample

    mine = sample(population, candidates) if communicator.rank == 0 else None
    return communicator.broadcast(mine)


def _check(nodes: Sequence[int], ends: Sequence[NodePart]) -> None:
    for n, part in zip(nodes, ends, strict=False):
        if n not in (part.total, len(part.owned)):
            raise ValueError(
                f"negative_sampling: pairs of {n} nodes are asked for, and there are {part.total}, "
                f"of which {len(part.owned)} are this rank's"
            )
    if ends[0].chunks > 1:
        raise ValueError(
            "negative_sampling: rows cross in several chunks, and pairs that are drawn read other "
            "rows in each call: give gnnc.distribute no chunks"
        )


def _last_of(known: Sequence[NodePart], part: NodePart) -> NodePart:
    """The last of those that add to a part, or the part."""
    return next((k for k in reversed(known) if k.adds_to(part)), part)
