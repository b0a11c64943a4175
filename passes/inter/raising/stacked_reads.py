"""raise, stacked reads: rows that relations read part by part are read from a union at once.

PyG puts the edges of all relations behind each other, and the rows of all types of nodes, and reads
these by numbers that are moved to where the types begin. The importer resolves such a read: each
relation reads the rows of its own type. What is left is a row an edge, written part by part and
read again. Where the union of relations has the map anyway, for a sum or a softmax, a row is read
through it, from a union of the types: each node's row is copied once, whatever its degree.

In programs of ranks it stays as it is.

Before: `stack %u (at %g0[src] %a, at %g1[src] %b)`. After: `at %u[dst] (stack %N %a, %b)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.ranks import RANK
from ....dialects.inter.structure import PARENT, AttachOp, UnionOp
from ....dialects.inter.types import is_float, rows, set_name, set_type
from ....dialects.inter.values import AtOp, PartOp, StackOp
from ....dialects.signature import is_returned
from ..linear.function import LinearFunction
from ..partitioning.places import place_in_union


def read_of_stack(fn: LinearFunction, op: ValueOp) -> bool:
    """A stack of reads is a read of a stack, where that has fewer rows."""
    if not isinstance(op, StackOp) or is_returned(op.results[0]) or not is_float(op.type.elem):
        return False
    if all(isinstance(use.operation, PartOp) for use in op.results[0].uses):
        return False  # nobody reads it as a whole
    if any(RANK in fn.env.info(s).maps for s in fn.env.sets):
        return False  # on ranks messages, and what waits for them, go by relation
    union = op.set.owner
    if not isinstance(union, UnionOp):
        return False
    for label, m in set_type(op.set).map_dict().items():
        nodes = fn.env.value(m.codomain)
        if not isinstance(nodes.owner, UnionOp):
            continue
        if fn.sizes.set(m.codomain) >= fn.sizes.set(set_name(op.set)):
            continue
        read = rows_of_types(op, union.sets, label, nodes)
        if read is None:
            continue
        b = fn.before(op)
        known = [x for x in read if x is not None]
        if len(known) < len(read):
            nothing = b.const(0.0, op.type.dims, op.type.elem)
            known = [nothing if x is None else x for x in read]
        whole = b.stack(nodes, *known)
        fn.replace(op.results[0], b.at(op.set, label, whole))
        return True
    return False


def rows_of_types(
    op: StackOp, parts: Sequence[SSAValue], label: str, nodes: SSAValue
) -> list[SSAValue | None] | None:
    """For each part of `nodes` the rows that the map `label` of all `parts` of a union reads there,
    None where none does; None in all where `op` stacks anything else than what it reads."""
    found: list[SSAValue | None] = [None] * len(set_type(nodes).part_names)
    for x, part in zip(op.xs, parts, strict=True):
        attach = part.owner
        if not isinstance(attach, AttachOp) or label not in attach.new_maps():
            return None
        number = attach.xs[list(attach.new_maps()).index(label)]
        place = place_in_union(attach, number, nodes)
        if place is None or rows(x).dims != op.type.dims:
            return None
        path, k = place
        source = _read(x, part, attach, path)
        if source is None or found[k] not in (None, source):
            return None
        found[k] = source
    return found


def _read(x: SSAValue, part: SSAValue, attach: AttachOp, path: str) -> SSAValue | None:
    """What `x` reads through a path from a set, or from what that attaches a map to."""
    read: Operation | object = x.owner
    if isinstance(read, AtOp) and read.set is part and read.path.data == PARENT:
        read = read.x.owner
        part = attach.set
    if isinstance(read, AtOp) and read.set is part and read.path.data == path:
        return read.x if read.otherwise is None else None
    return None
