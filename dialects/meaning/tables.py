"""The index tables that intra ops name, computed from the sets of a function."""

from __future__ import annotations

import numpy as np

from ..inter.types import Dom
from ..intra.bindings import (
    DomainAttr,
    IndexMapOp,
    MemberMapOp,
    MemberPairOp,
    MembersOp,
    OffsetsOp,
    PairIndexOp,
    TableOfDomain,
    WitnessOp,
)
from .world import Index, World

TABLES: tuple[type[TableOfDomain], ...] = (
    IndexMapOp,
    PairIndexOp,
    OffsetsOp,
    MembersOp,
    MemberMapOp,
    MemberPairOp,
    WitnessOp,
)
"""The ops that `table` knows."""


def dom_of(domain: DomainAttr) -> Dom:
    """A domain as the sets know it."""
    return Dom(domain.set_name.data, domain.key_names)


def size(world: World, domain: DomainAttr | None) -> int:
    """The number of stored rows."""
    return 1 if domain is None else world.count(dom_of(domain))


def index_map(world: World, domain: DomainAttr, path: str) -> Index:
    """Where `path` leads from every stored row."""
    d = dom_of(domain)
    return world.through(d, path, Dom(world.env.codomain(d.set, path)))


def groups(world: World, domain: DomainAttr, along: tuple[str, ...]) -> tuple[Index, Index]:
    """(offsets of the groups, rows in group order); rows without a group are left out."""
    group, count = world.groups(dom_of(domain), along)
    order = np.argsort(group, kind="stable")
    members = order[group[order] >= 0]
    sizes = np.bincount(group[members], minlength=count)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), members


def table(world: World, op: TableOfDomain) -> Index:
    """The table that an op names. Raises NotImplementedError for a table unknown here."""
    match op:
        case IndexMapOp():
            return index_map(world, op.domain, op.path.data)
        case PairIndexOp():
            return world.stored(dom_of(op.domain))[0]
        case OffsetsOp():
            return groups(world, op.domain, op.along_paths)[0]
        case MembersOp():
            return groups(world, op.domain, op.along_paths)[1]
        case MemberMapOp():
            members = groups(world, op.domain, op.along_paths)[1]
            return index_map(world, op.domain, op.path.data)[members]
        case MemberPairOp():
            members = groups(world, op.domain, op.along_paths)[1]
            keys = tuple(k.data for k in op.keys)
            return world.stored(Dom(op.domain.set_name.data, keys))[0][members]
        case WitnessOp():
            offsets, members = groups(world, op.domain, op.along_paths)
            some = offsets[1:] > offsets[:-1]
            return np.array([members[p] if s else -1 for p, s in zip(offsets, some, strict=False)])
        case _:
            raise NotImplementedError(
                f"the interpreter has no table for {op.name}: add a case to meaning/tables.py"
            )
