"""@structure as plain data: the steps that the runtime runs to make sets and integer rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter import pointwise, ranks, reduce, shapes, structure, values
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import attach_type
from ...dialects.inter.types import FLAGS, UNIT, Dom, SetType, rows, set_name, set_type

StepData = tuple[str, list[str], list[str], dict[str, Any]]


class StructurePlan:
    """Translates the ops of @structure; sets go by their own names, rows by their number."""

    def __init__(self, func: FuncOp, names: list[str]) -> None:
        self.env = SetEnv.of(func)
        self.steps: list[StepData] = []
        self.sets: list[str] = []
        """Those that steps make."""
        self.names: dict[SSAValue, str] = {}
        for v, name in zip(func.body.block.args, names, strict=True):
            self.names[v] = set_name(v) if isinstance(v.type, SetType) else name
        for op in func.body.block.ops:
            if not isinstance(op, ReturnOp):
                self.op(op)

    # ------------------------------------------------------------ helpers

    def step(self, name: str, inputs: list[str], result: SSAValue, **attrs: Any) -> None:
        if isinstance(result.type, SetType):
            out = set_type(result).label
            self.sets.append(out)
        else:
            out = f"%{len(self.names)}"
        self.names[result] = out
        self.steps.append((name, inputs, [out], attrs))

    def on(self, v: SSAValue, dom: Dom) -> str:
        """The name of a value read at the rows of `dom`; a single row serves everywhere."""
        have = rows(v).dom
        name = self.names[v]
        if have == dom or have.set == UNIT:
            return name
        if dom == Dom(have.set) and self.is_of_maps(v):
            return self.made_of_maps(v, have.set)
        out = f"{name}:{have}@{dom}"  # one name may stand for rows read through several keys
        attrs = {"from": list(have.keys), "to": list(dom.keys) or None}
        if not self.has(out):
            self.steps.append(("read", [self.with_paths(dom.set, have, dom), name], [out], attrs))
        return out

    def stored(self, v: SSAValue) -> SSAValue:
        """The value that has these rows, where `v` only reads them for another set."""
        while isinstance(v.owner, values.AtOp) and self.names[v] == self.names[v.owner.x]:
            v = v.owner.x
        return v

    def is_of_maps(self, v: SSAValue) -> bool:
        """Whether `v`, which is stored once a key, has the numbers that maps lead to, or follows
        from such and single rows: at all rows of a set it is had for less than a look-up."""
        op = self.stored(v).owner
        if isinstance(op, pointwise.PointwiseOp) and op.results[0] is v:
            return all(rows(x).dom.set == UNIT or self.is_of_maps(x) for x in op.xs)
        return isinstance(op, values.IndexOp) and len(rows(op.results[0]).dom.keys) == 1

    def made_of_maps(self, v: SSAValue, s: str) -> str:
        """The name of such a value at all rows of its set."""
        op = self.stored(v).owner
        if isinstance(op, pointwise.PointwiseOp):
            inputs = [
                self.names[x] if rows(x).dom.set == UNIT else self.made_of_maps(x, s) for x in op.xs
            ]
            name, attrs, out = op.SPEC.name, dict[str, Any](), f"{self.names[v]}@{s}"
        else:
            assert isinstance(op, values.IndexOp)
            _, rest = self.from_key(set_name(op.set), op.path.data, rows(op.results[0]).dom)
            path = [x for key in (*rows(v).dom.keys, rest) if key for x in key.split(".")]
            inputs = self.chain(s, ".".join(path))
            name, attrs, out = "index", {"path": path}, ".".join(["%" + s, *path])
        if not self.has(out):
            self.steps.append((name, inputs, [out], attrs))
        return out

    def needed(self, results: Iterable[str]) -> list[StepData]:
        """The steps that make sets, whose maps they check, and these rows, and what they read."""
        read, found = {*results, *self.sets}, list[StepData]()
        for step in reversed(self.steps):
            if read.intersection(step[2]):
                found.append(step)
                read.update(step[1])
        return found[::-1]

    def has(self, name: str) -> bool:
        return any(s[2] == [name] for s in self.steps)

    def with_paths(self, s: str, *doms: Dom) -> str:
        """The name of a set on which the paths that are keys of these domains are maps."""
        name = s
        for key in dict.fromkeys(k for d in doms for k in d.keys if "." in k):
            out = f"{name}|{key}"
            if not self.has(out):
                inputs = [name, *self.chain(s, key)[1:]]
                self.steps.append(("derive", inputs, [out], {"path": key.split(".")}))
            name = out
        return name

    def chain(self, s: str, path: str) -> list[str]:
        """The sets that own the maps of a path."""
        out: list[str] = []
        for step in path.split("."):
            out.append(s)
            s = self.env.codomain(s, step)
        return out

    # ------------------------------------------------------------ ops

    def op(self, op: Operation) -> None:
        """Append the step of one op.

        Raises:
            PassFailedException: the runtime has no such step.
        """
        result = op.results[0]
        match op:
            case structure.FilterOp():
                g = set_name(op.set)
                inputs = [g] if op.mask is None else [g, self.on(op.mask, Dom(g))]
                self.step("filter", inputs, result, no_loops=op.no_loops is not None)
            case structure.IntervalOp():
                inputs = [set_name(op.set), self.names[op.lo], self.names[op.hi]]
                self.step("interval", inputs, result)
            case structure.LoopsOp():
                self.step("loops", [set_name(op.set)], result, remaining=op.remaining is not None)
            case structure.UnionOp():
                self.union(op)
            case structure.AttachOp():
                self.attach(op)
            case structure.RangeOp():
                self.step("range", [], result, size=op.size.value.data)
            case structure.SizedOp():
                self.step("sized", [self.names[op.n]], result)
            case _:
                self.rows_op(op, result)

    def union(self, op: structure.UnionOp) -> None:
        ends = op.joined_ends()
        inputs = [*(set_name(s) for s in op.sets), *ends.values()]
        places = {label: op.places(self.env, label) for label in ends}
        joined = {"places": places} if places else {}
        self.step("union", inputs, op.results[0], maps=list(op.set_type.map_dict()), **joined)

    def attach(self, op: structure.AttachOp) -> None:
        s = set_name(op.set)
        maps, t = op.new_maps(), op.set_type
        inputs = [s, *(self.on(x, Dom(s)) for x in op.xs), *(m.codomain for m in maps.values())]
        flags = {f: [k for k, m in maps.items() if f in m.flags] for f in FLAGS}
        known = {*attach_type(t.label, set_type(op.set), maps).equations, *op.known_equations()}
        if claimed := [f"{a} = {b}" for a, b in t.equations if not {(a, b), (b, a)} & known]:
            raise PassFailedException(f"set {t.label}: nothing checks that {claimed[0]}")
        declared = {f: ks for f, ks in flags.items() if ks}
        self.step("attach", inputs, op.results[0], maps=list(maps), **declared)

    def rows_op(self, op: Operation, result: SSAValue) -> None:
        t = rows(result)
        at = t.dom
        match op:
            case pointwise.PointwiseOp():
                self.step(op.SPEC.name, [self.on(x, at) for x in op.xs], result)
            case values.ConstOp():
                self.step(
                    "const", [], result, value=op.number, shape=list(t.dims), elem=str(t.elem)
                )
            case values.TableOp():
                self.step("table", [], result, values=op.numbers().tolist(), elem=str(t.elem))
            case values.AtOp():
                self.at(op, result)
            case values.IndexOp():
                self.index(op, result)
            case values.IotaOp() | values.SizeOp():
                self.step(op.name.removeprefix("inter."), [set_name(op.set)], result)
            case values.StackOp():
                parts = set_type(op.set).part_names
                inputs = [self.on(x, Dom(p)) for x, p in zip(op.xs, parts, strict=True)]
                self.step("stack", [set_name(op.set), *inputs], result)
            case values.PartOp():
                u = set_name(op.set)
                self.step("part", [u, self.on(op.x, Dom(u))], result, index=op.index.data)
            case values.AsRowsOp():
                self.step("as_rows", [set_name(op.set), self.names[op.x]], result)
            case values.AsUnitOp():
                s = set_name(op.set)
                self.step("as_unit", [s, self.on(op.x, Dom(s))], result, rows=t.dims[0])
            case values.CastOp():
                self.step("cast", [self.on(op.x, at)], result, elem=str(t.elem))
            case values.StopOp():
                self.names[result] = self.on(op.x, at)
            case reduce.ReduceOp():
                self.reduce(op, result)
            case reduce.CountOp():
                over = list(op.over.keys) or None
                attrs = {"along": list(op.along_keys), "over": over, "elem": str(t.elem)}
                grouped = self.with_paths(op.over.set, op.over, Dom(op.over.set, op.along_keys))
                self.step("count", [grouped], result, **attrs)
            case ranks.MoveOp():
                source, target = set_name(op.source), set_name(op.target)
                inputs = [source, target, self.on(op.x, Dom(source))]
                self.step("move", inputs, result, plan=op.plan)
            case ranks.AllReduceOp():
                self.step("all_reduce", [self.on(op.x, t.dom)], result, kind=op.kind.data)
            case _:
                self.shape_op(op, result)

    def shape_op(self, op: Operation, result: SSAValue) -> None:
        t = rows(result)
        match op:
            case shapes.ReshapeOp() | shapes.BroadcastOp():
                name = op.name.removeprefix("inter.")
                self.step(name, [self.on(op.x, t.dom)], result, shape=list(t.dims))
            case shapes.TransposeOp():
                self.step(
                    "transpose", [self.on(op.x, t.dom)], result, order=[p.data for p in op.perm]
                )
            case shapes.SliceOp():
                keys = ("dim", "lo", "hi", "step")
                attrs = dict(zip(keys, op.bounds, strict=True))
                self.step("slice", [self.on(op.x, t.dom)], result, **attrs)
            case shapes.ConcatOp():
                self.step("concat", [self.on(x, t.dom) for x in op.xs], result, dim=op.axis)
            case shapes.RowReduceOp():
                dims = [d.data for d in op.dims]
                self.step(
                    "row_reduce", [self.on(op.x, t.dom)], result, kind=op.kind.data, dims=dims
                )
            case _:
                raise PassFailedException(f"{op.name} cannot be computed while sets are made")

    def at(self, op: values.AtOp, result: SSAValue) -> None:
        s, path, x = set_name(op.set), op.path.data, rows(op.x).dom
        dom = rows(result).dom
        if op.otherwise is None and x.set == UNIT:
            self.names[result] = self.names[op.x]
            return
        if op.otherwise is None and self.is_same_key(s, path, x, dom):
            self.names[result] = self.names[op.x]  # a row for each row that the path finds
            return
        value = self.on(op.x, Dom(x.set))
        if op.otherwise is None and dom.keys:
            s, path = self.from_key(s, path, dom)
            if not path:
                self.names[result] = value
                return
        chain = self.chain(s, path)
        rest = [] if op.otherwise is None else [self.on(op.otherwise, Dom(s))]
        self.step("at", [*chain, value, *rest], result, path=path.split("."))

    def is_same_key(self, s: str, path: str, x: Dom, dom: Dom) -> bool:
        """Whether rows on `x`, read through a path of `s`, are stored for what `dom` has as key."""
        if len(x.keys) != 1 or len(dom.keys) != 1:
            return False
        return self.env.determines(s, dom.keys[0], f"{path}.{x.keys[0]}") == ""

    def index(self, op: values.IndexOp, result: SSAValue) -> None:
        s, path = set_name(op.set), op.path.data
        if rows(result).dom.keys:
            s, path = self.from_key(s, path, rows(result).dom)
            if not path:  # the map read at its own codomain: the rows' own numbers
                self.step("iota", [s], result)
                return
        self.step("index", self.chain(s, path), result, path=path.split("."))

    def from_key(self, s: str, path: str, dom: Dom) -> tuple[str, str]:
        """The set whose rows are stored for a key, and the rest of a path from there."""
        if len(dom.keys) == 1:
            rest = self.env.determines(s, dom.keys[0], path)
            if rest is not None:
                return self.env.codomain(s, dom.keys[0]), rest
        raise PassFailedException(f"rows on {dom} cannot be computed while sets are made")

    def reduce(self, op: reduce.ReduceOp, result: SSAValue) -> None:
        over = op.over
        grouped = self.with_paths(over.set, over, Dom(over.set, op.along_keys))
        inputs = [grouped, self.on(op.x, over)]
        if op.otherwise is not None:
            inputs.append(self.on(op.otherwise, rows(result).dom))
        attrs = {
            "kind": op.kind.data,
            "along": list(op.along_keys),
            "over": list(over.keys) or None,
        }
        self.step("reduce", inputs, result, **attrs)
