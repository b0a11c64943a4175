"""One function over a chunk of rows: what it computes, read from the whole program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ....dialects.attributes import NAME
from ....dialects.inter.builder import Builder
from ....dialects.inter.ranks import AllReduceOp, MoveOp
from ....dialects.inter.reduce import CountOp, DropoutOp, OverAlong, ReduceOp, SoftmaxOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import UNIT, Dom, Map, RowsType, SetType, rows, set_name
from ....dialects.inter.values import (
    AsRowsOp,
    AsUnitOp,
    AtOp,
    IndexOp,
    IotaOp,
    PartOp,
    SizeOp,
    StackOp,
)
from ....dialects.signature import array_of
from .bindings import SELF, TILE, Chunk, Given, Made, Merge, Path, Place, Stage

T = TypeVar("T")


class MapWanted(Exception):
    """A chunk needs one more map, or table of pairs: the function is begun again with it."""


@dataclass
class Wanted:
    """What the chunks of one function have, as far as it is known."""

    maps: dict[Place, dict[str, Path]] = field(default_factory=dict[Place, dict[str, Path]])
    pairs: dict[Place, set[tuple[str, ...]]] = field(
        default_factory=dict[Place, set[tuple[str, ...]]]
    )


@dataclass(frozen=True)
class View:
    """A set of the function: the rows of a place."""

    name: str
    place: Place

    @property
    def of(self) -> str:
        return self.place.of

    @property
    def key(self) -> str | None:
        return self.place.key


def fail(op: Operation, why: str) -> PassFailedException:
    """What is raised where an op has no form over chunks."""
    hint = op.results[0].name_hint
    what = f"%{hint} = {op.name}" if hint else op.name
    return PassFailedException(f"{what} : {op.results[0].type} has no form over chunks: {why}")


def label_of(path: Path) -> str:
    """The label of the map that is a path of the whole program."""
    return "to_" + path.steps.replace(".", "__") if path.steps else f"row_of_{path.end}"


class Emission:
    """Writes a function. `stored` says of a value of the whole program, rows of a set, whether it
    is read from memory; others of its set are made again. A value of `target` that is read, stored,
    and not computed here is an argument."""

    def __init__(
        self, env: SetEnv, target: str, stored: Callable[[SSAValue], bool], wanted: Wanted
    ) -> None:
        self.env, self.stored, self.wanted = env, stored, wanted
        self.block = Block()
        self.b = Builder(SetEnv(), self.block, vanilla=True)
        self.whole_sets: dict[str, str] = {}
        self.views: dict[Place, View] = {}
        self.chunks: list[View] = []
        self.given: list[Given] = []
        self.whole_rows: dict[SSAValue, SSAValue] = {}
        self.slices: dict[SSAValue, SSAValue] = {}
        self.tiles: dict[SSAValue, SSAValue] = {}
        self.units: dict[SSAValue, SSAValue] = {}
        self.seen: dict[tuple[SSAValue, str, str], SSAValue] = {}
        self.target = target
        self.tile_view = None if target == UNIT else self.view(Place(target))

    # ------------------------------------------------------------ arguments

    def argument(self, t: Attribute, name: str) -> SSAValue:
        new = self.block.insert_arg(t, len(self.block.args))
        new.name_hint = name
        if isinstance(t, SetType):
            self.b.env.add(new)
        return new

    def whole_set(self, name: str) -> str:
        """The name of the set argument with all rows of a set."""
        if name not in self.whole_sets:
            new = f"A{len(self.whole_sets)}"
            self.argument(SetType.get(new), new)
            self.whole_sets[name] = new
        return self.whole_sets[name]

    def view(self, place: Place) -> View:
        """The rows of a set that belong to the chunk."""
        if place not in self.views:
            self.views[place] = self.made_view(place)
        return self.views[place]

    def made_view(self, place: Place) -> View:
        if self.parts(place.of):
            return self.union_view(place)
        name = f"C{len(self.chunks)}"
        maps: dict[str, Map] = {}
        if place.key is not None:
            maps[TILE] = Map(self.views[Place(self.target)].name)
        for label, path in self.wanted.maps.get(place, {}).items():
            partial = bool(path.steps) and self.env.is_partial(place.of, path.steps)
            maps[label] = Map(self.whole_set(path.end), ("partial",) if partial else ())
        made = View(name, place)
        self.chunks.append(made)
        self.argument(
            SetType.get(name, maps, pairs=sorted(self.wanted.pairs.get(place, set()))), name
        )
        return made

    def parts(self, name: str) -> tuple[str, ...]:
        """The sets that a set is the union of, none for others."""
        return self.env.info(name).type.part_names

    def part_place(self, place: Place, i: int) -> Place:
        """The rows of a place that are of one part of its union."""
        parts = self.parts(place.of)
        return Place(parts[i], place.key, (*place.within, parts[: i + 1]))

    def union_view(self, place: Place) -> View:
        """A chunk of a union is the union of those of its parts, which have all its maps."""
        maps = self.wanted.maps.get(place, {})
        pairs = self.wanted.pairs.get(place, set[tuple[str, ...]]())
        parts = self.parts(place.of)
        places = [self.part_place(place, i) for i in range(len(parts))]
        for i, part in enumerate(places):
            known = self.wanted.maps.setdefault(part, {})
            tables = self.wanted.pairs.setdefault(part, set())
            needed = {
                k: p if p.steps else Path("", p.end, (*p.before, *parts[:i]))
                for k, p in maps.items()
            }
            if not (needed.items() <= known.items() and pairs <= tables):
                known.update(needed)
                tables.update(pairs)
                raise MapWanted
        made = self.b.union(*(self.view(p).name for p in places), name=f"U{len(self.views)}")
        return View(set_name(made), place)

    def label(self, at: View, steps: str) -> str:
        """The label of a chunk's map to rows of a whole set."""
        if steps:
            steps = self.env.same(at.of, steps)[0]
        return self.labelled(at, Path(steps, self.env.codomain(at.of, steps) if steps else at.of))

    def labelled(self, at: View, path: Path) -> str:
        label, known = label_of(path), self.wanted.maps.setdefault(at.place, {})
        if label not in known:
            known[label] = path
            raise MapWanted
        return label

    def rows_argument(self, v: SSAValue, t: RowsType, sliced: bool) -> SSAValue:
        name = f"x{len(self.given)}"
        self.given.append(Given(name, v, sliced))
        return self.argument(t, name)

    def whole(self, v: SSAValue) -> SSAValue:
        """All rows of a value that is stored, or of a table that a single row holds."""
        if v not in self.whole_rows:
            s, owner = rows(v).dom.set, v.owner
            if isinstance(owner, AsRowsOp):
                new = self.b.as_rows(self.whole_set(s), self.unit(owner.x))
            else:
                new = self.rows_argument(v, rows(v).on(Dom(self.whole_set(s))), False)
            self.whole_rows[v] = new
        return self.whole_rows[v]

    # ------------------------------------------------------------ reading

    def read(self, v: SSAValue, at: View, path: str = SELF) -> SSAValue:
        """`v` as the rows of a chunk see it through a path."""
        if rows(v).dom.set == UNIT:
            return self.unit(v)
        if path == SELF and at == self.tile_view:
            return self.tile(v)
        known = (v, at.name, path)
        if known not in self.seen:
            self.seen[known] = self.reads_of(v, at, path)
        return self.seen[known]

    def reads_of(self, v: SSAValue, at: View, path: str) -> SSAValue:
        rest = self.from_tile(at, path)
        if rest is not None and self.tile_view is not None:
            return self.b.at(at.name, TILE, self.read(v, self.tile_view, rest))
        if self.stored(v):
            return self.b.at(at.name, self.label(at, path), self.whole(v))
        return self.again(v, at, path)

    def from_tile(self, at: View, path: str) -> str | None:
        """The rest of a path that begins with a chunk's key."""
        return self.env.determines(at.of, at.key, path) if at.key and path else None

    def tile(self, v: SSAValue) -> SSAValue:
        """`v` at the rows from lo to hi."""
        if v in self.tiles:
            return self.tiles[v]
        assert self.tile_view is not None
        if self.stored(v) and not isinstance(v.owner, AsRowsOp):
            if v not in self.slices:
                t = rows(v).on(Dom(self.tile_view.name))
                self.slices[v] = self.rows_argument(v, t, True)
            return self.slices[v]
        return self.compute(v)

    def compute(self, v: SSAValue) -> SSAValue:
        """`v` at the rows from lo to hi, computed."""
        assert self.tile_view is not None
        self.tiles[v] = new = self.again(v, self.tile_view, SELF)
        return new

    def again(self, v: SSAValue, at: View, path: str) -> SSAValue:
        """A value computed at the rows of a chunk."""
        op = v.owner
        assert isinstance(op, Operation)
        match op:
            case AtOp():
                return self.at(op, at, path)
            case IndexOp():
                return self.b.index(at.name, self.label(at, joined(path, op.path.data)))
            case IotaOp():
                return self.b.index(at.name, self.label(at, path))
            case AsRowsOp():
                return self.b.at(at.name, self.label(at, path), self.whole(v))
            case StackOp():
                return self.stack(op, at, path)
            case PartOp():
                return self.part(op, op.x, at, path)
            case ReduceOp() | CountOp():
                return self.grouped(op, at, path)
            case DropoutOp():
                raise fail(op, "it draws random numbers; call model.eval() first")
            case SoftmaxOp() | MoveOp() | AllReduceOp():
                raise fail(op, "it has no form over some of the rows")
            case _:
                return self.row_by_row(op, [self.read(x, at, path) for x in op.operands], at)

    def row_by_row(self, op: Operation, operands: Sequence[SSAValue], at: View) -> SSAValue:
        """The op, which computes each row of its result from that row of its operands."""
        copy = op.clone(dict(zip(op.operands, operands, strict=True)))
        copy.attributes.clear()
        t = rows(op.results[0]).on(Dom(at.name))
        new = Rewriter.replace_value_with_new_type(copy.results[0], t)
        self.block.add_op(copy)
        return new

    def at(self, op: AtOp, at: View, path: str) -> SSAValue:
        through = joined(path, op.path.data)
        if op.otherwise is None:
            return self.read(op.x, at, through)
        if rows(op.x).dom.set == UNIT:
            x = self.unit(op.x)
        elif self.stored(op.x):
            x = self.whole(op.x)
        else:
            raise NeedsStored(op.x)
        return self.b.at(at.name, self.label(at, through), x, self.read(op.otherwise, at, path))

    def stack(self, op: StackOp, at: View, path: str) -> SSAValue:
        if path != SELF:
            raise NeedsStored(op.results[0])
        views = [self.view(self.part_place(at.place, i)) for i in range(len(op.xs))]
        xs = [self.read(x, v) for x, v in zip(op.xs, views, strict=True)]
        return self.b.stack(at.name, *xs)

    def part(self, op: PartOp, x: SSAValue, at: View, path: str) -> SSAValue:
        """`x`, rows of a union, as the rows of one part see it."""
        if rows(x).dom.set == UNIT:
            return self.unit(x)
        owner, i = x.owner, op.index.data
        if self.stored(x) and path == SELF:
            union = set_name(op.set)
            number = self.labelled(at, Path("", union, self.parts(union)[:i]))
            return self.b.at(at.name, number, self.whole(x))
        match owner:
            case StackOp():
                return self.read(owner.xs[i], at, path)
            case AtOp() if owner.otherwise is None:
                return self.read(owner.x, at, joined(path, owner.path.data))
            case Operation() if is_row_by_row(owner):
                xs = [self.part(op, y, at, path) for y in owner.operands]
                return self.row_by_row(owner, xs, at)
            case _:
                raise NeedsStored(x if path == SELF else op.results[0])

    # ------------------------------------------------------------ groups

    def grouped(self, op: ReduceOp | CountOp, at: View, path: str) -> SSAValue:
        """A reduction whose groups lie in the chunk."""
        over, along = op.over, op.along_keys
        if over.keys:
            raise fail(op, f"it is over the distinct rows {over}")
        if path == SELF and at == self.tile_view and len(along) == 1:
            edges, keys = self.view(Place(over.set, along[0])), (TILE,)
            if rows(op.results[0]).dom != Dom(at.of):
                raise fail(op, f"its groups are not rows of {at.of}")
            return self.reduced(op, edges, keys, at)
        if len(along) == 1:
            raise NeedsStored(op.results[0])
        key = at.key
        if key is None or path != SELF or at.of != over.set:
            raise fail(op, f"its groups ({', '.join(along)}) lie in several chunks")
        same = [self.env.determines(at.of, key, k) == "" for k in along]
        if not any(same):
            raise fail(op, f"its groups ({', '.join(along)}) lie in several chunks")
        labels = zip(along, same, strict=True)
        keys = tuple(sorted(TILE if is_key else self.label(at, k) for k, is_key in labels))
        pairs = self.wanted.pairs.setdefault(at.place, set())
        if keys not in pairs:
            pairs.add(keys)
            raise MapWanted
        return self.reduced(op, at, keys, at)

    def reduced(
        self, op: ReduceOp | CountOp, over: View, keys: Sequence[str], at: View
    ) -> SSAValue:
        if isinstance(op, CountOp):
            return self.b.count(over.name, keys, op.type.elem)
        otherwise = None if op.otherwise is None else self.read(op.otherwise, at)
        return self.b.reduce(op.kind.data, self.read(op.x, over), over.name, keys, otherwise)

    def partial(self, op: ReduceOp) -> SSAValue:
        """The reduction of the rows from lo to hi, of a mean the sum."""
        assert self.tile_view is not None
        kind = "sum" if op.kind.data == "mean" else op.kind.data
        return self.b.reduce(kind, self.read(op.x, self.tile_view), self.tile_view.name)

    # ------------------------------------------------------------ single rows

    def unit(self, v: SSAValue) -> SSAValue:
        """A single row, made again unless it is a reduction of many."""
        if v not in self.units:
            self.units[v] = self.made_unit(v)
        return self.units[v]

    def made_unit(self, v: SSAValue) -> SSAValue:
        op = v.owner
        match op:
            case Block() | ReduceOp():
                return self.rows_argument(v, rows(v), False)
            case CountOp():
                size = self.b.size(self.whole_set(op.over.set))
                return self.b.cast(size, op.type.elem)
            case SizeOp():
                return self.b.size(self.whole_set(set_name(op.set)))
            case AtOp():
                return self.unit(op.x)
            case AsUnitOp():
                s = self.whole_set(set_name(op.set))
                if rows(op.x).dom.set == UNIT:
                    raise fail(op, "a single row is repeated")
                if not self.stored(op.x):
                    raise NeedsStored(op.x)
                return self.b.as_unit(s, self.whole(op.x), op.type.dims[0])
            case DropoutOp():
                raise fail(op, "it draws random numbers; call model.eval() first")
            case _:
                copy = op.clone({x: self.unit(x) for x in op.operands})
                copy.attributes.clear()
                self.block.add_op(copy)
                return copy.results[0]

    # ------------------------------------------------------------ the function

    def stage(self, made: Sequence[tuple[SSAValue, SSAValue, Merge | None]]) -> Stage:
        """The function with its results: values of the whole program, what they are here, and how
        parts of them are merged."""
        bound = [Made(f"y{i}", v, merge) for i, (v, _, merge) in enumerate(made)]
        self.block.add_op(ReturnOp(*(new for _, new, _ in made)))
        names = [a.name_hint or "" for a in self.block.args]
        function = FuncOp(
            "main",
            ([a.type for a in self.block.args], [new.type for _, new, _ in made]),
            Region(self.block),
            arg_attrs=array_of({NAME: StringAttr(n)} for n in names),
            res_attrs=array_of({NAME: StringAttr(m.name)} for m in bound),
        )
        chunks = [
            Chunk(v.name, v.place, tuple(self.wanted.maps.get(v.place, {}).items()))
            for v in self.chunks
        ]
        whole = {new: old for old, new in self.whole_sets.items()}
        target = None if self.target == UNIT else self.target
        return Stage(function, target, whole, chunks, self.given, bound)


class NeedsStored(Exception):
    """A value has to be in memory with all its rows."""

    def __init__(self, value: SSAValue) -> None:
        super().__init__()
        self.value = value


def joined(*paths: str) -> str:
    """One path after the other."""
    return ".".join(p for p in paths if p)


SPECIAL = (AtOp, IndexOp, IotaOp, SizeOp, StackOp, PartOp, AsRowsOp, AsUnitOp, OverAlong, DropoutOp)


def is_row_by_row(op: Operation) -> bool:
    """Whether each row of the result is computed from the same row of the operands."""
    return not isinstance(op, (*SPECIAL, MoveOp, AllReduceOp))


def with_maps(write: Callable[[Wanted], T]) -> T:
    """What `write` gives once all maps are known that its chunks need."""
    wanted = Wanted()
    while True:
        try:
            return write(wanted)
        except MapWanted:
            continue
