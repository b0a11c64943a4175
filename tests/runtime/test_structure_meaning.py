"""The steps that make sets (fast) mean what the interpreter says (the oracle), op by op, on random
sets."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from gnnc.codegen.common.structure_plan import StructurePlan
from gnnc.dialects.inter import Inter
from gnnc.dialects.inter.builder import Builder
from gnnc.dialects.inter.pointwise import PointwiseOp
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import RowsType, SetType, rows, set_type
from gnnc.dialects.meaning import SetVal, run
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.phases import argument_names
from gnnc.runtime.carrier import Alone
from gnnc.runtime.program import DTYPES
from gnnc.runtime.sets.sets import MapData, SetData
from gnnc.runtime.sets.structure import STEPS, Step, run_plan

SETS = """%N : !inter.set<N>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>,
    %l : !inter.set<l, src: N, dst: N, old: g partial>"""
ROWS = {
    "x": "g, i64", "y": "g, 2x3xi64", "m": "g, i1", "f": "g, 3xf64", "s": "g, i32",
    "n": "N, i64", "z": "l, i64", "r": "R, i64", "p": "g[rel, src], i64", "q": "g[rel], i64",
    "one": "unit, i64", "two": "unit, 2x3xi64", "table": "unit, 3xi64",
}  # fmt: skip


def made(name: str, maps: str = "") -> str:
    return f"!inter.set<{name}{', ' if maps else ''}{maps}>"


def out(row: str) -> str:
    return f"!inter.rows<{row}>"


FILTER = made("f", "src: N, dst: N, rel: R, parent: g mono, pairs (rel, src)")
UNION = made("u", "src: N, dst: N, parts g l")
UNITED = f"%u = inter.union %g, %l : {UNION}\n"
STACKED = f"%w = inter.stack %u, %x, %z : {out('u, i64')}\n"


def joined(flag: str) -> str:
    """A map into a union of where those of the parts lead."""
    g1 = made("g1", f"src: N, dst: N, rel: R, to: R{flag}, parent: g mono onto")
    l1 = made("l1", f"src: N, dst: N, old: g partial, to: N{flag}, parent: l mono onto")
    return (
        f"%g1 = inter.attach %g (to = %x) : {g1}\n%l1 = inter.attach %l (to = %z) : {l1}\n"
        f"%v = inter.union %N, %R : {made('v', 'parts N R')}\n"
        f"%a = inter.union %g1, %l1 : {made('a', f'src: N, dst: N, to: v{flag}, parts g1 l1')}"
    )


RANGE = f"%S = inter.range 3 : {made('S')}\n"
KINDS = ("sum", "mean", "max", "min", "mul")


def reduces() -> list[str]:
    """Each kind over rows and pairs, into rows, pairs and the single row."""
    cases: list[str] = []
    for k in KINDS:
        x, t = ("f", "3xf64") if k == "mean" else ("y", "2x3xi64")
        cases += [
            f"%a = inter.reduce {k} %{x} over %g along dst : {out(f'N, {t}')}",
            f"%a = inter.reduce {k} %{x} over %g along (rel, src) : {out(f'g[rel, src], {t}')}",
            f"%a = inter.reduce {k} %{x} over %g along () : {out(f'unit, {t}')}",
        ]
    return cases + [
        f"%a = inter.reduce sum %p over %g[rel, src] along src : {out('N, i64')}",
        f"%a = inter.reduce sum %z over %l along old : {out('g, i64')}",
        f"%a = inter.reduce max %f over %g along dst : {out('N, 3xf64')}",
        f"%a = inter.reduce sum %s over %g along dst : {out('N, i32')}",
        f"%a = inter.reduce last %x over %g along dst else %n : {out('N, i64')}",
        f"%a = inter.reduce last %z over %l along old else %x : {out('g, i64')}",
    ]


LITERALS = {
    name: f"%{name} = inter.const {number} : !inter.rows<unit, i64>\n"
    for name, number in (("i0", 0), ("i5", 5), ("i99", 99), ("j2", -2), ("j99", -99))
}
"""Bounds of intervals: from the start, and (j) from the end."""

LED = f"""
    %t = inter.index %g[dst] : {out("g[dst], i64")}
    %k = inter.gt %t, %one : {out("g[dst], i1")}
"""
"""Numbers of maps and what follows from them, stored once a key."""

CASES: dict[str, list[str]] = {
    "move": [
        """
        %peers = inter.range 1 : !inter.set<peers>
        %zero = inter.const 0 : !inter.rows<unit, i64>
        %number = inter.const 1.0 : !inter.rows<unit, f64>
        %ranks = inter.attach %peers (peer = %zero)
          : !inter.set<ranks, peer: peers, parent: peers mono onto>
        %sent = inter.attach %N (rank = %zero, peer = %zero)
          : !inter.set<sent, rank: ranks, peer: peers, parent: N mono onto>
        %a = inter.move %number from %sent to %sent : !inter.rows<sent, f64>"""
    ],
    "all_reduce": [
        """
        %number = inter.const 1.0 : !inter.rows<unit, f64>
        %a = inter.all_reduce sum %number : !inter.rows<unit, f64>"""
    ],
    "filter": [
        f"%a = inter.filter %g {{no_loops}} : {FILTER}",
        f"%a = inter.filter %g, %m : {FILTER}",
        f"{LED}%a = inter.filter %g, %k : {FILTER}",
    ],
    "interval": [
        f"{LITERALS[lo]}{LITERALS[hi]}%a = inter.interval %g, %{lo}, %{hi} : {FILTER}"
        for lo, hi in (("i0", "i5"), ("i5", "j2"), ("j2", "i99"), ("i5", "i0"), ("j99", "i5"))
    ],
    "loops": [
        f"%a = inter.loops %g : {made('a', 'src: N mono onto, dst: N mono onto')}",
        "%a = inter.loops %g {remaining} : "
        + made("a", "src: N mono onto, dst: N mono onto, old: g partial"),
    ],
    "union": [UNITED, joined(""), joined(" partial")],
    "attach": [
        "%a = inter.attach %g (to = %x) : "
        + made("a", f"src: N, dst: N, rel: R, to: {to}{flags}, parent: g mono onto")
        for to in ("N", "R")
        for flags in ("", " partial", " mono", " onto", " mono onto")
    ],
    "range": [RANGE, f"%S = inter.range 0 : {made('S')}"],
    "sized": [f"%a = inter.sized %one : {made('a')}"],
    "const": [f"%a = inter.const {v} : {out(f'unit, 2x{t}')}" for v, t in (
        (1.5, "f64"), (-1, "i64"), ("true", "i1"))],
    "table": [f"%a = inter.table [1, -2] : {out('unit, 2xi32')}"],
    "at": [
        f"%a = inter.at %g[src], %n : {out('g, i64')}",
        f"%a = inter.at %g[src], %n : {out('g[src], i64')}",
        f"%a = inter.at %l[src], %one : {out('unit, i64')}",
        f"%a = inter.at %l[old], %x else %z : {out('l, i64')}",
        f"%a = inter.at %l[old], %one else %z : {out('l, i64')}",
    ],
    "index": [
        f"%a = inter.index %g[src] : {out('g, i64')}",
        f"%a = inter.index %g[src] : {out('g[src], i64')}",
        f"%a = inter.index %l[old] : {out('l, i64')}",
        f"%a = inter.index %l[old.src] : {out('l, i64')}",
    ],
    "iota": [f"%a = inter.iota %g : {out('g, i64')}"],
    "size": [f"%a = inter.size %g : {out('unit, i64')}"],
    "stack": [UNITED + STACKED, f"{UNITED}%a = inter.stack %u, %one, %z : {out('u, i64')}"],
    "part": [
        f"{UNITED}{STACKED}%a = inter.part {i} of %u, %w : {out(f'{s}, i64')}"
        for i, s in enumerate("gl")
    ],
    "as_rows": [
        f"{RANGE}%a = inter.as_rows %S, %table : {out('S, i64')}",
        f"%a = inter.as_rows %R, %table : {out('R, i64')}",
    ],
    "as_unit": [f"%a = inter.as_unit %R, %r : {out('unit, 3xi64')}"],
    "cast": [f"%a = inter.cast %{x} : {out(f'g, {t}')}" for x, t in (
        ("f", "3xi64"), ("f", "3xi32"), ("f", "3xi1"), ("x", "i32"), ("x", "f64"), ("x", "i1"),
        ("m", "i64"), ("m", "f64"))],
    "stop": [f"%a = inter.stop %x : {out('g, i64')}"],
    "contract": [f'%a = inter.contract "k,k->" %f, %f : {out("g, f64")}'],
    "reshape": [
        f"%a = inter.reshape %y : {out('g, 3x2xi64')}",
        f"%a = inter.reshape %q : {out('g[rel, src], i64')}",
        f"%a = inter.reshape %q : {out('g, i64')}",
        f"%a = inter.reshape %p : {out('g, i64')}",
    ],
    "broadcast": [f"%a = inter.broadcast %x : {out('g, 2x2xi64')}"],
    "transpose": [f"%a = inter.transpose %y [1, 0] : {out('g, 3x2xi64')}"],
    "slice": [
        f"%a = inter.slice %y {{dim = 1, lo = 0, hi = 3, step = 2}} : {out('g, 2x2xi64')}",
        f"%a = inter.slice %y {{dim = 0, lo = 1, hi = 2}} : {out('g, 1x3xi64')}",
    ],
    "concat": [f"%a = inter.concat %y, %two {{dim = 0}} : {out('g, 4x3xi64')}"],
    "row_reduce": [
        *(f"%a = inter.row_reduce {k} %f [0] : {out('g, f64')}" for k in ("sum", "max", "min")),
        f"%a = inter.row_reduce sum %y [0, 1] : {out('g, i64')}",
    ],
    "reduce": reduces(),
    "softmax": [f"%a = inter.softmax %f over %g along dst : {out('g, 3xf64')}"],
    "count": [
        f"%a = inter.count over %g along dst : {out('N, i64')}",
        f"%a = inter.count over %g[rel, src] along src : {out('N, f64')}",
        f"%a = inter.count over %l along old : {out('g, i32')}",
        f"%a = inter.count over %g along () : {out('unit, i64')}",
    ],
    "dropout": [
        f"%a = inter.dropout %f, %one over %g {{p = 0.5, site = 0}} : {out('g, 3xf64')}"
    ],
}  # fmt: skip
LED_AGAIN = f"""{LED}
    %h = inter.filter %g, %k : {made("h", "src: N, dst: N, rel: R, parent: g mono")}
    %u = inter.at %h[parent], %t : {out("h[dst], i64")}
    %a = inter.attach %h (to = %u)
      : {made("a", "src: N, dst: N, rel: R, to: N, parent: h mono onto")}"""
CASES["attach"].append(LED_AGAIN)
REFUSED = ("contract", "softmax", "dropout")
"""Not computed while sets are made; nor are pointwise ops without a step."""


ELEMENTS = {"float": "f", "integer": "xs", "number": "fxs", "bool": "m"}
"""By what a pointwise op takes the arguments of each element type; others take all."""

ALL = [(op, i) for op in Inter.operations for i in range(len(CASES.get(op.name[6:], "fxsm")))]


@cache
def program(op: type[Operation], number: int) -> tuple[ModuleOp, FuncOp] | None:
    """A function that gives what a case of an op makes; None where it takes no such element."""
    arguments = ", ".join(f"%{k} : !inter.rows<{t}>" for k, t in ROWS.items())
    body = "" if issubclass(op, PointwiseOp) else CASES[op.name[6:]][number]
    module = parse_module(f"func.func @main({SETS}, {arguments}) {{\n{body}\nfunc.return\n}}")
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    end = func.body.block.last_op
    assert end is not None
    if issubclass(op, PointwiseOp):
        x = "fxsm"[number]
        if x not in ELEMENTS.get(op.SPEC.operands, "fxsm"):
            return None
        given = dict(zip(argument_names(func), func.body.block.args, strict=True))
        b = Builder(SetEnv.of(func), InsertPoint.before(end))
        where = op.SPEC.operands == "where"
        operands = [given["m"]] * where + [given[x]] * (op.SPEC.arity - where)
        parameters = {p.name: 0.5 for p in op.SPEC.parameters}
        b.pointwise(op.SPEC.name, *operands, **parameters)
        one = b.at("g", "src", b.cast(given["n"], rows(given[x]).elem))
        other = b.reshape(one, (1,) * len(rows(given[x]).dims))
        b.pointwise(op.SPEC.name, *operands[:-1], other, **parameters)
    made = [r for o in func.body.block.ops for r in o.results]
    end.detach()
    func.body.block.add_op(ReturnOp(*made))
    func.update_function_type()
    return module, func


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Random sets, empty ones too, and rows with zeros and numbers that are none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, r = draw(st.sampled_from([0, 1, 3, 6])), draw(st.sampled_from([0, 1, 3]))
    g = draw(st.sampled_from([0, 1, 3, 12])) if n and r else 0
    k = draw(st.sampled_from([0, 1, 5])) if n else 0

    def index(size: int, count: int, low: int = 0) -> np.ndarray:
        return rng.integers(low, max(count, low + 1), size)

    edges = {"src": index(g, n), "dst": index(g, n), "rel": index(g, r)}
    loops = {"src": index(k, n), "dst": index(k, n), "old": index(k, g, -1)}
    sets = {"N": SetVal(n), "R": SetVal(r), "g": SetVal(g, edges), "l": SetVal(k, loops)}
    stored = {"N": n, "R": r, "g": g, "l": k, "unit": 1, "g[rel]": r}
    stored["g[rel, src]"] = len({*zip(edges["rel"].tolist(), edges["src"].tolist(), strict=True)})
    values: dict[str, Any] = {}
    for name, row in ROWS.items():
        dom, _, text = row.rpartition(", ")
        *dims, elem = text.split("x")
        values[name] = rng.integers(-2, 3, (stored[dom], *map(int, dims))).astype(DTYPES[elem])
    some = rng.random(values["f"].shape) < 0.2
    values["f"] = np.where(
        some, rng.choice([math.inf, -math.inf, math.nan, -0.0, 0.5]), values["f"]
    )
    order = draw(st.sampled_from(["any", "rows", "all rows", "partial"]))
    if order != "any":  # what may be a map
        values["x"] = (
            np.arange(g) % max(n, 1) if order == "all rows" else index(g, n, -(order == "partial"))
        )
    return sets | values


def given_set(value: SetVal, t: SetType, sets: dict[str, Any]) -> SetData:
    """A set as the runtime has it."""
    maps = {
        k: MapData.of(value.maps[k], sets[m.codomain].n, partial="partial" in m.flags)
        for k, m in t.map_dict().items()
    }
    return SetData(value.n, maps)


def outcome(call: Any) -> Any:
    """What a call gives, or what it raises."""
    try:
        return call()
    except (ValueError, IndexError) as error:
        return type(error)


def same(fast: Any, want: Any, t: SetType | RowsType) -> None:
    if isinstance(t, SetType):
        assert fast.size == want.n
        for k in t.map_dict():
            np.testing.assert_array_equal(fast.map(k).array, want.maps[k])
        return
    assert fast.dtype == DTYPES[str(t.elem)]
    np.testing.assert_allclose(np.broadcast_to(fast, want.shape), want, 1e-12, equal_nan=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("op, number", ALL, ids=[f"{op.name[6:]}-{i}" for op, i in ALL])
@settings(max_examples=10, deadline=None)
@given(values=arguments())
def test_step(op: type[Operation], number: int, values: dict[str, Any]):
    found = program(op, number)
    if found is None:
        return
    module, func = found
    if op.name[6:] in REFUSED:
        with pytest.raises(PassFailedException, match="while sets are made"):
            StructurePlan(func, argument_names(func))
        return
    plan = StructurePlan(func, argument_names(func))
    types = {
        set_type(a).label: set_type(a) for a in func.body.block.args if isinstance(a.type, SetType)
    }
    env = {k: given_set(v, types[k], values) if k in types else v for k, v in values.items()}
    data = json.loads(json.dumps(plan.steps))
    steps = [
        Step(name, tuple(inputs), tuple(outputs), attrs) for name, inputs, outputs, attrs in data
    ]
    if issubclass(op, PointwiseOp) and op.SPEC.name not in STEPS:
        with pytest.raises(ValueError, match="unknown structure step"):
            run_plan(steps, env)
        return
    want = outcome(lambda: run(module, "main", *(values[n] for n in argument_names(func))))
    fast = outcome(lambda: run_plan(steps, env, carrier=Alone()))
    if isinstance(want, type) or isinstance(fast, type):
        assert fast == want
        return
    last = func.body.block.last_op
    assert last is not None
    for v, x in zip(last.operands, want, strict=True):
        assert isinstance(v.type, SetType | RowsType)
        same(fast[plan.names[v]], x, v.type)


def test_an_equation_that_nothing_checks_is_refused():
    claimed = made("a", "src: N, dst: N, rel: R, to: N, parent: g mono onto, eq to = src")
    text = f"func.func @main({SETS}, %x : !inter.rows<g, i64>) {{\n"
    module = parse_module(text + f"%a = inter.attach %g (to = %x) : {claimed}\nfunc.return\n}}")
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    with pytest.raises(PassFailedException, match="set a: nothing checks that to = src"):
        StructurePlan(func, argument_names(func))


def test_numbers_of_maps_are_not_looked_up():
    """They are made at the rows that read them."""
    text = f"func.func @main({SETS}, %one : !inter.rows<unit, i64>) {{\n{LED_AGAIN}\n"
    (func,) = parse_module(f"{text}func.return\n}}").body.block.ops
    assert isinstance(func, FuncOp)
    plan = StructurePlan(func, argument_names(func))
    steps = [name for name, *_ in plan.needed([])]
    assert steps == ["index", "gt", "filter", "index", "attach"]
