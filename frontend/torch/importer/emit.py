"""Values and sets become `inter` ops.

A set of the importer may become several sets of the program: computed indices are attached as
maps, which makes a new set with the same rows (`parent` leads back). They are the stages of the
set; a value lives on the stage where its operands do and is carried along when it is read later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy
from xdsl.dialects.builtin import f32, f64, i1, i32, i64
from xdsl.ir import Block, SSAValue, TypeAttribute

from ....dialects.inter.builder import Builder
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import Dom, set_name
from .errors import NoRule
from .maps import MapKey, Program, Use, named, plain_index
from .signature import Signature
from .values import FLOATS, INTEGERS, Filter, Loops, Node, Set, Sized, Union

ELEMENTS: dict[str, TypeAttribute] = {"f32": f32, "f64": f64, "i32": i32, "i64": i64, "i1": i1}


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


class Emitter:
    """Emits the values of a program into a block, each once."""

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
        signature.start(self.env, program, block)
        for s, value, maps in signature.births:
            places = {k: MapPlace(label, 0, 0) for k, label in maps.items()}
            self.stages[s.number] = Stages([value], places)
        for s in signature.constant_sets:
            value = self.b.range(int(s.expr), name=signature.name_of(s))
            self.stages[s.number] = Stages([value])

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
        inherited: dict[MapKey, tuple[str, int]] = {}
        for key, use in self.uses(s).items():
            if use.index.op == "parent":
                place = self.map(origin.set, use.index.args[0], use.codomain)
                inherited[key] = (place.label, place.codomain_stage)
        below = self.set(origin.set)
        loops = self.is_no_loops(origin)
        if not loops:
            self.value(origin.mask)  # may attach maps
        stage = below.last
        mask = None if loops else self.on(origin.mask, origin.set, stage)
        name = self.signature.name_of(s)
        value = self.b.filter(below.values[stage], mask, no_loops=loops, name=name)
        maps = {k: MapPlace(label, 0, at) for k, (label, at) in inherited.items()}
        return Stages([value], maps, below=stage)

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
                edges = next(v for j, v in enumerate(self.part_sets(origin)) if j not in as_loops)
                loops = self.b.loops(edges, name="l")
                parts.append((loops, -1))
            else:
                stages = self.set(part)
                parts.append((stages.values[-1], stages.last))
        value = self.b.union(*(v for v, _ in parts), name=self.signature.name_of(s))
        return Stages([value], shared, parts=parts)

    def part_sets(self, origin: Union) -> list[SSAValue]:
        return [self.set(p).values[-1] for p in origin.parts]

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
        values = [(use, self.on_last(use.index, s)) for use in ready]
        if wanted in stages.maps:
            return
        codomains = [self.set(use.codomain) for use in ready]
        values = [(use, self.on_last(use.index, s)) for use, _ in values]
        taken = [m.label.data for m in stages.values[-1].type.maps]
        labels = named(ready, taken)
        new = {}
        for (use, value), target in zip(values, codomains, strict=True):
            label = labels[use.index.number, use.codomain.number]
            new[label] = (value, set_name(target.values[-1]))
        pairs = [("dst", "rel")] if {"dst", "rel"} <= {*new, *taken} else []
        pairs += [("rel", "src")] if {"src", "rel"} <= {*new, *taken} else []
        hint = self.signature.name_of(s)
        stages.values.append(self.b.attach(stages.values[-1], new, pairs=pairs, name=hint))
        for use, target in zip(ready, codomains, strict=True):
            key = (use.index.number, use.codomain.number)
            stages.maps[key] = MapPlace(labels[key], stages.last, target.last)

    def depends(self, v: Node, s: Set) -> bool:
        """Whether a value needs a map of `s` that is not there yet."""
        stages = self.stages[s.number]
        todo, seen = [v], set()
        while todo:
            x = todo.pop()
            if x.number in seen:
                continue
            seen.add(x.number)
            todo.extend(x.args)
            over = x.attrs.get("over")
            if isinstance(over, Set) and over.find() is s and x.op != "dropout":
                for i in x.args[1:]:
                    if not any(k[0] == plain_index(i).number for k in stages.maps):
                        return True
        return False

    # ---------------------------------------------------------------- values

    def value(self, v: Node) -> tuple[SSAValue, int]:
        """A value and the stage of its set."""
        if v.number not in self.done:
            out, stage = self.emit(v)
            # a map of the set may have been attached meanwhile; the value stays where it is
            self.done[v.number] = (out, stage)
        return self.done[v.number]

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

    def rowwise(self, vs: Sequence[Node]) -> tuple[list[SSAValue], int]:
        """Operands of a row-wise op on one stage."""
        stage = max([self.value(v)[1] for v in vs if v.set is not None], default=0)
        return [self.on(v, v.set, stage) for v in vs], stage

    def emit(self, v: Node) -> tuple[SSAValue, int]:
        known = self.known_map(v)
        if known is not None:
            return known
        return getattr(self, f"emit_{v.op}")(v)

    def known_map(self, v: Node) -> tuple[SSAValue, int] | None:
        """Integers that are a map already are read from the map."""
        if v.set is None or v.elem not in INTEGERS or v.shape != ():
            return None
        if v.home.number in self.being_born:
            return None
        stages = self.set(v.set)
        for (index, _), place in stages.maps.items():
            if index == plain_index(v).number:
                value = self.b.index(stages.values[place.stage], place.label)
                return self.b.cast(value, ELEMENTS[v.elem]), place.stage
        return None

    # leaves

    def emit_input(self, v: Node) -> tuple[SSAValue, int]:
        home = None if v.set is None else self.set(v.set).values[0]
        return self.signature.input(self.block, v, home), 0

    def emit_key(self, v: Node) -> tuple[SSAValue, int]:
        return self.signature.key(self.block), 0

    def emit_const(self, v: Node) -> tuple[SSAValue, int]:
        return self.b.const(v.attrs["value"], v.shape, ELEMENTS[v.elem]), 0

    def emit_table(self, v: Node) -> tuple[SSAValue, int]:
        dtype = np.float64 if v.elem in FLOATS else np.int64
        return self.b.table(np.asarray(v.attrs["data"], dtype), ELEMENTS[v.elem]), 0

    def emit_iota(self, v: Node) -> tuple[SSAValue, int]:
        return self.b.iota(self.set(v.set).values[0]), 0

    def emit_loop_node(self, v: Node) -> tuple[SSAValue, int]:
        return self.b.index(self.set(v.set).values[0], "src"), 0

    def emit_size_of(self, v: Node) -> tuple[SSAValue, int]:
        return self.b.size(self.set(v.attrs["of"]).values[0]), 0

    def emit_size(self, v: Node) -> tuple[SSAValue, int]:
        return self.number(v.attrs["expr"]), 0

    def number(self, expr: sympy.Expr) -> SSAValue:
        """The value of a size expression, i64."""
        known = self.program.sizes.by_size.get(str(expr))
        if known is not None and known.find().number in self.program.sets:
            if known.find().number not in self.being_born:
                return self.b.size(self.set(known).values[0])
        if expr.is_Integer:
            return self.b.const(int(expr), elem=i64)
        if str(expr) in self.program.items:
            return self.b.cast(self.value(self.program.items[str(expr)])[0], i64)
        if not self.signature.is_unbacked(expr):
            return self.signature.size(self.block, expr)
        if expr.is_Add or expr.is_Mul:
            out = self.number(expr.args[0])
            for a in expr.args[1:]:
                out = self.b.pointwise("add" if expr.is_Add else "mul", out, self.number(a))
            return out
        raise NoRule(f"the size {expr}, which depends on data")

    # row-wise ops

    def emit_pointwise(self, v: Node) -> tuple[SSAValue, int]:
        xs, stage = self.rowwise(v.args)
        return self.b.pointwise(v.attrs["name"], *xs, **v.attrs["params"]), stage

    def emit_cast(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        return self.b.cast(x, ELEMENTS[v.elem]), stage

    def emit_stop(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        return self.b.stop(x), stage

    def emit_reshape(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        return self.b.reshape(x, v.shape), stage

    def emit_broadcast(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        return self.b.broadcast(x, v.shape), stage

    def emit_transpose(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        return self.b.transpose(x, v.attrs["order"]), stage

    def emit_slice(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        a = v.attrs
        return self.b.slice(x, a["dim"], a["lo"], a["hi"], a["step"]), stage

    def emit_concat(self, v: Node) -> tuple[SSAValue, int]:
        xs, stage = self.rowwise(v.args)
        return self.b.concat(xs, v.attrs["dim"]), stage

    def emit_row_reduce(self, v: Node) -> tuple[SSAValue, int]:
        (x,), stage = self.rowwise(v.args)
        return self.b.row_reduce(v.attrs["kind"], x, v.attrs["dims"]), stage

    def emit_contract(self, v: Node) -> tuple[SSAValue, int]:
        xs, stage = self.rowwise(v.args)
        return self.b.contract(v.attrs["spec"], *xs), stage

    def emit_dropout(self, v: Node) -> tuple[SSAValue, int]:
        x, key = v.args
        p, site = v.attrs["p"], v.attrs["site"]
        value, stage = self.value(x)
        if v.set is None:
            return self.b.dropout(value, self.value(key)[0], None, p, site), 0
        stages = self.set(v.set)
        if x.set is None:
            stage, value = 0, self.b.widen(value, Dom(set_name(stages.values[0])))
        return self.b.dropout(value, self.value(key)[0], stages.values[stage], p, site), stage

    # across sets

    def emit_at(self, v: Node) -> tuple[SSAValue, int]:
        x, index = v.args
        place = self.map(v.attrs["over"], index, v.attrs["codomain"])
        value = self.on(x, x.set, place.codomain_stage)
        return self.b.at(self.set(v.set).values[place.stage], place.label, value), place.stage

    def emit_parent(self, v: Node) -> tuple[SSAValue, int]:
        stages = self.set(v.set)
        value = self.on(v.args[0], v.args[0].set, stages.below)
        return self.b.at(stages.values[0], "parent", value), 0

    def emit_scatter_parent(self, v: Node) -> tuple[SSAValue, int]:
        subset = self.set(v.attrs["subset"])
        (x,) = v.args
        value = self.b.widen(self.on(x, x.set, 0), Dom(set_name(subset.values[0])))
        return self.to_parent(subset.values[0], value, v), subset.below

    def emit_old(self, v: Node) -> tuple[SSAValue, int]:
        stages = self.set(v.set)
        weight, fill = v.args
        value = self.on(weight, weight.set, stages.below)
        other, b = self.value(fill)[0], self.b
        if not self.has_gradient(weight):
            return b.at(stages.values[0], "old", value, other), 0
        # torch hands the gradient to every old loop of a node, not only to the one that stays
        edges = self.set(v.attrs["of"]).values[stages.below]
        is_loop = b.pointwise("eq", b.index(edges, "src"), b.index(edges, "dst"))
        old = b.filter(edges, is_loop, name=b.fresh("old"))
        kept = b.at(old, "parent", value)
        last = b.reduce("last", kept, Dom(set_name(old)), ("src",), other, every=True)
        return b.at(stages.values[0], "src", last), 0

    def has_gradient(self, v: Node) -> bool:
        """Whether a value depends on an input whose gradient is wanted."""
        todo, seen = [v], set()
        while todo:
            x = todo.pop()
            if x.number in seen or x.op == "stop" or x.elem not in FLOATS:
                continue
            seen.add(x.number)
            todo.extend(x.args)
            if x.op == "input" and self.signature.gives_gradient(x):
                return True
        return False

    def emit_stack(self, v: Node) -> tuple[SSAValue, int]:
        stages = self.set(v.set)
        xs = []
        for x, (part, stage) in zip(v.args, stages.parts, strict=True):
            if stage >= 0 or x.set is None:
                xs.append(self.on(x, x.set, max(stage, 0)))
            else:  # rows of nodes that stand for their loops
                xs.append(self.b.at(part, "src", self.on(x, x.set, self.loop_stage(part, x))))
        return self.b.stack(stages.values[0], *xs), 0

    def loop_stage(self, loops: SSAValue, x: Node) -> int:
        names = [set_name(s) for s in self.set(x.set).values]
        return names.index(loops.type.map_dict()["src"].codomain)

    def emit_part(self, v: Node) -> tuple[SSAValue, int]:
        union = self.set(v.attrs["union"])
        value = self.on(v.args[0], v.args[0].set, 0)
        part, stage = union.parts[v.attrs["k"]]
        y = self.b.part(v.attrs["k"], union.values[0], value)
        if stage >= 0:
            return y, stage
        back = self.b.reduce("sum", y, Dom(set_name(part)), ("src",))
        return back, self.loop_stage(part, v)

    def emit_as_rows(self, v: Node) -> tuple[SSAValue, int]:
        return self.b.as_rows(self.set(v.set).values[0], self.value(v.args[0])[0]), 0

    def emit_as_unit(self, v: Node) -> tuple[SSAValue, int]:
        rows = self.set(v.attrs["rows"]).values[0]
        return self.b.as_unit(rows, self.on(v.args[0], v.args[0].set, 0), v.shape[0]), 0

    def emit_reduce(self, v: Node) -> tuple[SSAValue, int]:
        x, *index = v.args
        over, kind = v.attrs["over"], v.attrs["kind"]
        stages = self.set(over)
        at = self.value(x)[1] if x.set is not None else 0
        along: tuple[str, ...] = ()
        result = 0
        if index:
            place = self.map(over, index[0], v.set)
            at, along, result = max(at, place.stage), (place.label,), place.codomain_stage
        value = self.on(x, over, at)
        dom = Dom(set_name(stages.values[at]))
        ties = v.attrs["zero_ties"]
        return self.b.reduce(kind, value, dom, along, zero_ties=ties), result

    def emit_softmax(self, v: Node) -> tuple[SSAValue, int]:
        x, index = v.args
        over = v.attrs["over"]
        place = self.map(over, index, v.attrs["codomain"])
        at = max(self.value(x)[1] if x.set is not None else 0, place.stage)
        dom = Dom(set_name(self.set(over).values[at]))
        return self.b.softmax(self.on(x, over, at), dom, (place.label,)), at

    def emit_mean_per_pair(self, v: Node) -> tuple[SSAValue, int]:
        x, dst, rel = v.args
        over = v.attrs["over"]
        nodes, relations = v.attrs["codomains"]
        places = [self.map(over, dst, nodes), self.map(over, rel, relations)]
        at = max(self.value(x)[1], *(p.stage for p in places))
        name = set_name(self.set(over).values[at])
        keys = tuple(p.label for p in places)
        mean = self.b.reduce("mean", self.on(x, over, at), Dom(name), keys)
        pairs = Dom(name, tuple(sorted(keys)))
        return self.b.reduce("sum", mean, pairs, (keys[0],)), places[0].codomain_stage
