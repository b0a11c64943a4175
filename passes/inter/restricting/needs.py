"""Which rows of each value are needed: those that the subsets of a program read, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.ranks import PEER, RANK, MoveOp, is_cut
from ....dialects.inter.reduce import DropoutOp, ReduceOp, SoftmaxOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.shapes import BroadcastOp
from ....dialects.inter.structure import FilterOp, IntervalOp
from ....dialects.inter.types import UNIT, Dom, RowsType, rows, set_name, set_type
from ....dialects.inter.values import AtOp, PartOp, StackOp, StopOp
from ....dialects.signature import body_ops
from ...analysis.costs import Sizes
from ...analysis.dependence import closure, invariant_arguments, to_differentiate
from ...analysis.value_facts import Facts
from ..linear.function import ROW_WISE
from ..split_unions import mixed_unions

BY_ROW = (*ROW_WISE, BroadcastOp, StopOp, DropoutOp)
"""Ops that can be done on some rows alone."""

_SLACK = 1.5
"""A value is computed on so many times more rows than needed where what it is computed from is."""


@dataclass(frozen=True)
class Image:
    """The rows of a set that some rows of `of` (None: all) lead to by a path."""

    of: str
    path: str
    need: Need | None = None


@dataclass(frozen=True)
class Pull:
    """The rows of a set that lead to some rows by a path: the edges into some nodes."""

    over: str
    path: str
    need: Need


@dataclass(frozen=True)
class Moved:
    """The messages of a set that arrive as some rows of `of`, those of other ranks."""

    of: str
    need: Need


Source = Image | Pull | Moved
Need = frozenset[Source]
"""The rows of a set that are in any of these. Where it may be None, that means all rows."""


@dataclass
class Needs:
    """The needs of the values of one function.

    `share`: so large a share of the rows of a set is taken for all. `fraction`: the share that a
    subset of unknown size is taken to have.
    """

    func: FuncOp
    env: SetEnv
    sizes: Sizes
    share: float
    fraction: float
    needs: dict[SSAValue, Need | None] = field(default_factory=dict[SSAValue, "Need | None"])
    _rows: dict[tuple[str, Need], float] = field(default_factory=dict[tuple[str, Need], float])

    def __post_init__(self) -> None:
        self.ops = [op for op in body_ops(self.func) if isinstance(op, ValueOp)]
        ops = body_ops(self.func)
        self.invariant = closure(ops, invariant_arguments(self.func, False, False))
        self.fixed = closure(ops, invariant_arguments(self.func, False, True))
        self.differentiated = to_differentiate(self.func)
        self.facts = Facts()
        self.on_ranks = any(RANK in self.env.info(s).maps for s in self.env.sets)
        self.joined = {set_name(u.results[0]) for u in mixed_unions(self.func, self.env)}
        """The unions of local and remote edges, whose parts are restricted each."""
        self.deep: set[SSAValue] = set()
        for op in self.ops:
            if op.results[0] not in self.invariant and (
                isinstance(op, ReduceOp | SoftmaxOp) or any(x in self.deep for x in op.operands)
            ):
                self.deep.add(op.results[0])
        for op in reversed(self.ops):
            self._visit(op)
        for op in self.ops:
            self._align(op)

    def of(self, v: SSAValue) -> Need | None:
        """The rows of a value that are needed; None for what is computed as it was."""
        return self.needs.get(v)

    def restricted(self) -> list[ValueOp]:
        """The ops that are done on some rows only, in order."""
        return [op for op in self.ops if self.of(op.results[0]) is not None]

    # ------------------------------------------------------------ needs

    def _visit(self, op: ValueOp) -> None:
        """Finds the need of a result from those of its users, which have theirs."""
        v = op.results[0]
        if self._may(op) and (need := self._read_of(v)):
            name = op.type.dom.set
            few = self.rows(name, need) < self.share * self.sizes.set(name)
            # what a sum over edges into few rows reads follows it, for these edges are a set anyhow
            if (few or only_pull(need) is not None) and self._fits(op, need):
                self.needs[v] = need

    def _may(self, op: ValueOp) -> bool:
        """Whether an op can be done on some rows."""
        v, dom = op.results[0], op.type.dom
        if dom.set == UNIT or dom.keys or v in self.invariant or not self._is_fixed(dom.set):
            return False
        if self.on_ranks and not is_cut(self.env, dom.set):
            return False  # what all ranks need of rows that all have would be a message
        if isinstance(op, BY_ROW):
            if isinstance(op, DropoutOp) and dom.set in self.joined:
                return False  # the rows of unions have no numbers in the graph
            inside = (rows(x).dom for x in op.operands if isinstance(x.type, RowsType))
            spares = self.facts.spares_rows(op, self.differentiated)
            return spares and all(d in (dom, Dom(UNIT)) for d in inside)
        if isinstance(op, AtOp):
            x = rows(op.x).dom
            return op.otherwise is None and not x.keys and x.set != UNIT
        if isinstance(op, MoveOp):
            return rows(op.x).dom == Dom(set_name(op.source))
        if isinstance(op, StackOp | PartOp):
            return set_name(op.set) in self.joined and not any(
                rows(x).dom.keys for x in op.operands if isinstance(x.type, RowsType)
            )
        if isinstance(op, ReduceOp | SoftmaxOp):
            s, along = op.over.set, op.along_keys
            if op.over.keys or len(along) != 1 or not self._is_fixed(s):
                return False
            if self.env.is_partial(s, along[0]) or rows(op.x).dom not in (Dom(s), Dom(UNIT)):
                return False
            if not isinstance(op, ReduceOp):
                return rows(op.x).dom.set != UNIT
            other = op.otherwise
            return op.kind.data != "mul" and (other is None or rows(other).dom in (dom, Dom(UNIT)))
        return False

    def _is_fixed(self, name: str) -> bool:
        """Whether a set is made in @prepare."""
        return self.env.value(name) in self.fixed

    def _fits(self, op: ValueOp, need: Need) -> bool:
        """Whether the groups of a softmax are needed as a whole or not at all, and rows of local
        and remote edges together by the row of nodes that they lead to."""
        pull, over = only_pull(need), op.type.dom.set
        if over in self.joined:
            if pull is None or (isinstance(op, AtOp) and pull.path != op.path.data):
                return False
        if isinstance(op, PartOp):
            union = set_name(op.set)
            return pull is not None and self._lead_alike((over, union), pull.path)
        if not isinstance(op, SoftmaxOp):
            return True
        return pull is not None and (pull.over, (pull.path,)) == (op.over.set, op.along_keys)

    def _lead_alike(self, sets: Iterable[str], path: str) -> bool:
        """Whether a path of maps is one of all these sets, to the same rows."""
        first = path.split(".")[0]
        ends = [self.env.info(s).maps.get(first) for s in sets]
        return all(m is not None for m in ends) and len({m.codomain for m in ends if m}) == 1

    def _read_of(self, v: SSAValue) -> Need | None:
        """What the users of `v` read of it."""
        out: Need = frozenset()
        for use in v.uses:
            read = self._read_by(use.operation, v, use.index)
            if read is None:
                return None
            out |= read
        return out

    def _read_by(self, user: Operation, v: SSAValue, index: int) -> Need | None:
        """What one user reads of its operand `v`."""
        if not isinstance(user, ValueOp):
            return None
        need = self.of(user.results[0])
        if isinstance(user, AtOp):
            return None if index != 1 else self._read_at(user, v, need)
        if need is None:
            return None
        if isinstance(user, ReduceOp) and index == 0:
            return frozenset({Pull(user.over.set, user.along_keys[0], need)})
        if isinstance(user, MoveOp):
            return frozenset({Moved(set_name(user.target), need)})
        if isinstance(user, StackOp):
            return pulled_alike(need, set_type(user.set).part_names[index - 1])
        if isinstance(user, PartOp):
            return pulled_alike(need, set_name(user.set))
        return need

    def _read_at(self, read: AtOp, v: SSAValue, need: Need | None) -> Need | None:
        s, path = set_name(read.set), read.path.data
        if need is None:
            whole = read.type.dom == Dom(s) and read.otherwise is None
            if not whole or not self._is_fixed(s):
                return None
            if not self.is_subset(s, path) and v not in self.deep:
                return None  # widen-domains may move it behind the read
            return frozenset({Image(s, path)})
        pull = only_pull(need)
        if pull is not None and (pull.over, pull.path) == (s, path):
            return pull.need
        return frozenset({Image(s, path, need)})

    def is_subset(self, s: str, path: str) -> bool:
        """Whether a path leads from a subset to the set that it is of."""
        return path == "parent" and isinstance(self.env.value(s).owner, FilterOp | IntervalOp)

    def _are_interval(self, need: Need) -> bool:
        """Whether rows between two numbers are among these: in a batch the first ones, which were
        sampled for. What leads to any row leads to them, and to the others little or nothing."""
        images = [x for x in need if isinstance(x, Image) and self.is_subset(x.of, x.path)]
        return any(isinstance(self.env.value(x.of).owner, IntervalOp) for x in images)

    def _align(self, op: ValueOp) -> None:
        """Lets a value follow what it is computed from, where that has not many more rows."""
        v = op.results[0]
        need = self.of(v)
        if need is None or not isinstance(op, BY_ROW):
            return
        above = {n for x in op.operands if (n := self.of(x)) is not None}
        if len(above) == 1 and need not in above:
            (other,) = above
            if self.rows(op.type.dom.set, other) <= _SLACK * self.rows(op.type.dom.set, need):
                self.needs[v] = other

    # ------------------------------------------------------------ sizes

    def rows(self, name: str, need: Need) -> float:
        """How many rows of a set are expected to be needed."""
        if (name, need) not in self._rows:
            total = max(1.0, self.sizes.set(name))
            shares = [self._source(name, total, x) / total for x in sources(need)]
            left = math.prod(1 - min(1.0, share) for share in shares)
            self._rows[name, need] = total * (1 - left)
        return self._rows[name, need]

    def _source(self, name: str, total: float, source: Source) -> float:
        if isinstance(source, Moved):
            return self.rows(source.of, source.need)
        if isinstance(source, Pull):
            ends = self.env.codomain(source.over, source.path)
            each = total / max(1.0, self.sizes.set(ends))
            if self._are_interval(source.need):
                each = max(each, self.sizes.degree)
            return min(total, each * self.rows(ends, source.need))
        if source.need is None:
            if self._arrive_for_one(name):
                return total
            ends = self.sizes.set(source.of)
            if self.is_subset(source.of, source.path) and source.of not in self.sizes.stats:
                ends *= self.fraction
        else:
            ends = self.rows(source.of, source.need)
        mono = "mono" in self.env.flags(source.of, source.path)
        return ends if mono else total * -math.expm1(-ends / total)

    def _arrive_for_one(self, name: str) -> bool:
        """Whether rows arrive from other ranks for the edges of one set: each, because one of them
        reads it."""
        if PEER not in self.env.info(name).maps:
            return False
        maps = [i.maps.values() for i in self.env.sets.values() if isinstance(i.value.owner, Block)]
        return sum(any(m.codomain == name for m in each) for each in maps) == 1


def sources(need: Need) -> list[Source]:
    """The parts of a need in an order that is the same in every run."""
    return sorted(need, key=_text)


@cache
def _text(source: Source) -> str:
    need = "" if source.need is None else ",".join(map(_text, sources(source.need)))
    if isinstance(source, Moved):
        return f"moved {source.of} ({need})"
    kind, name = ("image", source.of) if isinstance(source, Image) else ("pull", source.over)
    return f"{kind} {name} {source.path} {source.need is None} ({need})"


def only_pull(need: Need) -> Pull | None:
    """The one source of a need, where it is the rows that lead to others."""
    first = next(iter(need), None)
    return first if len(need) == 1 and isinstance(first, Pull) else None


def pulled_alike(need: Need, over: str) -> Need:
    """The rows of a union that lead to some rows, as those of a part, or the other way round."""
    pull = only_pull(need)
    assert pull is not None
    return frozenset({Pull(over, pull.path, pull.need)})
