"""Sets of as many rows as a number of all ranks says, each of them the node of its number.

Loops of all nodes up to the greatest one that has an edge are made so, where a layer does not know
how many nodes there are. A rank has those of its own nodes whose number in the whole graph is less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import PARENT, AttachOp, SizedOp, UnionOp
from ....dialects.inter.types import set_name
from ....dialects.inter.values import IndexOp, IotaOp, SizeOp, StackOp

LAST = "last_node"
"""What an error calls the node of the last row."""


def nodes_of(op: SizedOp, cut: Collection[str]) -> str | None:
    """The nodes that the rows of a set are the first of: those that a map leads to which is the
    row's own number. None where it has no such map, or where maps lead to nodes otherwise."""
    found: set[str | None] = set()
    for use in op.results[0].uses:
        attach = use.operation
        if isinstance(attach, AttachOp):
            for x, m in zip(attach.xs, attach.new_maps().values(), strict=True):
                if m.codomain in cut:
                    of = x.owner
                    own = isinstance(of, IotaOp) and set_name(of.set) == op.set_type.label
                    found.add(m.codomain if own else None)
    return found.pop() if len(found) == 1 else None


def at_most_all(b: Builder, own: str, n: SSAValue) -> SSAValue:
    """The number `n` where all ranks have that many of the nodes `own`. More are an error, which is
    that of a map: the last row is read through one to all nodes. All ranks know both numbers, so
    each of them raises it."""
    one = b.const(1, (), i64)
    every = b.sized(b.size(own), name="every_node")
    there = b.sized(b.pointwise("minimum", n, one), name="last_row")  # none, where n is none
    last = b.attach(there, {LAST: (b.sub(n, one), set_name(every))})
    return b.reduce("sum", b.add(b.index(last, LAST), one), last, ())


@dataclass
class FirstRows:
    """Such sets by their old names: the rows of a rank's nodes that they are, and how many rows all
    ranks have."""

    old: SetEnv
    part: dict[str, str] = field(default_factory=dict[str, str])
    count: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def make(self, b: Builder, label: str, name: str, own: str, n: SSAValue) -> SSAValue:
        """The rows here of a set `label` of `n` rows, among the nodes `own` of a rank."""
        n = at_most_all(b, own, b.cast(n, i64))
        made = b.filter(own, b.pointwise("lt", b.iota(own), n), name=name)
        self.part[label], self.count[label] = set_name(made), n
        return made

    def said(self, b: Builder, op: ValueOp, parts: Mapping[str, Sequence[str]]) -> list[SSAValue]:
        """What an op gives that numbers the rows of such a set, or counts them: they have the
        numbers of their nodes. Nothing for other ops."""
        match op:
            case SizeOp() if (n := self.count.get(set_name(op.set))) is not None:
                return [n]
            case IotaOp() if (part := self.part.get(set_name(op.set))) is not None:
                return [b.index(part, PARENT)]
            case IndexOp() if self.old.codomain(set_name(op.set), op.path.data) in self.part:
                path = self.path_to_nodes(op)
                return [b.index(part, path) for part in parts[set_name(op.set)]]
            case _:
                return []

    def path_to_nodes(self, op: IndexOp | IotaOp) -> str:
        """The path by which the numbers that an op gives are found among the rows of a rank."""
        path = op.path.data if isinstance(op, IndexOp) else ""
        end = self.old.codomain(set_name(op.set), path) if path else set_name(op.set)
        return ".".join([*filter(None, [path]), *[PARENT] * (end in self.part)])

    def paths(
        self, op: AttachOp, x: SSAValue, parts: Sequence[tuple[str, int]]
    ) -> list[tuple[str, str]]:
        """The paths that a new map `x` of a union is, each with the part that it is of; nothing
        where it is something else. `parts` are those of the union here, with their places in the
        one before."""
        stack, union = x.owner, op.set.owner
        if not isinstance(stack, StackOp) or not isinstance(union, UnionOp):
            return []
        if set_name(stack.set) != set_name(op.set):
            return []
        found: list[tuple[str, str]] = []
        for part, i in parts:
            of = stack.xs[i].owner
            if not isinstance(of, IndexOp | IotaOp) or set_name(of.set) != set_name(union.sets[i]):
                return []
            found.append((part, self.path_to_nodes(of)))
        return found if all(path for _, path in found) else []
