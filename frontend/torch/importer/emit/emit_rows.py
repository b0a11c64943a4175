"""Values become `inter` ops, on the sets that emit_sets.py makes for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import sympy
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from .....dialects.inter.builder import Builder
from .....dialects.inter.types import Dom, set_name
from ..errors import NoRule
from ..values.elements import FLOATS, INTEGERS
from ..values.nodes import Node, Set, sources
from ..values.tensors import ARITHMETIC, elem_of_number
from .arguments import ELEMENTS
from .emit_sets import SetEmitter
from .maps import plain_index

ROW_WISE: dict[str, Callable[[Builder, Node, Sequence[SSAValue]], SSAValue]] = {
    "pointwise": lambda b, v, xs: b.pointwise(v.attrs["name"], *xs, **v.attrs["params"]),
    "cast": lambda b, v, xs: b.cast(*xs, ELEMENTS[v.elem]),
    "stop": lambda b, v, xs: b.stop(*xs),
    "reshape": lambda b, v, xs: b.reshape(*xs, v.shape),
    "broadcast": lambda b, v, xs: b.broadcast(*xs, v.shape),
    "transpose": lambda b, v, xs: b.transpose(*xs, v.attrs["order"]),
    "slice": lambda b, v, xs: b.slice(*xs, *(v.attrs[k] for k in ("dim", "lo", "hi", "step"))),
    "concat": lambda b, v, xs: b.concat(xs, v.attrs["dim"]),
    "row_reduce": lambda b, v, xs: b.row_reduce(v.attrs["kind"], *xs, v.attrs["dims"]),
    "contract": lambda b, v, xs: b.contract(v.attrs["spec"], *xs),
}
"""Ops on the operands' rows, each by itself."""

ON_FIRST_STAGE: dict[str, Callable[[Emitter, Node], SSAValue]] = {
    "key": lambda e, v: e.signature.key(e.block),
    "const": lambda e, v: e.b.const(v.attrs["value"], v.shape, ELEMENTS[v.elem]),
    "iota": lambda e, v: e.b.iota(e.set(v.set).values[0]),
    "loop_node": lambda e, v: e.b.index(e.set(v.set).values[0], "src"),
    "size_of": lambda e, v: e.b.size(e.set(v.attrs["of"]).values[0]),
    "size": lambda e, v: e.b.cast(e.number(v.attrs["expr"]), ELEMENTS[v.elem]),
    "as_rows": lambda e, v: e.b.as_rows(e.set(v.set).values[0], e.value(v.args[0])[0]),
}
"""Ops whose rows are there as soon as their set is."""


class Emitter(SetEmitter):
    """Emits the values of a program into a block, each once."""

    def value(self, v: Node) -> tuple[SSAValue, int]:
        """A value and the stage of its set."""
        if v.number not in self.done:
            before, self.b.location = self.b.location, self.places[v.source]
            out, stage = self.emit(v)
            self.b.location = before
            # a map of the set may have been attached meanwhile; the value stays where it is
            self.done[v.number] = (out, stage)
        return self.done[v.number]

    def rowwise(self, vs: Sequence[Node]) -> tuple[list[SSAValue], int]:
        """Operands of a row-wise op on one stage."""
        stage = max([self.value(v)[1] for v in vs if v.set is not None], default=0)
        return [self.on(v, v.set, stage) for v in vs], stage

    def emit(self, v: Node) -> tuple[SSAValue, int]:
        known = self.known_map(v)
        if known is not None:
            return known
        if 0 in v.shape:
            raise NoRule("a tensor with a dimension of size 0")
        if v.op in ROW_WISE:
            xs, stage = self.rowwise(v.args)
            return ROW_WISE[v.op](self.b, v, xs), stage
        if v.op in ON_FIRST_STAGE:
            return ON_FIRST_STAGE[v.op](self, v), 0
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

    def emit_table(self, v: Node) -> tuple[SSAValue, int]:
        dtype = np.float64 if v.elem in FLOATS else np.int64
        return self.b.table(np.asarray(v.attrs["data"], dtype), ELEMENTS[v.elem]), 0

    def number(self, expr: sympy.Expr) -> SSAValue:
        """The value of an expression of sizes, i64 or f64."""
        if (known := self.set_of_size(expr)) is not None:
            return self.b.size(self.set(known).values[0])
        terms = sympy.Add.make_args(expr)
        if len(terms) > 1 and all(self.set_of_size(t) is not None for t in terms):
            first, *others = map(self.number, terms)
            return functools.reduce(self.b.add, others, first)
        if expr.is_Integer:
            return self.b.const(int(expr), elem=i64)
        if str(expr) in self.program.items:
            item = self.value(self.program.items[str(expr)])[0]
            return self.b.cast(item, ELEMENTS[elem_of_number(expr)])
        if not self.signature.is_unbacked(expr):
            return self.signature.size(self.block, expr)
        if expr.func in ARITHMETIC:
            elem = ELEMENTS[elem_of_number(expr)]
            out, *rest = (self.b.cast(self.number(a), elem) for a in expr.args)
            for a in rest:
                out = self.b.pointwise(ARITHMETIC[expr.func], out, a)
            return out
        raise NoRule(f"the size {expr}, which depends on data")

    def set_of_size(self, expr: sympy.Expr) -> Set | None:
        """The set that has so many rows, if there is one here."""
        known = self.program.sizes.by_size.get(str(expr))
        if known is None or known.find().number not in self.program.sets:
            return None
        return None if known.find().number in self.being_born else known

    # numbers drawn for each row

    def emit_dropout(self, v: Node) -> tuple[SSAValue, int]:
        x, key, *place = v.args
        p, site = v.attrs["p"], v.attrs["site"]
        value, stage = self.value(x)
        if v.set is None:
            return self.b.dropout(value, self.value(key)[0], None, p, site), 0
        stages = self.set(v.set)
        if x.set is None:
            stage, value = 0, self.b.widen(value, Dom(set_name(stages.values[0])))
        at = [self.value(n)[0] for n in place]
        return self.b.dropout(value, self.value(key)[0], stages.values[stage], p, site, *at), stage

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
        return any(map(self.signature.gives_gradient, sources(v)))

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

    def emit_count_per_pair(self, v: Node) -> tuple[SSAValue, int]:
        over = v.attrs["over"]
        pairs = zip(v.args, v.attrs["codomains"], strict=True)
        places = [self.map(over, index, codomain) for index, codomain in pairs]
        at = max(p.stage for p in places)
        name = set_name(self.set(over).values[at])
        count = self.b.count(name, tuple(p.label for p in places), ELEMENTS[v.elem])
        return self.b.widen(count, Dom(name)), at
