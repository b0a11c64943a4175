"""hoist-invariants: marks the rows that depend on the graph only, so that @prepare computes them.

A value is invariant when sets, constants and integer data are all it is computed from: the degree
normalisation of GCN, say. Of the invariant values, those that something else uses are marked
`inter.prepare` (split-phases moves them and what they need), with exceptions that would waste
memory: a view (`at`, `reshape`, ..) costs nothing and is made where it is used, from what it views;
a pointwise value per edge wider than `edge_width` numbers is likewise computed again, and so is one
that is wider than all it is computed from (the one-hot rows of a loss). Integer
`rows<unit, ..>` arguments are not invariant (they are random keys and step counters), neither is
dropout, nor an argument that the function updates.

Arguments marked `inter.constant` count as invariant: input features, say, so that their aggregation
(A X of a first layer) is done once per graph and input. What follows from these is stored only if
it took many rows or operations, or is a number of each edge (its weight, normalised), and takes no
more than `room` times the memory of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.attributes import PREPARE
from ...dialects.inter.base import ValueOp
from ...dialects.inter.ranks import EXCHANGES
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import RowsType, rows
from ...dialects.signature import body_ops, return_of
from ..analysis.costs import Sizes, row_bytes
from ..analysis.dependence import FREE, ancestors, closure, invariant_arguments, structure_ancestors
from ..function_pass import FunctionPass

EDGE_WIDTH = 1
"""Numbers a row above which an invariant pointwise value per edge is not stored."""
ROOM = 4.0
"""What a value that is computed from inputs may take of memory, for one byte of these."""

VIEWS = frozenset(
    f"inter.{name}"
    for name in ("at", "reshape", "transpose", "broadcast", "slice", "part", "as_rows", "as_unit")
)
"""Ops that only say where to read."""
COSTLY = EXCHANGES | {
    "inter.reduce",
    "inter.softmax",
    "inter.contract",
    "inter.count",
    "inter.row_reduce",
}
"""Ops that read many rows, or do more than a few operations, for each number they give; and those
that need other ranks."""


@dataclass
class Invariants:
    """Which values of a function are invariant, and which of these @prepare should store."""

    func: FuncOp
    sizes: Sizes
    edge_width: int = EDGE_WIDTH
    room: float = ROOM

    def __post_init__(self) -> None:
        self.ops = body_ops(self.func)
        of_graph = invariant_arguments(self.func, inputs=False, units=False)
        start = invariant_arguments(self.func, inputs=True, units=False)
        self.constants = closure(self.ops, set())
        self.of_graph = closure(self.ops, of_graph)
        self.values = closure(self.ops, start)
        self.input_bytes = sum(self.sizes.bytes(rows(x)) for x in start - of_graph)

    def worth_storing(self, op: Operation) -> bool:
        """Whether the invariant result of `op` is better stored than made again."""
        if not isinstance(op, ValueOp) or op.name in FREE or op.name in VIEWS:
            return False
        if op.results[0] in self.constants:
            return False
        if op.results[0] not in self.of_graph:
            return self._worth_keeping(op)
        if op.name in COSTLY:
            return True
        if self.sizes.is_edges(op.type.dom) and not self._is_narrow(op):
            return False
        return self._reads_more(op)

    def _is_narrow(self, op: ValueOp) -> bool:
        """Whether a pointwise value per edge takes so little that it may be stored."""
        return math.prod(op.type.dims) <= self.edge_width

    def _reads_more(self, op: ValueOp) -> bool:
        """Whether a row is computed from more bytes than it has."""
        return sum(map(row_bytes, map(rows, self._sources(op)))) >= row_bytes(op.type)

    def _worth_keeping(self, op: ValueOp) -> bool:
        """The same for what follows from inputs: what took many rows or operations, the numbers of
        edges, and what is made of that and takes no more memory, in its place."""
        size = self.sizes.bytes(op.type)
        edges = self.sizes.is_edges(op.type.dom) and self._is_narrow(op) and self._reads_more(op)
        if op.name in COSTLY or edges:
            return size <= self.room * self.input_bytes
        costly = (x for x in self._sources(op) if isinstance(x.owner, Operation))
        return size <= sum(self.sizes.bytes(rows(x)) for x in costly if x not in self.of_graph)

    def _sources(self, op: ValueOp) -> list[SSAValue]:
        """What would be read to compute `op` again: arguments and what costly ops gave."""
        out: list[SSAValue] = []
        seen: set[SSAValue] = set()
        todo = list(op.operands)
        while todo:
            x = todo.pop()
            if x in seen or x in self.constants or not isinstance(x.type, RowsType):
                continue
            seen.add(x)
            owner = x.owner
            if isinstance(owner, ValueOp) and owner.name not in COSTLY:
                todo += owner.operands
            else:
                out.append(x)
        return out

    def stored(self) -> set[Operation]:
        """The ops whose results @prepare should give: the last invariant ones worth it."""
        out: set[Operation] = set()
        seen: set[SSAValue] = set()
        users = [op for op in self.ops if not set(op.results) <= self.values]
        todo = [x for op in (*users, return_of(self.func)) for x in op.operands]
        while todo:
            value = todo.pop()
            if value in seen or value not in self.values:
                continue
            seen.add(value)
            owner = value.owner
            if not isinstance(owner, ValueOp):
                continue
            if self.worth_storing(owner):
                out.add(owner)
            else:
                todo.extend(owner.operands)
        return out


def hoist_invariants(func: FuncOp, edge_width: int = EDGE_WIDTH, room: float = ROOM) -> None:
    """Marks the ops of `func` that @prepare should compute."""
    sizes = Sizes.of(func, SetEnv.of(func))
    stored = Invariants(func, sizes, edge_width, room).stored()
    for op in stored:
        op.attributes[PREPARE] = UnitAttr()
    early = structure_ancestors(func) | ancestors(r for op in stored for r in op.results)
    passing = {op for op in early - stored if isinstance(op, ValueOp) and op.name not in FREE}
    copies = Copies(lambda x: x.owner not in passing)
    for op in (*body_ops(func), return_of(func)):
        if op not in early:
            copies.redirect(op, range(len(op.operands)))


@dataclass
class Copies:
    """Copies of ops for later phases, which compute again what an earlier one has on its way, each
    in front of the first op that needs it and with the attribute `mark`. Values that `stay` are
    read as they are.
    """

    stay: Callable[[SSAValue], bool]
    mark: str | None = None
    made: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def redirect(self, op: Operation, operands: Iterable[int]) -> None:
        """Makes `op` read copies in the place of some operands."""
        for i in operands:
            op.operands[i] = self._copy(op.operands[i], op)

    def _copy(self, x: SSAValue, before: Operation) -> SSAValue:
        if not isinstance(x.owner, Operation) or self.stay(x):
            return x
        if x not in self.made:
            copy = x.owner.clone({y: self._copy(y, before) for y in x.owner.operands})
            if self.mark is not None:
                copy.attributes[self.mark] = UnitAttr()
            Rewriter.insert_op(copy, InsertPoint.before(before))
            self.made[x] = copy.results[0]
        return self.made[x]


@dataclass(frozen=True)
class HoistInvariantsPass(FunctionPass):
    """Marks the rows that depend on the graph only for @prepare."""

    name = "hoist-invariants"

    edge_width: int = EDGE_WIDTH
    room: float = ROOM

    def on(self, func: FuncOp) -> None:
        hoist_invariants(func, self.edge_width, self.room)
