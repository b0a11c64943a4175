"""From a program to an `inter` module, for widths, a type of numbers and a kind of graph.

The ops and domains are those that the importer (frontend/torch/importer) gives for the same layer,
so that the passes find what they look for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from ...dialects.attributes import NAME, NEEDS_GRAD
from ...dialects.inter.builder import Builder
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import ONE, Dom, Map, RowsType, SetType, rows
from .scope import SITES
from .values import Program, Site, Value, is_degree
from .widths import Shape, numbers, places

EDGES, TYPES, RELATIONS = "g", "T", "R"
LETTERS = "abcdefghijklmnopqrstuvw"


@dataclass(frozen=True)
class Form:
    """What a program is emitted for: widths by name, how many types edges and nodes have, the type
    of numbers, whether source and destination nodes are two sets, and the arguments whose gradients
    are wanted."""

    widths: Mapping[str, int]
    etypes: int
    ntypes: int
    elem: TypeAttribute
    two_kinds: bool = False
    needs_grad: Collection[str] = field(default_factory=frozenset[str])

    def node_sets(self) -> dict[Site, str]:
        """The name of the set of nodes at each site."""
        src, dst = ("S", "D") if self.two_kinds else ("N", "N")
        return {Site.SRC: src, Site.DST: dst, Site.NODE: src}


def emit(program: Program, form: Form) -> ModuleOp:
    """The module with one function @main. Its arguments are sets, edges last, then the rows of the
    program's arguments in order; results have the names of fields.

    Raises:
        ProgramError: an operation does not fit its operands.
    """
    return _Emitter(program, form).module()


class _Emitter:
    def __init__(self, program: Program, form: Form) -> None:
        self.program, self.form = program, form
        self.block = Block()
        self.env = SetEnv()
        self.b = Builder(self.env, self.block, vanilla=True)
        self.sets = form.node_sets() | {Site.EDGE: EDGES}
        self.attributes: list[dict[str, Attribute]] = []
        self.done: dict[Value, SSAValue] = {}
        self.tables: dict[str, SSAValue] = {}
        self.inputs: dict[str, SSAValue] = {}
        for t in set_types(program, form):
            self.env.add(self.argument(t, t.label, {}))
        for a in program.arguments.values():
            dom = ONE if a.kind == "Weights" else Dom(self.sets[SITES[a.kind]])
            dims = self.dims(a.shape)
            count = {"etype": form.etypes, "ntype": form.ntypes, None: 0}[a.table]
            kind = RowsType.get(dom, (count, *dims) if a.table else dims, form.elem)
            grad: dict[str, Attribute] = (
                {NEEDS_GRAD: UnitAttr()} if a.name in form.needs_grad else {}
            )
            self.inputs[a.name] = self.argument(kind, a.name, grad)

    def argument(
        self, kind: TypeAttribute, name: str, attributes: Mapping[str, Attribute]
    ) -> SSAValue:
        value = self.block.insert_arg(kind, len(self.block.args))
        value.name_hint = name
        self.attributes.append({NAME: StringAttr(name), **attributes})
        return value

    def module(self) -> ModuleOp:
        results = [v for _, v in self.program.results]
        values = [self.b.widen(self.value(v), Dom(self.sets[v.site])) for v in results]
        self.block.add_op(ReturnOp(*values))
        names = result_names(self.program)
        func = FuncOp(
            "main",
            ([a.type for a in self.block.args], [v.type for v in values]),
            Region(self.block),
            arg_attrs=ArrayAttr(DictionaryAttr(a) for a in self.attributes),
            res_attrs=ArrayAttr(DictionaryAttr({NAME: StringAttr(n)}) for n in names),
        )
        module = ModuleOp([func])
        module.verify()
        return module

    def dims(self, shape: Shape) -> tuple[int, ...]:
        return numbers(shape, self.form.widths)

    def value(self, v: Value) -> SSAValue:
        """The value in the function, made at its first use."""
        if v not in self.done:
            make: Callable[[Value], SSAValue] = getattr(self, f"emit_{v.op}")
            try:
                self.done[v] = make(v)
            except VerifyException as error:
                raise self.program.source.error(v.at, str(error)) from error
        return self.done[v]

    def args(self, v: Value) -> list[SSAValue]:
        return [self.value(x) for x in v.args]

    # ------------------------------------------------------------ leaves

    def emit_const(self, v: Value) -> SSAValue:
        return self.b.const(v.attrs["value"], (), self.form.elem)

    def emit_width(self, v: Value) -> SSAValue:
        (n,) = self.dims((v.attrs["width"],))
        return self.b.const(float(n), (), self.form.elem)

    def emit_input(self, v: Value) -> SSAValue:
        return self.inputs[v.attrs["name"]]

    def emit_block(self, v: Value) -> SSAValue:
        name, table = v.attrs["name"], v.attrs["table"]
        if name not in self.tables:
            types = RELATIONS if table == "etype" else TYPES
            self.tables[name] = self.b.as_rows(types, self.inputs[name])
        path = str(v.attrs["path"]).replace("etype", "rel")
        return self.b.at(self.sets[v.site], path, self.tables[name])

    def emit_read(self, v: Value) -> SSAValue:
        return self.b.at(EDGES, v.attrs["path"], self.value(v.args[0]))

    def emit_degree(self, v: Value) -> SSAValue:
        return self.b.count(EDGES, v.attrs["along"], self.form.elem)

    def emit_spread(self, v: Value) -> SSAValue:
        return self.b.widen(self.value(v.args[0]), Dom(self.sets[v.site]))

    # ------------------------------------------------------------ rows

    def aligned(self, x: Value, shape: Shape) -> SSAValue:
        """A value whose widths stand in a shape, with 1 where it has none of them."""
        found = places(x.shape, shape)
        assert found is not None
        if not found:
            return self.value(x)
        dims = dict(zip(found, self.dims(x.shape), strict=True))
        return self.b.reshape(self.value(x), [dims.get(i, 1) for i in range(found[0], len(shape))])

    def emit_pointwise(self, v: Value) -> SSAValue:
        fn = v.attrs["fn"]
        args = [self.aligned(x, v.shape) for x in v.args]
        if fn == "div" and is_degree(v.args[1]):
            one = self.b.const(1.0, (), self.form.elem)
            fn, args[1] = "mul", self.b.div(one, args[1])
        return self.b.pointwise(fn, *args, **v.attrs["parameters"])

    def emit_matmul(self, v: Value) -> SSAValue:
        """As a product of matrices: what w has behind the width that is summed is one dimension."""
        x, w = self.args(v)
        shared: int = v.attrs["shared"]
        dims = rows(w).dims
        rest = dims[shared + 1 :]
        batch, others = LETTERS[:shared], LETTERS[shared : len(rows(x).dims) - 1]
        if len(rest) > 1:
            w = self.b.reshape(w, (*dims[: shared + 1], math.prod(rest)))
        out = "z" if rest else ""
        y = self.b.contract(f"{batch}{others}y,{batch}y{out}->{batch}{others}{out}", x, w)
        return self.b.reshape(y, self.dims(v.shape))

    def emit_dot(self, v: Value) -> SSAValue:
        wide, narrow = self.args(v)
        letters = LETTERS[: len(rows(wide).dims)]
        short = letters[len(letters) - len(rows(narrow).dims) :]
        return self.b.contract(f"{letters},{short}->{letters[:-1]}", wide, narrow)

    def emit_flatten(self, v: Value) -> SSAValue:
        return self.b.reshape(self.value(v.args[0]), self.dims(v.shape))

    def emit_concat(self, v: Value) -> SSAValue:
        return self.b.concat(self.args(v), 0)

    def emit_fold(self, v: Value) -> SSAValue:
        (x,) = self.args(v)
        kind = v.attrs["kind"]
        y = self.b.row_reduce("sum" if kind == "mean" else kind, x, [len(rows(x).dims) - 1])
        if kind != "mean":
            return y
        (n,) = self.dims((v.attrs["width"],))
        return self.b.div(y, self.b.const(float(n), (), self.form.elem))

    # ------------------------------------------------------------ edges

    def emit_softmax(self, v: Value) -> SSAValue:
        return self.b.softmax(self.value(v.args[0]), EDGES, ("dst",))

    def emit_reduce(self, v: Value) -> SSAValue:
        x = self.value(v.args[0])
        kind = v.attrs["kind"]
        ties = kind in ("max", "min")  # as torch's scatter has them
        return self.b.reduce(kind, x, EDGES, (v.attrs["along"],), zero_ties=ties)


def set_types(program: Program, form: Form) -> list[SetType]:
    """The sets of a program: nodes, types, edges."""
    nodes = dict.fromkeys(form.node_sets().values())
    tag: dict[str, Map | tuple[str, tuple[str, ...]] | str] = {}
    out: list[SetType] = []
    if program.ntypes:
        out.append(SetType.get(TYPES))
        tag["ntype"] = TYPES
    out += [SetType.get(n, tag) for n in nodes]
    names = form.node_sets()
    maps: dict[str, Map | tuple[str, tuple[str, ...]] | str] = {
        "src": names[Site.SRC],
        "dst": names[Site.DST],
    }
    pairs: list[tuple[str, str]] = []
    if program.etypes:
        out.append(SetType.get(RELATIONS))
        maps["rel"] = RELATIONS
        pairs = [("rel", "src"), ("rel", "dst")]
    out.append(SetType.get(EDGES, maps, (), (), pairs))
    return out


def result_names(program: Program) -> list[str]:
    """Names of results, apart from each other and from arguments."""
    taken = {*program.arguments, EDGES, TYPES, RELATIONS, "N", "S", "D"}
    out: list[str] = []
    for name, _ in program.results:
        fresh, count = name, 0
        while fresh in taken:
            count += 1
            fresh = f"{name}_{count}"
        taken.add(fresh)
        out.append(fresh)
    return out
