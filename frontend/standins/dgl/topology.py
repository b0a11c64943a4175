"""Which nodes and edges a graph has, without features.

All ends of edges are `int64`, as torch indexes with them; a graph of `int32` only differs in what
it answers. Sizes are plain integers that nothing branches on, so that a traced call serves graphs
of any size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .base import DGLError

EType = tuple[str, str, str]


class Coverage:
    """Whether every node of a side has an edge; None is not known.

    Layers ask, and branch on the answer. It is found when a relation is made, since a traced
    program can only ask an object, and it is an object of its own so that a trace depends on the
    answer only where it is asked for.
    """

    def __init__(self, whole: bool | None):
        self._whole = whole

    @property
    def whole(self) -> bool | None:
        """The answer."""
        return self._whole


class Joined(Coverage):
    """The answer for several graphs side by side, asked of them when it is asked for."""

    def __init__(self, parts: list[Coverage]):
        self._parts = parts

    @property
    def whole(self) -> bool | None:
        """The answer."""
        return _all([part.whole for part in self._parts])


def _all(answers: list[bool | None]) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


class Relation:
    """The edges of one type: `src` and `dst`, two `int64` tensors with one entry an edge.

    `reached` is about targets, and edges that lead to them, `left` about sources.
    """

    def __init__(self, src: Tensor, dst: Tensor, reached: Coverage, left: Coverage):
        self.src, self.dst = src, dst
        self.reached, self.left = reached, left


def relation(src: Tensor, dst: Tensor, num_src: int, num_dst: int) -> Relation:
    """The relation of these ends, which are within range."""
    src, dst = src.long(), dst.long()
    return Relation(src, dst, _coverage(dst, num_dst), _coverage(src, num_src))


def _coverage(ids: Tensor, rows: int) -> Coverage:
    if torch.compiler.is_dynamo_compiling():
        return Coverage(None)
    return Coverage(_all_in(ids, rows))


def _all_in(ids: Tensor, rows: int) -> bool:
    seen = torch.zeros(rows, dtype=torch.bool, device=ids.device)
    return bool(seen.index_fill_(0, ids, True).all())


class Topology:
    """Relations by canonical type, and how many nodes there are of each type.

    `sources` and `targets` are one and the same dict, except in a block: there a type may have
    some nodes as sources and others as targets. No one edits a topology, or its dicts, once it is
    made.
    """

    def __init__(
        self,
        relations: dict[EType, Relation],
        sources: dict[str, int],
        targets: dict[str, int] | None = None,
        idtype: torch.dtype = torch.int64,
        device: torch.device | None = None,
    ):
        self.relations = relations
        self.is_block = targets is not None
        self.sources = sources
        self.targets = sources if targets is None else targets
        self.idtype = idtype
        self.device = torch.device("cpu") if device is None else device

    def side_types(self) -> tuple[list[str], list[str]]:
        """The types of sources and of targets; each type is both unless no type is both."""
        if self.is_block:
            return list(self.sources), list(self.targets)
        types = list(self.sources)
        ends = {dst for _, _, dst in self.relations}
        if len(types) == 1 or any(src in ends for src, _, _ in self.relations):
            return types, types
        return [t for t in types if t not in ends], [t for t in types if t in ends]

    def moved(self, device: torch.device) -> Topology:
        """The same on another device."""
        relations = {
            etype: Relation(r.src.to(device), r.dst.to(device), r.reached, r.left)
            for etype, r in self.relations.items()
        }
        return self._with(relations, self.idtype, device)

    def typed(self, idtype: torch.dtype) -> Topology:
        """The same with ids of another type."""
        if idtype not in (torch.int32, torch.int64):
            raise DGLError(f"idtype must be torch.int32 or torch.int64, got {idtype}")
        return self._with(self.relations, idtype, self.device)

    def _with(
        self, relations: dict[EType, Relation], idtype: torch.dtype, device: torch.device
    ) -> Topology:
        targets = self.targets if self.is_block else None
        return Topology(relations, self.sources, targets, idtype, device)

    def slice(self, etype: EType) -> Topology:
        """One relation and its node types."""
        relations = {etype: self.relations[etype]}
        src, _, dst = etype
        if self.is_block:
            targets = {dst: self.targets[dst]}
            sources = {src: self.sources[src]}
            return Topology(relations, sources, targets, self.idtype, self.device)
        sources = {ntype: self.sources[ntype] for ntype in dict.fromkeys((src, dst))}
        return Topology(relations, sources, None, self.idtype, self.device)


def same_device(a: torch.device, b: torch.device) -> bool:
    """Whether two devices are one, where `cuda` is the current one."""
    return a.type == b.type and (a.index or 0) == (b.index or 0)
