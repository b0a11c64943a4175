"""Graphs that one process has as a whole, compiled as for ranks: what is known of tensors that
`gnnc.distribute` returns is found out of the program here, which says where edges lead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....passes.inter.partition import ENDS
from ..importer.binding import Imported, MapBinding, SetBinding
from . import cut_tensors
from .cut_tensors import CutTensor, EdgePart, NodePart


class _Here(threading.local):
    """What belongs to this thread."""

    taken = False


_here = _Here()


@contextmanager
def as_for_ranks() -> Iterator[None]:
    """Programs that are made of whole graphs in here are those of ranks, of which this process is
    the only one."""
    before, _here.taken = _here.taken, True
    try:
        yield
    finally:
        _here.taken = before


def are_taken() -> bool:
    """Whether programs are made as for ranks."""
    return _here.taken


def note_ends(imported: Imported, examples: Sequence[Any]) -> None:
    """Makes the ends of edges among the arguments of a call known as those of the only rank, where
    programs are made as for ranks."""
    if not _here.taken:
        return
    nodes: dict[str, NodePart] = {}
    sizes = {s.name: s.size for s in imported.sets}
    for s in imported.sets:
        ends = ends_of(s)
        if ends is None:
            continue
        for m in ends:
            nodes.setdefault(m.codomain, all_nodes(int(sizes[m.codomain](examples))))
        source, target = (nodes[m.codomain] for m in ends)
        x = examples[ends[0].placeholder]
        count = int(s.size(examples))
        part = EdgePart(source, target, (count, count), np.arange(count), count)
        cut_tensors.note(x, CutTensor("index", part, tuple(x.shape)))


def ends_of(s: SetBinding) -> tuple[MapBinding, MapBinding] | None:
    """The maps of a set of edges to their sources and targets, which are the rows of one tensor
    (2 x edges); None for another set."""
    maps = {m.label: m for m in s.maps}
    if not all(k in maps for k in ENDS):
        return None
    source, target = sorted((maps[k] for k in ENDS), key=lambda m: m.index)
    alike = source.placeholder == target.placeholder and source.row_axis == target.row_axis == 1
    return (source, target) if alike and (source.index, target.index) == ((0,), (1,)) else None


def all_nodes(count: int) -> NodePart:
    """So many nodes, of one rank that reads none of others."""
    none = np.zeros(0, np.int64)
    return NodePart(np.arange(count), none, none, none.astype(np.int32), none, count, 1)
