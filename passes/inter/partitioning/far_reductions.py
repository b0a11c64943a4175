"""Reductions in groups that several ranks have rows of: edges by the end that they do not lie with.

Each rank reduces its rows, those of each end at hand together; what it has for ghosts is moved to
the rows that these are, and reduced there with what other ranks have. So

- a product is the product of these;
- of a maximum, and a minimum, only the numbers come so. Its gradient is shared by all rows of a
  group that equal it, on whichever rank: it is that of their sum divided by how many they are;
- a softmax is exp(x - m) / sum of it, where m, the maximum, has no gradient.

Sums, means and counts need none of this (`program.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import POINTWISE_OPS
from ....dialects.inter.reduce import OverAlong, ReduceOp, SoftmaxOp
from ....dialects.inter.types import Dom, is_float, rows, set_type
from ..extremes import beyond
from .sets import OWNER, Cut

KINDS = ("max", "min", "mul")
"""Those of `inter.reduce`."""


def is_far(b: Builder, cut: Cut, op: OverAlong) -> bool:
    """Whether an op is such a reduction, and has a form here."""
    parts = cut.parts[op.over.set]
    known = isinstance(op, SoftmaxOp) or (isinstance(op, ReduceOp) and op.kind.data in KINDS)
    if not known or len(parts) == 1 or op.over.keys or len(op.along_keys) != 1:
        return False
    first = op.along_keys[0].split(".")[0]
    return len({set_type(b.set(p)).map_dict()[first].codomain for p in parts}) > 1


@dataclass
class FarReduction:
    """One such op, whose operand has the rows `x` on each part of its set."""

    b: Builder
    cut: Cut
    op: OverAlong
    x: Mapping[str, SSAValue]

    def made(self) -> list[SSAValue]:
        """The result: of a softmax its rows on each part."""
        match self.op:
            case SoftmaxOp():
                return self._softmax()
            case ReduceOp() if self.op.kind.data == "mul":
                return [self._together("mul", self.x, self.b.mul)]
            case ReduceOp():
                return [self._extreme(self.op)]
            case _:
                raise TypeError(f"{self.op.name} is no such reduction")

    # ------------------------------------------------------------ what they become

    def _softmax(self) -> list[SSAValue]:
        b, elem = self.b, self.op.type.elem
        top = self._top("max")
        shares: dict[str, SSAValue] = {}
        for part, x in self.x.items():  # exp and div are not Total: they stay on these rows
            less = b.sub(x, self._seen(top, part))
            shares[part] = b.emit(POINTWISE_OPS["exp"], [[less]], dom=Dom(part))
        total = self._sum(shares)  # 1 or more, 0 of an empty group
        has_rows = b.pointwise("gt", total, b.const(0.0, (), elem))
        total = b.where(has_rows, total, b.const(1.0, (), elem))
        return [
            b.emit(POINTWISE_OPS["div"], [[e, self._seen(total, part)]], dom=Dom(part))
            for part, e in shares.items()
        ]

    def _extreme(self, op: ReduceOp) -> SSAValue:
        b, elem = self.b, op.type.elem
        top = self._top(op.kind.data)
        if not is_float(elem):
            return top
        zero, one = b.const(0.0, (), elem), b.const(1.0, (), elem)
        best = {p: b.pointwise("eq", x, self._seen(top, p)) for p, x in self.x.items()}
        count = self._sum({p: b.cast(mask, elem) for p, mask in best.items()})
        among = count
        if op.zero_ties is not None:
            among = b.add(count, b.cast(b.pointwise("eq", top, zero), elem))
        total = self._sum({p: b.where(best[p], x, zero) for p, x in self.x.items()})
        shared = b.div(total, b.pointwise("maximum", among, one))
        return b.where(b.pointwise("gt", count, zero), shared, top)

    def _top(self, kind: str) -> SSAValue:
        """The greatest or least number of each group, 0 of an empty one, without a gradient."""
        b, elem = self.b, self.op.type.elem
        nothing, none = b.const(beyond(elem, kind), (), elem), b.const(0, (), elem)
        found: list[SSAValue] = []
        counts: list[SSAValue] = []
        for part, x in self.x.items():
            v = b.reduce(kind, b.stop(x), part, self.op.along_keys)
            count = b.count(part, self.op.along_keys, elem)
            v = b.where(self._some(count), v, nothing)
            if (n := self.cut.messages(rows(v).dom.set)) is not None:
                v = b.reduce(kind, b.move(v, n.ghost, n.sent), n.sent, (OWNER,))
                v = b.where(self._some(b.count(n.sent, (OWNER,), elem)), v, nothing)
                count = b.reduce("sum", b.move(count, n.ghost, n.sent), n.sent, (OWNER,))
            found.append(v)
            counts.append(count)
        extreme = "maximum" if kind == "max" else "minimum"
        most = _folded(found, lambda a, c: b.pointwise(extreme, a, c))
        return b.where(self._some(_folded(counts, b.add)), most, none)

    # ------------------------------------------------------------ parts of them

    def _sum(self, each: Mapping[str, SSAValue]) -> SSAValue:
        return self._together("sum", each, self.b.add)

    def _together(
        self,
        kind: str,
        each: Mapping[str, SSAValue],
        fold: Callable[[SSAValue, SSAValue], SSAValue],
    ) -> SSAValue:
        """A sum or product of the rows of all parts, by group."""
        found: list[SSAValue] = []
        for part, x in each.items():
            v = self.b.reduce(kind, x, part, self.op.along_keys)
            found.append(brought_home(self.b, self.cut, v, kind))
        return _folded(found, fold)

    def _seen(self, v: SSAValue, part: str) -> SSAValue:
        """What a group has, for each of its rows in a part."""
        (key,), b = self.op.along_keys, self.b
        n = self.cut.messages(b.env.codomain(part, key))
        if n is not None:
            v = b.move(b.at(n.sent, OWNER, v), n.sent, n.ghost)
        return b.at(part, key, v)

    def _some(self, count: SSAValue) -> SSAValue:
        """Where a group has rows, as a number a row of `op`."""
        b = self.b
        there = b.pointwise("gt", count, b.const(0, (), rows(count).elem))
        return b.reshape(there, (1,) * len(self.op.type.dims))


def brought_home(b: Builder, cut: Cut, v: SSAValue, kind: str) -> SSAValue:
    """Sums, or products, for ghosts, moved to the rows that these are; others as they are."""
    n = cut.messages(rows(v).dom.set)
    if n is None:
        return v
    return b.reduce(kind, b.move(v, n.ghost, n.sent), n.sent, (OWNER,))


def _folded(values: Sequence[SSAValue], fold: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    first, *others = values
    for v in others:
        first = fold(first, v)
    return first
