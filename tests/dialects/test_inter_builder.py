"""The Builder: every op, the types it infers, and that what it builds prints and parses back."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32, f64, i1, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.utils.exceptions import VerifyException

from gnnc.dialects.inter import Inter
from gnnc.dialects.inter.builder import Builder
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import ONE, Dom, RowsType, SetType
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.pointwise import POINTWISE
from gnnc.passes.inter.verify_sets import verify_sets


def start(vanilla=False):
    """(function, builder, N, R, g, x on N, W on R, key)"""
    types = [
        SetType.get("N"),
        SetType.get("R"),
        SetType.get(
            "g", {"src": "N", "dst": "N", "rel": "R"}, pairs=[("rel", "src"), ("dst", "rel")]
        ),
        RowsType.get(Dom("N"), (8,), f32),
        RowsType.get(Dom("R"), (8, 4), f32),
        RowsType.get(ONE, (), i64),
    ]
    func = FuncOp("f", (types, []))
    builder = Builder(SetEnv.of(func), func.body.block, vanilla)
    return func, builder, *func.body.block.args


def finish(func, *results):
    """The function's module, checked, after a round trip through text."""
    func.body.block.add_op(ReturnOp(*results))
    func.update_function_type()
    module = ModuleOp([func])
    module.verify()
    verify_sets(func)
    text = str(module)
    assert str(parse_module(text)) == text
    return module


def shown(value):
    return str(value.type).removeprefix("!inter.rows")


def every_op(vanilla):
    func, b, N, R, g, x, W, key = start(vanilla)
    at = b.at(g, "src", x)
    h = b.contract("k,kf->f", at, b.at("g", "rel", W))
    f = b.filter(g, no_loops=True)
    mask = b.pointwise("gt", b.row_reduce("sum", h, [0]), b.const(0.0))
    b.filter(g, mask, name="kept")
    loops = b.loops(g, remaining=True)
    b.loops(g)
    u = b.union(f, loops, name="u")
    w = b.stack(u, b.const(1.0), b.at(loops, "old", b.const(2.0), b.const(3.0)))
    b.part(1, u, w)
    degree = b.reduce("sum", w, u, ("dst",))
    b.reduce("last", w, u, ("dst",), otherwise=degree)
    b.reduce("max", h, Dom("g"), ("dst", "rel"), zero_ties=True)
    b.softmax(h, g, ("dst",))
    b.count(g, ("dst",), i64)
    b.dropout(h, key, g, 0.5, 1)
    b.dropout(b.const(1.0), key, None, 0.5, 2)
    ids = b.index(g, "rel")
    three = b.range(3)
    maps = {"kind": (ids, "R"), "third": (ids, set_label(three), ("partial",))}
    a = b.attach(g, maps, pairs=[("kind", "src")], name="a")
    b.at(a, "parent.src", x)
    s = b.sized(b.size(g))
    b.interval(g, b.const(1, elem=i64), b.size(g))
    b.iota(s)
    table = b.as_rows(three, b.table(np.arange(6.0).reshape(3, 2), f64))
    b.as_unit(three, table, 3)
    b.cast(b.cast(degree, i64), i1)
    b.stop(x)
    b.widen(b.reshape(b.const(0.0, (4,)), (2, 2)), Dom("N"))
    b.broadcast(degree, (3, 2))
    b.transpose(W, (1, 0))
    b.slice(x, 0, 1, 7, 2)
    b.concat([x, x], 0)
    flag = b.pointwise("eq", degree, degree)
    integers = b.cast(x, i64)
    for spec in POINTWISE.values():
        operand = {"bool": flag, "integer": integers}.get(spec.operands, x)
        xs = [flag, x, x][: spec.arity] if spec.operands == "where" else [operand] * spec.arity
        if spec.operands == "where":
            xs[0] = b.reshape(flag, (1,))
        b.pointwise(spec.name, *xs, **{p.name: 0.5 for p in spec.parameters})
    peers, numbers = b.range(2), b.iota(b.range(2, name="K"))
    ranks = b.attach("K", {"peer": (numbers, set_label(peers), ("mono",))})
    zero = b.const(0, elem=i64)
    ends = {"rank": (zero, set_label(ranks)), "peer": (zero, set_label(peers))}
    sent = b.attach(N, ends)
    b.move(b.at(sent, "parent", x), sent, sent)
    b.all_reduce("sum", zero)
    finish(func, h)
    return func


def set_label(value):
    return value.type.label


@pytest.mark.parametrize("vanilla", [False, True])
def test_every_op_is_built_and_printed(vanilla):
    built = {op.name for op in every_op(vanilla).body.block.ops}
    assert {op.name for op in Inter.operations} <= built


def test_least_domains():
    func, b, N, R, g, x, W, key = start()
    xs = b.at(g, "src", x)
    h = b.contract("k,kf->f", xs, b.at(g, "rel", W))
    assert shown(xs) == "<g[src], 8xf32>"
    assert shown(h) == "<g[rel, src], 4xf32>"
    assert shown(b.add(xs, b.at(g, "dst", x))) == "<g, 8xf32>"
    assert shown(b.pointwise("exp", xs)) == "<g, 8xf32>"  # g[src] may hold rows that nothing reads
    assert shown(b.pointwise("exp", h)) == "<g[rel, src], 4xf32>"  # pairs all occur
    assert shown(b.at(g, "src", b.const(1.0))) == "<unit, f32>"
    assert shown(b.reduce("sum", h, Dom("g", ("rel", "src")), ("rel",))) == "<R, 4xf32>"


def test_vanilla_domains():
    func, b, N, R, g, x, W, key = start(vanilla=True)
    xs = b.at(g, "src", x)
    assert shown(xs) == "<g, 8xf32>"
    assert shown(b.at(g, "src", b.const(1.0))) == "<g, f32>"
    assert shown(b.mul(b.const(1.0), b.const(1.0))) == "<unit, f32>"
    assert shown(b.softmax(xs, g, ("dst",))) == "<g, 8xf32>"


def test_no_op_where_nothing_changes():
    func, b, N, R, g, x, W, key = start()
    assert b.reshape(x, (8,)) is x
    assert b.broadcast(x, (8,)) is x
    assert b.cast(x, f32) is x
    assert b.widen(x, Dom("N")) is x
    assert b.row_reduce("sum", x, ()) is x


def test_errors_come_before_the_op_is_there():
    func, b, N, R, g, x, W, key = start()
    with pytest.raises(VerifyException, match="letter 'k' stands for 8 and for 4"):
        b.contract("k,fk->f", x, W)
    with pytest.raises(VerifyException, match="map rel of g goes to R, but the operand lives on N"):
        b.at(g, "rel", x)
    with pytest.raises(VerifyException, match="live on different sets, N and R"):
        b.add(x, b.row_reduce("sum", W, [1]))
    with pytest.raises(VerifyException, match="the mask lives on N and cannot be read"):
        b.filter(g, b.pointwise("gt", b.row_reduce("sum", x, [0]), b.const(0.0)))
    with pytest.raises(ValueError, match="lgamma is no pointwise function: add, sub"):
        b.pointwise("lgamma", x)
    assert [op.name for op in func.body.block.ops if op.name != "inter.const"] == [
        "inter.row_reduce",
        "inter.row_reduce",
        "inter.gt",
    ]


def test_inserting_in_the_middle():
    from xdsl.rewriter import InsertPoint

    func, b, N, R, g, x, W, key = start()
    last = b.add(x, x)
    before = Builder(b.env, InsertPoint.before(last.owner))
    first = before.neg(x)
    before.neg(first)
    assert [op.name for op in func.body.block.ops] == ["inter.neg", "inter.neg", "inter.add"]
