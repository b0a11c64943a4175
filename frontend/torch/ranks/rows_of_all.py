"""What programs for ranks are chosen by: how many rows masks keep, indices have and messages take,
of all ranks together.

Passes restrict layers to the rows that a loss needs where these are few (restrict-rows). One rank's
masks may keep many rows and another's none, and all have to compile the same program: so each
counts its own rows, and all take the sums. A program without masks and indices needs none of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....dialects.inter.sets import SetEnv
from ....passes.analysis.costs import Sizes, in_steps, note_sizes, note_subsets
from ....runtime.ranks.world import world
from ..calls.first_masks import Kept, Masks, kept_by
from ..importer import Imported, first_shares, first_sizes
from ..importer.emit.arguments import argument_name
from . import cut_tensors
from .call_start import chosen_by
from .cut_tensors import EdgePart, NodePart
from .partitioned import edges_bound, nodes_bound


def note_rows_of_all(
    imported: Imported, examples: Sequence[Any], sizes: Mapping[str, float]
) -> Imported:
    """Writes down for passes the sizes of sets and subsets in the whole graph; `sizes` are those of
    the sets that are cut, of others those of this rank. All ranks do this in the same call.

    Raises:
        Disagreement: ranks call other programs.
    """
    masks, indices = Masks.of(imported.function), indices_of(imported)
    if not masks.values and not indices:
        note_sizes(imported.function, sizes)
        return imported
    counted = kept_by(imported, masks.values, examples)
    mine: list[int] = []
    for m in masks.values:
        mine += [*counted[m], 0] if m in counted else [0, 0, 1]
    own = first_sizes(imported, examples)
    mine += [own[s] for s in indices]
    here = dict(crossing(imported, examples))
    for counts in here.values():
        mine += counts
    of_all = chosen_by(world(), mine)
    numbers = iter(of_all)
    every = {m: (next(numbers), next(numbers), next(numbers)) for m in masks.values}
    sizes = {**sizes, **{s: float(next(numbers)) for s in indices}}
    note_sizes(imported.function, sizes)
    wholes = [cut_tensors.whole(x) for x in examples]
    note_subsets(imported.function, first_shares(imported, wholes))
    masks.note({m: Kept(true, rows) for m, (true, rows, unknown) in every.items() if not unknown})
    found = Sizes.of(imported.function, SetEnv.of(imported.function))
    parts = {
        s: tuple(found.set(s) * in_steps(next(numbers) / max(1, sizes[s])) for _ in counts)
        for s, counts in here.items()
    }
    return replace(imported, of_all=of_all, crossing=parts)


def sizes_of_all(imported: Imported, examples: Sequence[Any]) -> dict[str, int]:
    """The rows of each set argument in the example arguments: of the whole graph where it is cut as
    nodes and edges are."""
    sizes = first_sizes(imported, [cut_tensors.whole(x) for x in examples])
    for s, part, ends in _edge_parts(imported, examples):
        sizes |= {s: part.total} | {name: nodes.total for name, nodes in ends.items()}
    return sizes


def indices_of(imported: Imported) -> list[str]:
    """The sets that are not cut as nodes and edges are, and lead to nodes that are: of indices of
    own nodes, as many as each rank likes."""
    edges, nodes = edges_bound(imported), nodes_bound(imported)
    return [
        s.name
        for s in imported.sets
        if s.name not in edges and s.name not in nodes and any(m.codomain in nodes for m in s.maps)
    ]


def crossing(imported: Imported, examples: Sequence[Any]) -> Iterator[tuple[str, list[int]]]:
    """For each set of edges the numbers of its local and of its remote ones by chunks, for each set
    of nodes at their ends those that this rank reads of others, by chunks."""
    nodes: dict[str, NodePart] = {}
    for s, part, ends in _edge_parts(imported, examples):
        yield s, [run.stop - run.start for run in part.runs]
        nodes = ends | nodes
    for name, part in nodes.items():
        yield name, np.bincount(part.ghost_chunk, minlength=part.chunks).tolist()


def _edge_parts(
    imported: Imported, examples: Sequence[Any]
) -> Iterator[tuple[str, EdgePart, dict[str, NodePart]]]:
    """The sets of edges that are cut, with how they are, and how the nodes are at their ends."""
    edges = edges_bound(imported)
    for s in imported.sets:
        if (at := edges.get(s.name)) is not None:
            part = cut_tensors.edges_of(examples[at], argument_name(imported.placeholders[at]))
            own = [m for m in s.maps if m.placeholder == at]
            ends = {m.codomain: part.target if m.index[0] else part.source for m in own}
            yield s.name, part, ends
