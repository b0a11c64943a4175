"""Which rows are stored, and what is computed from which: the stages of a program.

A set that maps lead to (nodes, relations) has its values computed at chunks of its rows. Where
edges read such a value through a map other than the one they are grouped by, all its rows have to
be there before: it is stored, and its level is below that of its reader. Values of other sets
(edges) are made again in every chunk that reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import get_args

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter.reduce import ReduceOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import OLD, PARENT
from ....dialects.inter.types import UNIT, Dom, RowsType, SetType, rows, set_name
from ....dialects.inter.values import AsRowsOp
from ....dialects.signature import body_ops, results
from .bindings import Merge, Stage
from .emission import Emission, NeedsStored, Wanted, fail, is_row_by_row, with_maps

MERGES = get_args(Merge)


@dataclass(frozen=True)
class Reads:
    """What one value is computed from: values of its own rows, and such that must be complete."""

    own: tuple[SSAValue, ...]
    complete: tuple[SSAValue, ...]


@dataclass
class Layers:
    """The levels of a function's values."""

    func: FuncOp
    env: SetEnv
    kept: set[SSAValue]
    """Values of edges that are stored all the same."""
    ends: set[SSAValue] = field(default_factory=set[SSAValue])
    """The results."""
    reads: dict[SSAValue, Reads] = field(default_factory=dict[SSAValue, Reads])
    level: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def __post_init__(self) -> None:
        types = [i.type for i in self.env.sets.values()]
        self.nodes = {
            m.codomain for t in types for k, m in t.map_dict().items() if k not in (PARENT, OLD)
        }
        self.ends = {v for _, v, _ in results(self.func)}
        self.order = [r for op in body_ops(self.func) for r in op.results if self.has_place(r)]
        for v in self.order:
            self.reads[v] = reads = self.reads_of(v)
            below = [self.level[u] for u in reads.own]
            below += [self.level[u] + 1 for u in reads.complete]
            self.level[v] = max(below, default=0)

    def has_place(self, v: SSAValue) -> bool:
        """Whether a value is computed once, at chunks of its rows or as a single one."""
        if not isinstance(v.type, RowsType):
            return False
        if v in self.ends or is_total(v):
            return True
        return v.type.dom.set != UNIT and self.stored(v) and not isinstance(v.owner, AsRowsOp)

    def stored(self, v: SSAValue) -> bool:
        """Whether rows of a value are read from memory where it is not computed."""
        if isinstance(v, BlockArgument) or isinstance(v.owner, AsRowsOp) or v in self.kept:
            return True
        dom = rows(v).dom
        return dom.set in self.nodes and not dom.keys

    def target(self, v: SSAValue) -> str:
        """The set whose rows a value is computed at."""
        if is_total(v) and isinstance(op := v.owner, ReduceOp):
            return set_name(op.set)
        return rows(v).dom.set

    def reads_of(self, v: SSAValue) -> Reads:
        def write(wanted: Wanted) -> Emission:
            e = Emission(self.env, self.target(v), self.stored, wanted)
            emit(e, v)
            return e

        e = with_maps(write)
        singles = [g.value for g in e.given if rows(g.value).dom.set == UNIT]
        own = [x for x in e.slices if x in self.level]
        return Reads(tuple(own), tuple(x for x in (*e.whole_rows, *singles) if x in self.level))

    # ------------------------------------------------------------ stages

    def stages(self) -> list[Stage]:
        """The functions in the order in which they run."""
        stored = {v for v in self.ends if v in self.level}
        out: list[Stage] = []
        for level in range(max(self.level.values(), default=0), -1, -1):
            here = [v for v in self.order if v in stored and self.level[v] == level]
            for target in dict.fromkeys(self.target(v) for v in here):
                made = [v for v in here if self.target(v) == target]
                needed = self.needed(made, level, stored)
                out.append(self.stage(target, made, needed))
        out.reverse()
        read_later = set(self.ends)
        for s in reversed(out):
            mine = {g.value for g in s.given}
            s.last = [v for v in self.order if v in mine - read_later]
            read_later |= mine
        return out

    def needed(self, made: Sequence[SSAValue], level: int, stored: set[SSAValue]) -> list[SSAValue]:
        """What a stage computes for `made`; what it reads besides is `stored` by an earlier one."""
        new = self.closed(made, lambda v: self.level[v] == level)
        stored.update(u for v in new for u in self.reads[v].complete)
        cheap = self.cheap(level, stored)
        needed = self.closed(
            made, lambda v: self.level[v] == level or (v in cheap and v not in stored)
        )
        for v in needed:
            stored.update(self.reads[v].complete)
            stored.update(u for u in self.reads[v].own if u not in needed)
        return [v for v in self.order if v in needed]

    def closed(self, made: Sequence[SSAValue], here: Callable[[SSAValue], bool]) -> set[SSAValue]:
        """`made` and those of the values that they read of their own rows which are computed
        `here`."""
        found: set[SSAValue] = set()
        todo = list(made)
        while todo:
            v = todo.pop()
            if v not in found:
                found.add(v)
                todo += [u for u in self.reads[v].own if here(u)]
        return found

    def cheap(self, level: int, stored: set[SSAValue]) -> set[SSAValue]:
        """The values of earlier stages that follow row by row from what is stored."""
        out: set[SSAValue] = set()
        for v in self.order:
            op = v.owner
            assert isinstance(op, Operation)
            if self.level[v] < level and is_row_by_row(op):
                if all(u in out or u in stored for u in self.reads[v].own):
                    out.add(v)
        return out

    def stage(self, target: str, made: Sequence[SSAValue], needed: Sequence[SSAValue]) -> Stage:
        def write(wanted: Wanted) -> Stage:
            e = Emission(self.env, target, self.stored, wanted)
            new: dict[SSAValue, SSAValue] = {v: emit(e, v) for v in needed}
            return e.stage([(v, at_rows(e, v, new[v]), merge_of(v)) for v in made])

        return with_maps(write)


def emit(e: Emission, v: SSAValue) -> SSAValue:
    """Computes a value at its place."""
    if rows(v).dom.set != UNIT:
        return e.compute(v)
    op = v.owner
    if not is_total(v):
        return e.unit(v)
    assert isinstance(op, ReduceOp)
    if op.kind.data not in MERGES or op.over.keys:
        raise fail(op, f"the {op.kind.data} of all rows of {op.over} does not follow from parts")
    return e.partial(op)


def is_total(v: SSAValue) -> bool:
    """Whether a value is the reduction of all rows of a set."""
    return isinstance(v.owner, ReduceOp) and not v.owner.along_keys


def merge_of(v: SSAValue) -> Merge | None:
    """How the parts of a result are merged."""
    kind = v.owner.kind.data if isinstance(v.owner, ReduceOp) and is_total(v) else None
    return next((m for m in MERGES if m == kind), None)


def at_rows(e: Emission, v: SSAValue, new: SSAValue) -> SSAValue:
    """A result with a row for each of the chunk."""
    if rows(v).dom.set == UNIT:
        return new
    assert e.tile_view is not None
    return e.b.widen(new, Dom(e.tile_view.name))


def cut_layers(func: FuncOp, env: SetEnv) -> list[Stage]:
    """The stages of an inference program, which is left as it is.

    Raises:
        PassFailedException: an op has no form over chunks of rows.
    """
    for _, v, _ in results(func):
        if isinstance(v.type, SetType) or rows(v).dom.keys:
            raise PassFailedException(f"a result of type {v.type} cannot be computed in chunks")
    kept: set[SSAValue] = set()
    while True:
        try:
            return Layers(func, env, kept).stages()
        except NeedsStored as wanted:
            op = wanted.value.owner
            if wanted.value in kept and isinstance(op, Operation):
                raise fail(op, "it is read where only some of its rows are known") from None
            kept = {*kept, wanted.value}
