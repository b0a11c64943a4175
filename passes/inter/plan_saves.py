"""plan-saves: which forward values the backward half keeps, and which it computes again.

A value that the gradients need is an argument (free), stored by the forward, or computed again from
stored ones. Reductions, products and softmax are not repeated; reads through maps, pointwise ops,
dropout (whose mask follows from its key) and changes of shape are. Among all choices the pass takes
the cheapest set of stored values, a minimum cut with the bytes written and read as capacities: a
message per edge is not kept where the node values it was made from will do, nor a node value where
one that is kept anyway gives it.

The result is explicit: what the backward half computes again is a copy of the forward's op, marked
`inter.recompute`, and what only gradients use but is stored is marked `inter.save`. What crosses in
split-phases is then exactly the chosen set.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.attributes import GRAD, RECOMPUTE, SAVE, SEEDED, UPDATE
from ...dialects.inter.base import ValueOp
from ...dialects.inter.pointwise import PointwiseOp
from ...dialects.inter.ranks import EXCHANGES
from ...dialects.inter.reduce import ReduceOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import RowsType, is_bool, rows
from ...dialects.signature import body_ops, result_attributes, return_of
from ..analysis.costs import DEGREE, Sizes
from ..analysis.dependence import FREE, ancestors, cotangents, dependants
from ..analysis.min_cut import MinCut
from ..function_pass import FunctionPass
from .hoist_invariants import VIEWS, Copies, Invariants
from .linear.factors import factorise
from .linear.function import is_unit

COSTLY = EXCHANGES | {"inter.reduce", "inter.softmax", "inter.contract", "inter.count"}
"""Ops that the backward half does not repeat."""

GATHERED = frozenset({"inter.at", "func.return"})
"""Users that need a value in memory: storing it costs no write then."""

READ, WRITE = 1, 2
"""What reading and writing a stored value count: a write fetches its lines first."""


def _in_memory(value: SSAValue) -> bool:
    """Whether the forward stores a value anyway, or a view of it."""
    users = [use.operation for use in value.uses]
    return any(
        op.name in GATHERED or (op.name in VIEWS and _in_memory(op.results[0])) for op in users
    )


def factors_of(op: ReduceOp) -> set[SSAValue]:
    """What a sum over rows multiplies for each of them; a single row costs nothing."""
    return {f.value for f in factorise(op.x).factors if not is_unit(f.value)}


@dataclass
class SavePlan:
    """The choice for one function."""

    func: FuncOp
    sizes: Sizes

    def __post_init__(self) -> None:
        func = self.func
        self.ops = body_ops(func)
        ret = return_of(func)
        attrs = result_attributes(func)
        self.outputs = [v for v, a in zip(ret.operands, attrs, strict=True) if GRAD not in a]
        self.handed_out = {
            v
            for v, a in zip(ret.operands, attrs, strict=True)
            if GRAD not in a and UPDATE not in a and isinstance(v.owner, PointwiseOp)
        }
        self.grads = [v for v, a in zip(ret.operands, attrs, strict=True) if GRAD in a]
        self.late = dependants(self.ops, set[SSAValue](cotangents(func)))
        self.early = ancestors(self.outputs)
        # of a seeded function all but the last scaling runs with the forward
        seeded = SEEDED in func.attributes
        self.forward = (
            {op for op in self.ops if not set(op.results) & self.late or op in self.early}
            if seeded
            else self.early
        )
        self.forward = self.forward | self.alongside()
        invariants = Invariants(func, self.sizes)
        self.prepared = {r for op in invariants.stored() for r in op.results}

    def alongside(self) -> set[Operation]:
        """Sums that only gradients use, of numbers that a sum of the forward has at hand for the
        same groups: there they cost no pass over the edges."""
        read: dict[object, set[SSAValue]] = {}
        for op in self.ops:
            if isinstance(op, ReduceOp) and op in self.forward:
                read.setdefault((op.over, op.along), set()).update(factors_of(op))
        return {
            op
            for op in self.ops
            if isinstance(op, ReduceOp)
            and not set(op.results) & self.late
            and factors_of(op) & read.get((op.over, op.along), set())
        }

    # ------------------------------------------------------------ the choice

    def is_given(self, value: SSAValue) -> bool:
        """Whether the backward half has the value for nothing."""
        owner = value.owner
        return (
            not isinstance(owner, ValueOp)
            or owner.name in FREE
            or value in self.prepared
            or value in self.late
        )

    def repeatable(self, op: Operation) -> bool:
        """Whether the backward half may compute `op`: it is cheap, or nobody else does. Not so what
        the caller gets, where reading it takes no longer than reading what it is computed from: to
        keep it costs nothing, and it is what eager keeps of an activation, whose input the user may
        edit then."""
        if op not in self.forward:
            return True
        return op.name not in COSTLY and not self._is_at_hand(op.results[0])

    def _is_at_hand(self, value: SSAValue) -> bool:
        if value not in self.handed_out or not isinstance(op := value.owner, PointwiseOp):
            return False
        read = [self.sizes.bytes(rows(x)) for x in op.operands]
        return self.sizes.bytes(rows(value)) <= max(read, default=0)

    def cost(self, value: SSAValue) -> int:
        """What storing a value costs, in bytes moved."""
        t = rows(value)
        size = self.sizes.bytes(t) * (2 if is_bool(t.elem) else 1)  # masks become bytes and back
        view = isinstance(value.owner, Operation) and value.owner.name in VIEWS
        # what is viewed is there as well: it goes first
        return max(1, round(size * (READ if _in_memory(value) else READ + WRITE))) + view

    def needed(self) -> list[SSAValue]:
        """The forward values that ops on cotangents read, or that are gradients themselves."""
        users: list[Operation] = [op for op in self.ops if set(op.results) & self.late]
        values = [x for op in users for x in op.operands] + self.grads
        return [v for v in dict.fromkeys(values) if not self.is_given(v)]

    def choose(self) -> set[SSAValue]:
        """The values to store."""
        needed = self.needed()
        cut: MinCut[SSAValue] = MinCut()
        found: set[SSAValue] = set()
        todo = list(needed)
        while todo:
            value = todo.pop()
            if value not in found:
                found.add(value)
                cut.add(value, self.cost(value))
                todo.extend(self._sources(value))
        for value in found:
            assert isinstance(value.owner, Operation)
            if not self.repeatable(value.owner):
                cut.start(value)
            for source in self._sources(value):
                cut.arc(source, value)
        for value in needed:
            cut.end(value)
        return cut.solve()

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """What must be at hand to compute a value again; nothing where that is not an option."""
        owner = value.owner
        assert isinstance(owner, Operation)
        if not self.repeatable(owner):
            return []
        return [x for x in dict.fromkeys(owner.operands) if not self.is_given(x)]

    # ------------------------------------------------------------ the rewriting

    def apply(self, saved: set[SSAValue]) -> None:
        """Gives the ops on cotangents copies of what is not in `saved`."""
        copies = Copies(
            lambda x: not isinstance(x.type, RowsType) or self.is_given(x) or x in saved, RECOMPUTE
        )
        for op in self.ops:
            if set(op.results) & self.late:
                copies.redirect(op, range(len(op.operands)))
        ret = return_of(self.func)
        attrs = result_attributes(self.func)
        copies.redirect(ret, (i for i, a in enumerate(attrs) if GRAD in a))
        for value in saved:
            if value.owner not in self.early and isinstance(value.owner, Operation):
                value.owner.attributes[SAVE] = UnitAttr()
        for op in reversed(self.ops):  # originals that only the copies replaced
            if isinstance(op, ValueOp) and op.results[0].first_use is None:
                Rewriter.erase_op(op)


def plan_saves(func: FuncOp, degree: float = DEGREE) -> set[SSAValue]:
    """Plans `func`, if it has cotangents, and returns what it stores."""
    if not cotangents(func):
        return set()
    plan = SavePlan(func, Sizes.of(func, SetEnv.of(func), degree))
    saved = plan.choose()
    plan.apply(saved)
    return saved


@dataclass(frozen=True)
class PlanSavesPass(FunctionPass):
    """Decides what the backward half keeps of the forward, and what it computes again."""

    name = "plan-saves"

    degree: float = DEGREE

    def on(self, func: FuncOp) -> None:
        plan_saves(func, self.degree)
