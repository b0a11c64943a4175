"""The sets of needed rows, with maps between them, and values on these sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder, MapSpec
from ....dialects.inter.ranks import MoveOp
from ....dialects.inter.reduce import DropoutOp, ReduceOp, SoftmaxOp
from ....dialects.inter.rewrite import constant
from ....dialects.inter.structure import PARENT, FilterOp, IntervalOp
from ....dialects.inter.types import UNIT, Dom, is_bool, rows, set_name, set_type
from ....dialects.inter.values import AtOp, PartOp, StackOp
from ...analysis.costs import note_size
from .needs import (
    BY_ROW,
    Image,
    Moved,
    Need,
    Needs,
    Pull,
    Source,
    only_pull,
    pulled_alike,
    sources,
)

Place = tuple[str, Need | None]
"""Some rows of a set."""
ROW = "row"
"""The map of an edge to its row among those that are needed."""


class Subset(NamedTuple):
    """A set of some rows of another one and the path there."""

    value: SSAValue
    path: str


@dataclass
class Subsets:
    """Makes sets of needed rows and computes values there. New ops are appended in an order that
    suits their operands, and not those that read them."""

    needs: Needs
    b: Builder
    maps: dict[Place, dict[tuple[str, Place], str]] = field(
        default_factory=dict[Place, dict[tuple[str, Place], str]]
    )
    new: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _bases: dict[Place, Subset] = field(default_factory=dict[Place, Subset])
    _sets: dict[Place, Subset] = field(default_factory=dict[Place, Subset])
    _masks: dict[Place, SSAValue] = field(default_factory=dict[Place, SSAValue])
    _numbers: dict[Place, SSAValue] = field(default_factory=dict[Place, SSAValue])
    _reads: dict[tuple[SSAValue, Place], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Place], SSAValue]
    )

    # ------------------------------------------------------------ which maps there are

    def want(self, start: Place, path: str, end: Place) -> None:
        """Asks for a map between rows of two sets, or ("") of one set."""
        known = self.maps.setdefault(start, {})
        known.setdefault((path, end), f"needed{len(known) or ''}")

    def plan(self, op: ValueOp) -> None:
        """Asks for the maps that an op at its needed rows reads through."""
        place = self.place(op)
        if isinstance(op, AtOp):
            self._plan_read(op, place)
            return
        assert place[1] is not None
        if isinstance(op, ReduceOp):
            edges = self.edges(op, place[1])
            self._plan_operand(op.x, edges)
            if op.otherwise is not None:
                self._plan_operand(op.otherwise, place)
            return
        if isinstance(op, MoveOp):
            self._plan_operand(op.x, self.sent(op, place[1]))
            return
        if isinstance(op, StackOp):
            for x, part in zip(op.xs, self.parts(place), strict=True):
                self._plan_operand(x, part)
            return
        if isinstance(op, PartOp):
            return  # exactly those rows of the union are there
        for x in op.operands[:1] if isinstance(op, SoftmaxOp) else op.operands:
            self._plan_operand(x, place)

    def _plan_operand(self, x: SSAValue, place: Place) -> None:
        need = self.needs.of(x)
        if need is not None and need != place[1]:
            self.want(place, "", (place[0], need))

    def _plan_read(self, op: AtOp, place: Place) -> None:
        ends = rows(op.x).dom.set
        if (nodes := self.ends_of(op, place)) is not None:
            self._plan_operand(op.x, nodes)
        elif (need := self.needs.of(op.x)) is not None and not self.is_own(op, need):
            self.want(place, op.path.data, (ends, need))

    def place(self, op: ValueOp) -> Place:
        """Where an op is done."""
        need = self.needs.of(op.results[0])
        return (set_name(op.set) if isinstance(op, AtOp) else op.type.dom.set), need

    def edges(self, op: ReduceOp, need: Need) -> Place:
        """The rows that a reduction to some rows visits."""
        return op.over.set, frozenset({Pull(op.over.set, op.along_keys[0], need)})

    def sent(self, op: MoveOp, need: Need) -> Place:
        """The messages that arrive as some rows."""
        return set_name(op.source), frozenset({Moved(set_name(op.target), need)})

    def is_joined(self, place: Place) -> bool:
        """Whether these are some local and remote edges together."""
        return place[1] is not None and place[0] in self.needs.joined

    def parts(self, joined: Place) -> list[Place]:
        """The local, and the remote edges."""
        union, need = joined
        assert need is not None
        names = set_type(self.b.set(union)).part_names
        return [(part, pulled_alike(need, part)) for part in names]

    def ends_of(self, op: AtOp, place: Place) -> Place | None:
        """The rows that a read finds, where it follows the map by which its own are chosen."""
        pull = only_pull(place[1]) if place[1] is not None else None
        if pull is None or (pull.over, pull.path) != (set_name(op.set), op.path.data):
            return None
        return rows(op.x).dom.set, pull.need

    def is_own(self, op: AtOp, need: Need) -> bool:
        """Whether a read on a subset of the program is at the very rows that are needed."""
        s, path = set_name(op.set), op.path.data
        return (
            self.needs.of(op.results[0]) is None
            and need == frozenset({Image(s, path)})
            and self.needs.is_subset(s, path)
        )

    # ------------------------------------------------------------ sets

    def base(self, place: Place) -> Subset:
        """The rows as a set, without further maps."""
        if place not in self._bases:
            self._bases[place] = self._base(*place)
        return self._bases[place]

    def _base(self, name: str, need: Need | None) -> Subset:
        if need is None:
            return Subset(self.b.set(name), "")
        if self.is_joined((name, need)):
            parts = [self.subset(p).value for p in self.parts((name, need))]
            return Subset(self.b.union(*parts, name=f"{name}_needed"), "")
        if (image := self._subset_of(need)) is not None:
            return Subset(self.b.set(image.of), PARENT)
        made = self.b.filter(name, self.mask((name, need)), name=f"{name}_needed")
        self._note(made, name, need)
        return Subset(made, PARENT)

    def _subset_of(self, need: Need) -> Image | None:
        """The subset of the program that is what is needed."""
        if len(need) == 1:
            (x,) = need
            if isinstance(x, Image) and x.need is None and self.needs.is_subset(x.of, x.path):
                return x
        return None

    def subset(self, place: Place) -> Subset:
        """The rows as a set with all maps that were asked for."""
        if place not in self._sets:
            self._sets[place] = self._with_maps(place)
        return self._sets[place]

    def _with_maps(self, place: Place) -> Subset:
        base = self.base(place)
        if self.is_joined(place):
            return base  # with the maps that its parts share
        specs: dict[str, MapSpec] = {}
        pull = only_pull(place[1]) if place[1] is not None else None
        if pull is not None:
            ends = self.b.env.codomain(*_start(pull))
            onto = "onto" in self.b.env.flags(*_start(pull))
            specs[ROW] = self._map(base, pull.path, (ends, pull.need), onto)
        for (path, end), label in self.maps.get(place, {}).items():
            onto = end[1] == frozenset({Image(place[0], path, place[1])})
            specs[label] = self._map(base, path, end, onto)
        if not specs:
            return base
        made = self.b.attach(base.value, specs, name=f"{set_name(base.value)}_rows")
        if place[1] is not None:
            self._note(made, place[0], place[1])
        return Subset(made, f"{PARENT}.{base.path}" if base.path else PARENT)

    def _map(self, base: Subset, path: str, end: Place, onto: bool) -> MapSpec:
        """The map of a subset that leads where `path` of the set does, to the rows needed there."""
        own = self.path(base, path)
        mono = "mono" in self.b.env.flags(set_name(base.value), own)
        flags = (("mono",) if mono else ()) + (("onto",) if onto else ())
        numbers = self.b.at(base.value, own, self.numbers(end))
        return numbers, set_name(self.subset(end).value), flags

    def path(self, subset: Subset, path: str) -> str:
        """A path of the set that a subset is of, as one of the subset ("": to that set)."""
        if not path or path.split(".")[0] == PARENT:
            return ".".join(p for p in (subset.path, path) if p)
        return path

    def mask(self, place: Place) -> SSAValue:
        """Which rows are needed: one i1 a row."""
        if place not in self._masks:
            assert place[1] is not None
            first, *others = (self._source_mask(place[0], x) for x in sources(place[1]))
            for x in others:
                first = self.b.pointwise("logical_or", first, x)
            self._masks[place] = first
        return self._masks[place]

    def _source_mask(self, name: str, source: Source) -> SSAValue:
        if isinstance(source, Moved):
            return self.b.move(self.mask((source.of, source.need)), source.of, name)
        if isinstance(source, Pull):
            over, path = _start(source)
            ends = self.b.env.codomain(over, path), source.need
            if (first := self._subset_of(source.need)) is not None and self.are_first(first.of):
                return self.b.pointwise("lt", self.b.index(over, path), self.b.size(first.of))
            return self.b.at(over, path, self.mask(ends))
        if source.need is None and self.needs.is_subset(source.of, source.path):
            owner = self.b.set(source.of).owner
            if isinstance(owner, FilterOp) and owner.mask is not None:
                return owner.mask
            if self.are_first(source.of):
                return self.b.pointwise("lt", self.b.iota(name), self.b.size(source.of))
        rows_at = self.base((source.of, source.need))
        along = self.path(rows_at, source.path)
        count = self.b.count(rows_at.value, (along,), i64)
        return self.b.pointwise("gt", count, self.b.const(0, (), i64))

    def are_first(self, subset: str) -> bool:
        """Whether a subset has the first rows of its set: those keep their numbers."""
        owner = self.b.set(subset).owner
        return isinstance(owner, IntervalOp) and constant(owner.lo) == 0

    def numbers(self, place: Place) -> SSAValue:
        """The number that each needed row has among them, on the rows of the whole set; of others
        it says nothing."""
        if place not in self._numbers:
            base = self.base(place)
            if base.path == PARENT and self.are_first(set_name(base.value)):
                self._numbers[place] = self.b.iota(place[0])
            else:
                iota = self.b.iota(base.value)
                self._numbers[place] = self.b.reduce("sum", iota, base.value, (base.path,))
        return self._numbers[place]

    def _note(self, made: SSAValue, name: str, need: Need) -> None:
        """Tells later passes how large a new set is."""
        note_size(self.needs.func, set_name(made), self.needs.rows(name, need))

    # ------------------------------------------------------------ values

    def value(self, x: SSAValue, place: Place) -> SSAValue:
        """An old value at some rows of its set."""
        need = self.needs.of(x)
        if rows(x).dom.set == UNIT or place[1] is None:
            return x
        if need is not None and need == place[1]:
            return self.new[x]
        if (x, place) not in self._reads:
            at = self.subset(place)
            if need is None:
                read = self._again(x, place) or self._some_of(x, place)
            else:
                label = self.maps[place]["", (place[0], need)]
                read = self.b.at(at.value, label, self.new[x])
            self._reads[x, place] = read
        return self._reads[x, place]

    def _some_of(self, x: SSAValue, place: Place) -> SSAValue:
        """Some rows of a value that there is on all."""
        at = self.subset(place)
        if not self.is_joined(place):
            return self.b.at(at.value, at.path, x)
        each = [(i, self.subset(p)) for i, p in enumerate(self.parts(place))]
        some = [self.b.at(s.value, s.path, self.b.part(i, place[0], x)) for i, s in each]
        return self.b.stack(at.value, *some)

    def _again(self, x: SSAValue, place: Place) -> SSAValue | None:
        """A value that edges have of their ends, made again at some edges, so that later passes see
        what it is made of: the normalisation of GCN."""
        op = x.owner
        if x not in self.needs.invariant or only_pull(place[1] or frozenset()) is None:
            return None
        if isinstance(op, AtOp) and op.otherwise is None and not rows(op.x).dom.keys:
            return self._read(op, place)
        here = (Dom(place[0]), Dom(UNIT))
        if not isinstance(op, BY_ROW) or any(rows(y).dom not in here for y in op.operands):
            return None
        return self._by_row(op, place)

    def _by_row(self, op: ValueOp, place: Place) -> SSAValue:
        new = op.clone()
        new.operands = [self.value(x, place) for x in op.operands]
        self.b.insert(new)
        dom = Dom(set_name(self.subset(place).value)) if self.b.vanilla else new.infer(self.b.env)
        return Rewriter.replace_value_with_new_type(new.results[0], new.type.on(dom))

    def compute(self, op: ValueOp) -> None:
        """Does an op at its needed rows, or a read of needed rows at all rows of its set."""
        place = self.place(op)
        v = self._read(op, place) if isinstance(op, AtOp) else self._work(op, place)
        v.name_hint = op.results[0].name_hint
        self.new[op.results[0]] = v

    def _work(self, op: ValueOp, place: Place) -> SSAValue:
        at = self.subset(place)
        match op:
            case ReduceOp():
                assert place[1] is not None
                edges = self.edges(op, place[1])
                over = self.subset(edges).value
                other = None if op.otherwise is None else self.value(op.otherwise, place)
                zero_ties, every = op.zero_ties is not None, op.every is not None
                x = self.value(op.x, edges)
                return self.b.reduce(op.kind.data, x, over, (ROW,), other, zero_ties, every)
            case MoveOp():
                assert place[1] is not None
                sent = self.sent(op, place[1])
                return self.b.move(self.value(op.x, sent), self.subset(sent).value, at.value)
            case StackOp():
                pairs = zip(op.xs, self.parts(place), strict=True)
                return self.b.stack(at.value, *(self.value(x, p) for x, p in pairs))
            case PartOp():
                assert place[1] is not None
                joined = set_name(op.set), pulled_alike(place[1], set_name(op.set))
                whole = self.value(op.x, joined)
                return self.b.part(op.index.data, self.subset(joined).value, whole)
            case SoftmaxOp():
                return self.b.softmax(self.value(op.x, place), at.value, (ROW,))
            case DropoutOp():
                x, numbers = self.value(op.x, place), op.numbers
                i = self.b.index(at.value, at.path)
                i = i if numbers is None else self.value(numbers, place)
                c = None if op.column is None else self.value(op.column, place)
                return self.b.dropout(x, op.key, at.value, op.probability, op.site_number, i, c)
            case _:
                return self._by_row(op, place)

    def _read(self, op: AtOp, place: Place) -> SSAValue:
        ends, need = rows(op.x).dom.set, self.needs.of(op.x)
        if (nodes := self.ends_of(op, place)) is not None:
            return self.b.at(self.subset(place).value, ROW, self.value(op.x, nodes))
        if need is None:
            at = self.subset(place)
            return self.b.at(at.value, self.path(at, op.path.data), op.x)
        if self.is_own(op, need):
            return self._back(self.subset((ends, need)), set_name(op.set), self.new[op.x])
        at = self.subset(place)
        v = self.b.at(at.value, self.maps[place][op.path.data, (ends, need)], self.new[op.x])
        return v if place[1] is not None else self._back(at, set_name(op.set), v)

    def _back(self, at: Subset, name: str, v: SSAValue) -> SSAValue:
        """A value on the rows of a set of the program, with or without further maps, on that set:
        groups of one row are summed."""
        if set_name(at.value) == name:
            return v
        t = rows(v)
        if not is_bool(t.elem):
            return self.b.reduce("sum", v, at.value, (PARENT,))
        return self.b.reduce("last", v, at.value, (PARENT,), self.b.const(0, t.dims, t.elem))


def _start(pull: Pull) -> tuple[str, str]:
    return pull.over, pull.path
