"""Sets and their maps become `inter` ops.

A set of the importer may become several sets of the program: computed indices are attached as
maps, which makes a new set with the same rows (`parent` leads back). They are the stages of the
set; a value lives on the stage where its operands do and is carried along when it is read later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from .....dialects.inter.builder import Builder
from .....dialects.inter.sets import SetEnv
from .....dialects.inter.types import Dom, set_name
from ..errors import NoRule
from ..values.held import Bound
from ..values.nodes import Filter, Loops, Node, Set, Sized, Union, behind
from .arguments import Signature
from .maps import (
    MapKey,
    Program,
    Use,
    indices_of,
    inherits,
    named,
    plain_index,
    relation_pairs,
    row_wise_operands,
)
from .places import Places


@dataclass
class MapPlace:
    """A map of a set: its label, the first stage that has it, and the codomain's stage."""

    label: str
    stage: int
    codomain_stage: int


@dataclass
class Stages:
    """The sets of the program that one set of the importer became."""

    values: list[SSAValue]
    maps: dict[MapKey, MapPlace] = field(default_factory=dict)
    # filter: the stage of the unfiltered set; union: each part's set and stage
    below: int = 0
    parts: list[tuple[SSAValue, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        return len(self.values) - 1


class SetEmitter(ABC):
    """Emits the sets of a program into a block, each when it is first needed."""

    def __init__(self, program: Program, signature: Signature, block: Block) -> None:
        self.program = program
        self.signature = signature
        self.env = SetEnv()
        self.block = block
        self.b = Builder(self.env, block, vanilla=True)
        self.stages: dict[int, Stages] = {}
        self.being_born: set[int] = set()
        self.done: dict[int, tuple[SSAValue, int]] = {}
        self.moved: dict[tuple[int, int], SSAValue] = {}
        self.places = Places()
        signature.start(self.env, program, block)
        for s, value, maps in signature.births:
            places = {k: MapPlace(label, 0, 0) for k, label in maps.items()}
            self.stages[s.number] = Stages([value], places)
        for s in signature.constant_sets:
            value = self.b.range(int(s.expr), name=signature.name_of(s))
            self.stages[s.number] = Stages([value])

    @abstractmethod
    def value(self, v: Node) -> tuple[SSAValue, int]:
        """A value and the stage of its set."""

    @abstractmethod
    def number(self, expr: sympy.Expr) -> SSAValue:
        """The value of a size expression, i64."""

    @abstractmethod
    def has_gradient(self, v: Node) -> bool:
        """Whether a value depends on an input whose gradient is wanted."""

    # ----------------------------------------------------------------- sets

    def set(self, s: Set) -> Stages:
        """The stages of a set, born on first use."""
        s = s.find()
        if s.number not in self.stages:
            if s.number in self.being_born:
                raise NoRule("a set whose maps depend on values of a subset of it")
            self.being_born.add(s.number)
            self.stages[s.number] = self.birth(s)
            self.being_born.discard(s.number)
        return self.stages[s.number]

    def birth(self, s: Set) -> Stages:
        match s.origin:
            case Filter():
                return self.birth_filter(s, s.origin)
            case Union():
                return self.birth_union(s, s.origin)
            case Loops():
                return self.birth_loops(s, s.origin)
            case Sized():
                name = self.signature.name_of(s)
                return Stages([self.b.sized(self.number(s.expr), name=name)])

    def uses(self, s: Set) -> dict[MapKey, Use]:
        return self.program.uses.get(s.find().number, {})

    def birth_filter(self, s: Set, origin: Filter) -> Stages:
        maps: dict[MapKey, MapPlace] = {}
        for key, use in self.uses(s).items():
            if inherits(origin, use.index) and not self.is_counted_by(use.codomain, s):
                place = self.map(origin.set, use.index.args[0], use.codomain)
                maps[key] = MapPlace(place.label, 0, place.codomain_stage)
        below = self.set(origin.set)
        name = self.signature.name_of(s)
        if origin.mask.op == "interval":
            bounds = (self.value(x)[0] for x in origin.mask.args)
            value = self.b.interval(below.values[-1], *bounds, name=name)
            return Stages([value], maps, below=below.last)
        loops = self.is_no_loops(origin)
        if not loops:
            self.value(origin.mask)  # may attach maps
        stage = below.last
        mask = None if loops else self.on(origin.mask, origin.set, stage)
        value = self.b.filter(below.values[stage], mask, no_loops=loops, name=name)
        return Stages([value], maps, below=stage)

    def is_counted_by(self, codomain: Set, s: Set) -> bool:
        """Whether numbers on `s` tell how many rows a set has (groups of the rows of a mask)."""
        numbers = (self.program.items.get(str(x)) for x in codomain.find().expr.free_symbols)
        return any(x.set is not None and x.set.find() is s for n in numbers if n for x in behind(n))

    def is_no_loops(self, origin: Filter) -> bool:
        """Whether the mask says that src and dst differ."""
        mask = origin.mask
        if mask.op != "pointwise" or mask.attrs["name"] != "ne":
            return False
        ends = {plain_index(a).number for a in mask.args}
        stages = self.set(origin.set)
        found: dict[int, set[str]] = {}
        for (index, codomain), place in stages.maps.items():
            if index in ends and place.label in ("src", "dst"):
                found.setdefault(codomain, set()).add(place.label)
        return len(ends) == 2 and any(len(labels) == 2 for labels in found.values())

    def birth_union(self, s: Set, origin: Union) -> Stages:
        uses = [u for u in self.uses(s).values() if u.index.op == "stack"]
        as_loops = self.parts_as_loops(origin, uses)
        shared: dict[MapKey, MapPlace] = {}
        for use in uses:
            places = []
            for k, (part, i) in enumerate(zip(origin.parts, use.index.args, strict=True)):
                if k in as_loops or plain_index(i).op == "loop_node":
                    continue  # loops have both src and dst
                places.append(None if i.set is None else self.map(part, i, use.codomain))
            first = places[0] if places else None
            same = first is not None and all(
                p is not None and (p.label, p.codomain_stage) == (first.label, first.codomain_stage)
                for p in places
            )
            loops = len(places) < len(origin.parts)
            if same and (not loops or first.label in ("src", "dst")):
                key = (use.index.number, use.codomain.find().number)
                shared[key] = MapPlace(first.label, 0, first.codomain_stage)
        parts: list[tuple[SSAValue, int]] = []
        for k, part in enumerate(origin.parts):
            if k in as_loops:
                sets = [self.set(p).values[-1] for p in origin.parts]
                edges = next(v for j, v in enumerate(sets) if j not in as_loops)
                parts.append((self.b.loops(edges, name="l"), -1))
            else:
                stages = self.set(part)
                parts.append((stages.values[-1], stages.last))
        value = self.b.union(*(v for v, _ in parts), name=self.signature.name_of(s))
        return Stages([value], shared, parts=parts)

    def parts_as_loops(self, origin: Union, uses: Sequence[Use]) -> set[int]:
        """The parts that are sets of nodes standing for one loop a node: each map that the union
        needs is the identity there, and another part has src and dst to those nodes."""
        found = set()
        for k, part in enumerate(origin.parts):
            identities = bool(uses) and all(
                self.program.is_identity(part, u.index.args[k], u.codomain) for u in uses
            )
            others = [p for j, p in enumerate(origin.parts) if j != k and j not in found]
            if identities and others and self.has_ends(others[0], part, uses, origin):
                found.add(k)
        return found

    def has_ends(self, edges: Set, nodes: Set, uses: Sequence[Use], origin: Union) -> bool:
        at = next(i for i, p in enumerate(origin.parts) if p.find() is edges.find())
        labels = set()
        for u in uses:
            if u.codomain.find() is nodes.find() and u.index.args[at].set is not None:
                labels.add(self.map(edges, u.index.args[at], u.codomain).label)
        return labels == {"src", "dst"}

    def birth_loops(self, s: Set, origin: Loops) -> Stages:
        for index, label in ((origin.src, "src"), (origin.dst, "dst")):
            place = self.map(origin.of, index, origin.nodes)
            if place.label != label:
                raise NoRule("self-loops of edges whose ends have other roles too")
        below = self.set(origin.of)
        stages = Stages([], below=below.last)
        remaining = any(
            v.op == "old" and v.home is s and not self.has_gradient(v.args[0])
            for v in self.program.nodes
        )
        name = self.signature.name_of(s)
        stages.values.append(self.b.loops(below.values[-1], remaining=remaining, name=name))
        for key, use in self.uses(s).items():
            if use.index.op == "loop_node":
                stages.maps[key] = MapPlace("src", 0, place.codomain_stage)
        return stages

    # ----------------------------------------------------------------- maps

    def map(self, s: Set, index: Node, codomain: Set) -> MapPlace:
        """The map of `s` that an integer value is, attached if it is none yet."""
        s, index = s.find(), plain_index(index)
        key = (index.number, codomain.find().number)
        stages = self.set(s)
        if key not in stages.maps:
            self.attach(s, stages, key)
        return stages.maps[key]

    def attach(self, s: Set, stages: Stages, wanted: MapKey) -> None:
        """Makes a computed index a map, and with it the others that can be."""
        uses = self.uses(s)
        ready = [
            use
            for key, use in uses.items()
            if key == wanted or (key not in stages.maps and not self.depends(use.index, s))
        ]
        for use in ready:  # making them may attach some of them
            self.on_last(use.index, s)
            self.set(use.codomain)
        if wanted in stages.maps:
            return
        ready = [u for u in ready if (u.index.number, u.codomain.number) not in stages.maps]
        codomains = [self.set(use.codomain) for use in ready]
        values = [(use, self.on_last(use.index, s)) for use in ready]
        taken = [m.label.data for m in stages.values[-1].type.maps]
        # named among all, so that what is attached first does not take the label of another
        others = (use for key, use in uses.items() if key not in stages.maps)
        labels = named(others, (*taken, *self.program.reserved(s)))
        new, places = {}, {}
        for (use, value), target in zip(values, codomains, strict=True):
            key = (use.index.number, use.codomain.number)
            # rows that meet by their number are as many: the runtime checks what a map claims
            flags = ("mono", "onto") if "same" in use.index.attrs else ()
            new[labels[key]] = (value, set_name(target.values[-1]), flags)
            # a map of the set into itself leads to the stage before this one
            places[key] = MapPlace(labels[key], stages.last + 1, target.last)
        known = {key: place.label for key, place in stages.maps.items()}
        known |= {k: label for k, label in labels.items() if label in new}
        pairs = relation_pairs({label: uses[k].roles for k, label in known.items() if k in uses})
        hint = self.signature.name_of(s)
        stages.values.append(self.b.attach(stages.values[-1], new, pairs=pairs, name=hint))
        stages.maps |= places

    def depends(self, v: Node, s: Set) -> bool:
        """Whether a value needs a map of `s` that is not there yet."""
        stages = self.stages[s.number]
        return any(
            x.attrs["over"].find() is s
            and (plain_index(index).number, codomain.number) not in stages.maps
            for x in behind(v)
            for index, codomain, _ in indices_of(x)
        )

    def check(self, bound: Bound) -> None:
        """Integers are checked to be in bounds, as a map that nobody needs to read."""
        value, stage = self.value(bound.number)
        codomain = self.b.range(bound.size)
        inputs = (x for x in row_wise_operands(bound.number) if x.op == "input")
        name = next(map(self.signature.label, inputs), "index")
        self.b.attach(
            self.set(bound.rows).values[stage],
            {name: (value, set_name(codomain))},
            name=f"{name}_checked",
            checked=True,
        )

    # --------------------------------------------------------------- stages

    def on(self, v: Node, s: Set | None, stage: int) -> SSAValue:
        """A value on a certain stage of its set. One-row values are read anywhere."""
        out, at = self.value(v)
        if v.set is None or at == stage:
            return out
        if (v.number, stage) in self.moved:
            return self.moved[v.number, stage]
        values = self.set(v.set).values
        for k in range(at, stage):
            out = self.b.at(values[k + 1], "parent", out)
        for k in range(at, stage, -1):
            out = self.to_parent(values[k], out, v)
        self.moved[v.number, stage] = out
        return out

    def to_parent(self, child: SSAValue, x: SSAValue, v: Node) -> SSAValue:
        """Rows of a set on its parent, 0 where a row has no child."""
        if v.elem == "i1":
            x = self.b.cast(x, i64)
        y = self.b.reduce("sum", x, Dom(set_name(child)), ("parent",))
        return self.b.pointwise("ne", y, self.b.const(0, elem=i64)) if v.elem == "i1" else y

    def on_last(self, v: Node, s: Set) -> SSAValue:
        self.value(v)
        return self.on(v, s, self.set(s).last)
