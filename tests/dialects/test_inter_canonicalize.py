"""Canonicalization keeps the meaning on programs that use every rule, least and vanilla."""

import random

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.transforms.canonicalize import CanonicalizePass

from gnnc.dialects.inter.base import InterOp
from gnnc.dialects.inter.builder import Builder
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import ONE, Dom, RowsType, SetType, rows
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.inter.verify_sets import verify_sets


def program(vanilla):
    """Ops that the rules remove, mixed with ops that must stay."""
    types = [
        SetType.get("N"),
        SetType.get("g", {"src": "N", "dst": ("N", ("onto",))}),
        RowsType.get(Dom("N"), (4,), f64),
        RowsType.get(Dom("g"), (), f64),
        RowsType.get(ONE, (), i64),
    ]
    func = FuncOp("f", (types, []))
    N, g, x, w, key = func.body.block.args
    b = Builder(SetEnv.of(func), func.body.block, vanilla)
    one, zero = b.const(1.0, (), f64), b.const(0.0, (4,), f64)
    loops = b.loops(g, remaining=True)
    u = b.union(g, loops)
    weights = b.stack(u, b.at(g, "src", one), b.at(loops, "old", one, one))
    degree = b.reduce("sum", weights, u, ("dst",))
    mixed = b.stack(u, w, b.at(loops, "old", w, one))
    back = b.stack(u, b.part(0, u, mixed), b.part(1, u, mixed))
    dropped = b.dropout(b.mul(x, one), key, N, 0.0, 0)
    shifted = b.add(b.sub(dropped, zero), zero)
    seen = b.at(u, "dst", shifted)
    mean = b.reduce("mean", seen, u, ("dst",))
    total = b.reduce("sum", seen, u, ("dst",))
    spread = b.pointwise(
        "exp", b.mul(b.reshape(b.at(u, "src", degree), (1,)), b.const(2.0, (), f64))
    )
    numbers = b.cast(b.at(u, "src", b.iota(N)), f64)
    folded = b.pointwise("pow", b.add(one, one), b.const(3.0, (), f64))
    choice = b.where(b.pointwise("gt", folded, one), x, b.neg(x))
    twice = b.neg(b.neg(b.pointwise("relu", b.pointwise("relu", x))))
    view = b.transpose(b.transpose(b.reshape(b.reshape(x, (2, 2)), (4, 1)), (1, 0)), (1, 0))
    results = [
        degree,
        back,
        mean,
        total,
        b.reduce("sum", spread, u, ("dst",)),
        b.reduce("sum", numbers, u, ("dst",)),
        choice,
        twice,
        b.row_reduce("sum", view, (1,)),
        b.stop(b.stop(folded)),
        b.pointwise("maximum", x, x),
        b.widen(b.at(g, "src", one), Dom("g")),
    ]
    func.body.block.add_op(ReturnOp(*results))
    func.update_function_type()
    return ModuleOp([func])


@pytest.mark.parametrize("vanilla", [False, True])
def test_meaning_is_kept(vanilla):
    before = program(vanilla)
    after = before.clone()
    CanonicalizePass().apply(Context(), after)
    after.verify()
    func = next(iter(after.body.block.ops))
    verify_sets(func)
    assert [r.type for r in func.body.block.last_op.operands] == [
        r.type for r in next(iter(before.body.block.ops)).body.block.last_op.operands
    ]
    same_meaning(before, after, seeds=range(12))


@pytest.mark.parametrize("vanilla", [False, True])
def test_it_ends_and_leaves_nothing_to_do(vanilla):
    module = program(vanilla)
    CanonicalizePass().apply(Context(), module)
    once = str(module)
    CanonicalizePass().apply(Context(), module)
    assert str(module) == once


def test_the_superfluous_is_gone():
    module = program(vanilla=False)
    CanonicalizePass().apply(Context(), module)
    left = [op.name for op in module.walk() if isinstance(op, InterOp)]
    gone = (
        "inter.dropout",
        "inter.stop",
        "inter.iota",
        "inter.neg",
        "inter.pow",
        "inter.transpose",
    )
    assert not [name for name in left if name in gone]
    assert left.count("inter.relu") == 1 and left.count("inter.stack") == 1


@pytest.mark.parametrize("every", [False, True])
def test_last_of_a_read_keeps_the_derivative_of_every_row(every: bool):
    types = [
        SetType.get("N"),
        SetType.get("g", {"dst": ("N", ("onto",))}),
        RowsType.get(Dom("N"), (4,), f64),
    ]
    func = FuncOp("f", (types, []))
    _, g, x = func.body.block.args
    b = Builder(SetEnv.of(func), func.body.block)
    last = b.reduce("last", b.at(g, "dst", x), g, ("dst",), otherwise=x, every=every)
    func.body.block.add_op(ReturnOp(last))
    func.update_function_type()
    module = ModuleOp([func])
    CanonicalizePass().apply(Context(), module)
    assert ("inter.reduce" in str(module)) == every


@pytest.mark.parametrize("seed", range(40))
def test_slices_of_what_was_put_together(seed: int):
    """Random slices of slices, of concatenations along each dimension and of what is repeated."""
    chance = random.Random(seed)
    types = [SetType.get("N"), *(RowsType.get(Dom("N"), (3, n), f64) for n in (4, 5))]
    func = FuncOp("f", (types, []))
    _, x, y = func.body.block.args
    b = Builder(SetEnv.of(func), func.body.block)
    one = b.reshape(b.row_reduce("sum", x, (0,)), (1, 4))
    wide = b.broadcast(one, (3, 4))
    values = [
        b.concat([x, wide, y], 1),
        b.concat([x, wide, b.mul(x, x)], 0),
        b.broadcast(x, (2, 3, 4)),
    ]
    for _ in range(8):
        v = chance.choice(values)
        dim = chance.randrange(len(rows(v).dims))
        lo, hi = sorted(chance.sample(range(rows(v).dims[dim] + 1), 2))
        values.append(b.slice(v, dim, lo, hi, chance.choice((1, 1, 2))))
    func.body.block.add_op(ReturnOp(*values[3 if chance.random() < 0.7 else 0 :]))
    func.update_function_type()
    before = ModuleOp([func])
    after = before.clone()
    CanonicalizePass().apply(Context(), after)
    after.verify()
    same_meaning(before, after, seeds=range(3))
    once = str(after)
    CanonicalizePass().apply(Context(), after)
    assert str(after) == once
