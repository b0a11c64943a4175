"""What the rules of reorder-linear share: the function at hand, and how they change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import OverAlong, ReduceOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.shapes import (
    ConcatOp,
    ContractOp,
    ReshapeOp,
    RowReduceOp,
    SliceOp,
    TransposeOp,
)
from ....dialects.inter.types import Dom, RowsType, is_float, rows, set_name
from ....dialects.inter.values import AtOp, CastOp
from ....dialects.signature import body_ops, is_returned
from ...analysis.costs import DEGREE, Sizes
from ...analysis.dependence import (
    behind_results,
    closure,
    has_backward,
    invariant_arguments,
    operands_first,
    to_differentiate,
)
from ...analysis.slopes import Slopes
from ...analysis.value_facts import Facts
from ...targets import DEFAULT, TARGETS, Target

ROUNDS = 50
"""More than any program needs; a rule that undid another would not end."""

ROW_WISE = (
    PointwiseOp,
    ContractOp,
    ReshapeOp,
    RowReduceOp,
    SliceOp,
    TransposeOp,
    ConcatOp,
    CastOp,
)
"""Ops that compute each row of their result from the same rows of their operands."""


class LinearFunction:
    """One function while reorder-linear works on it."""

    def __init__(
        self,
        func: FuncOp,
        degree: float = DEGREE,
        target: Target = TARGETS[DEFAULT],
    ):
        self.func = func
        self.target = target
        self.env = SetEnv.of(func)
        self.sizes = Sizes.of(func, self.env, degree)
        self.facts = Facts()
        self.slopes: dict[str, Slopes] = {}
        self.typed: dict[tuple[SSAValue, SSAValue, int], tuple[SSAValue, SSAValue, str]] = {}
        self._least: dict[SSAValue, Dom] = {}
        self.joint = has_backward(func)
        reads = [op for op in body_ops(func) if isinstance(op, AtOp)]
        self.vanilla = any(r.type.dom != r.infer(self.env) for r in reads)

    # ------------------------------------------------------------ facts

    def constant_inputs(self) -> set[SSAValue]:
        """The values that hoist-invariants may compute once per graph."""
        return closure(body_ops(self.func), invariant_arguments(self.func, True, False))

    def least(self, v: SSAValue) -> Dom:
        """The least domain of a value, whatever its type says."""
        for x in operands_first(v, self._least, _read_by):
            self._least[x] = self._find_least(x)
        return self._least[v]

    def _find_least(self, v: SSAValue) -> Dom:
        op = v.owner
        if isinstance(op, AtOp) and op.otherwise is None:
            return self.env.at(set_name(op.set), op.path.data, self._least[op.x])
        if not isinstance(op, ROW_WISE):
            return rows(v).dom
        return self.env.total(op, self.env.join(self._least[x] for x in op.operands))

    def may_leave(self, moved: Iterable[SSAValue], reduce: ReduceOp, result: SSAValue) -> bool:
        """Whether the gradient of what leaves a sum stays the same at empty groups, where it is 0
        times the cotangent of `result`, which follows from the sum: that is finite, or no gradient
        is taken, or there is no empty group."""
        along, over = reduce.along_keys, reduce.over.set
        if len(along) == 1 and "onto" in self.env.flags(over, along[0]):
            return True
        if to_differentiate(self.func).isdisjoint(moved):
            return True
        slopes = self.slopes.setdefault(over, Slopes(over))
        return slopes.finite_cotangent(result, behind_results(self.func))

    # ------------------------------------------------------------ changes

    def before(self, op: Operation) -> Builder:
        """A builder in front of `op`. In a vanilla function it types as the importer does: on whole
        sets, but for values per pair."""
        pairs = isinstance(op, ValueOp) and bool(op.type.dom.keys)
        pairs |= isinstance(op, OverAlong) and bool(op.over.keys)
        return Builder(self.env, InsertPoint.before(op), self.vanilla and not pairs)

    def replace(self, old: SSAValue, new: SSAValue) -> None:
        """Makes `new` the value that `old` was."""
        want = rows(old)
        if is_returned(old) and want != new.type:  # the types of results are the caller's
            assert isinstance(new.owner, Operation)
            parent = new.owner.parent
            assert parent is not None
            new = Builder(self.env, InsertPoint.after(new.owner)).widen(new, want.dom)
        if old.name_hint and isinstance(new.owner, Operation):
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)

    def settle(
        self, pass_name: str, rules: Sequence[Callable[[LinearFunction, ValueOp], bool]]
    ) -> None:
        """Applies to each value in use the first rule that does something, until none does."""
        for _ in range(ROUNDS):
            changed = False
            for op in value_ops(self.func):
                if op.results[0].first_use is not None:
                    changed |= any(rule(self, op) for rule in rules)
            self.sweep()
            if not changed:
                return
        raise RuntimeError(f"{pass_name}: @{self.func.sym_name.data} does not settle")

    def sweep(self) -> None:
        """Erases the values that nothing uses. Sets stay: a type may name them (see dce-sets)."""
        for op in reversed(body_ops(self.func)):
            if isinstance(op, ValueOp) and op.results[0].first_use is None:
                Rewriter.erase_op(op)


def width(v: SSAValue) -> int:
    """The numbers in a row."""
    return math.prod(rows(v).dims)


def pointwise(v: SSAValue, name: str) -> PointwiseOp | None:
    """The op, where `v` is this function of other values."""
    owner = v.owner
    return owner if isinstance(owner, PointwiseOp) and owner.SPEC.name == name else None


def signed_sum(b: Builder, terms: Iterable[tuple[SSAValue, bool]]) -> SSAValue:
    """The sum of terms from left to right; those that are marked are subtracted."""
    (total, negative), *others = terms
    if negative:
        total = b.neg(total)
    for x, negative in others:
        total = b.sub(total, x) if negative else b.add(total, x)
    return total


def plain_at(v: SSAValue) -> AtOp | None:
    """The op, where `v` is a read of whole rows through a map without exceptions."""
    owner = v.owner
    if isinstance(owner, AtOp) and owner.otherwise is None and not rows(owner.x).dom.keys:
        return owner
    return None


def linear_reduce(v: SSAValue) -> ReduceOp | None:
    """The op, where `v` is a sum or mean of floats."""
    owner = v.owner
    if isinstance(owner, ReduceOp) and owner.kind.data in ("sum", "mean"):
        return owner if is_float(owner.type.elem) else None
    return None


def _read_by(v: SSAValue) -> list[SSAValue]:
    """The rows that tell the least domain of `v`."""
    op = v.owner
    if isinstance(op, Operation) and isinstance(op, (AtOp, *ROW_WISE)):
        return [x for x in op.operands if isinstance(x.type, RowsType)]
    return []


def is_unit(v: SSAValue) -> bool:
    """Whether `v` is a single row."""
    return rows(v).dom.set == "unit"


def at_of(b: Builder, like: AtOp, x: SSAValue) -> SSAValue:
    """`x` read as `like` reads."""
    return b.at(like.set, like.path.data, x)


def at_key(env: SetEnv, op: AtOp) -> tuple[str, str]:
    """Equal for reads through the same map."""
    name = set_name(op.set)
    return name, env.same(name, op.path.data)[0]


def value_ops(func: FuncOp) -> Iterable[ValueOp]:
    """The value ops as they are now, in order."""
    return [op for op in body_ops(func) if isinstance(op, ValueOp)]


def is_product(op: ContractOp) -> bool:
    """Whether a letter is summed over."""
    left, right, out = op.letters()
    return any(c in right and c not in out for c in left)


def weight_of(op: ContractOp) -> int | None:
    """Which operand of a product is a single matrix, where one of the two is."""
    weights = [i for i, x in enumerate(op.operands) if is_unit(x)]
    return weights[0] if len(weights) == 1 and is_product(op) else None


def moves_before_read(fn: LinearFunction, read: AtOp) -> bool:
    """Whether work on the codomain of a read is less than on the rows that read: not so for the
    few rows that an injective map selects, nor for a graph with fewer edges than nodes."""
    name, path = set_name(read.set), read.path.data
    flags = fn.env.flags(name, path)
    if "mono" in flags and "onto" not in flags:
        return False
    return fn.sizes.set(fn.env.codomain(name, path)) <= fn.sizes.set(name)
