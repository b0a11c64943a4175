"""Canonicalization without row dimensions of 1, on random programs full of them: the meaning stays,
it ends, and what is left computes without them.
"""

import random

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.transforms.canonicalize import CanonicalizePass

from gnnc.dialects.inter.base import ValueOp
from gnnc.dialects.inter.builder import Builder
from gnnc.dialects.inter.pointwise import broadcast_dims
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.shapes import BroadcastOp, ConcatOp, ReshapeOp, RowReduceOp, SliceOp
from gnnc.dialects.inter.types import ONE, Dom, RowsType, SetType, rows
from gnnc.dialects.inter.values import AsRowsOp, AsUnitOp, ConstOp
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.inter.verify_sets import verify_sets

SHAPES = ((), (1,), (3,), (1, 1), (1, 3), (3, 1), (2, 3), (1, 2, 3), (2, 1, 3), (2, 3, 1))
SEEDS = range(40)
MAY_HAVE_ONES = (ReshapeOp, ConstOp, SliceOp, ConcatOp, RowReduceOp, AsRowsOp, AsUnitOp)
"""What moves numbers only, or has a dimension that it is along."""


class Drawer:
    """Draws one program of about `length` ops."""

    def __init__(self, seed: int, length: int = 25):
        self.draw = random.Random(seed)
        self.length = length
        sets = [SetType.get("N"), SetType.get("g", {"src": "N", "dst": ("N", ("onto",))})]
        doms = [Dom("N"), Dom("g"), ONE] * 3
        values = [RowsType.get(d, self.draw.choice(SHAPES), f64) for d in doms]
        table = RowsType.get(ONE, (4, *self.draw.choice(SHAPES)), f64)
        self.func = FuncOp("f", ([*sets, *values, table, RowsType.get(ONE, (), i64)], []))
        block = self.func.body.block
        self.b = Builder(SetEnv.of(self.func), block, vanilla=bool(seed % 2))
        _, self.g, *self.values, table, self.key = block.args
        rows_of_table = self.b.as_rows(self.b.range(4, "R"), table)
        self.values.append(self.b.as_unit("R", rows_of_table, 4))

    def module(self) -> ModuleOp:
        block, ops = self.func.body.block, list(self.OPS)
        while len(list(block.ops)) < self.length:
            made = ops[self.draw.randrange(len(ops))](self)
            if made is not None:
                self.values.append(made)
        results = [v for v in self.values if not v.uses and v not in block.args]
        block.add_op(ReturnOp(*results))
        self.func.update_function_type()
        return ModuleOp([self.func])

    def pick(self, *sets: str) -> SSAValue:
        """A value on one of the sets, rather a late one."""
        found = [v for v in self.values if not sets or rows(v).dom.set in sets]
        return found[max(len(found) - 1 - int(self.draw.expovariate(0.3)), 0)]

    def like(self, v: SSAValue) -> SSAValue:
        """A value with the rows of `v`, of another one or of nothing but zeros."""
        t = rows(v)
        found = [x for x in self.values if rows(x).dims == t.dims and x is not v]
        found = [x for x in found if rows(x).dom in (t.dom, ONE)]
        return self.draw.choice(found) if found else self.b.const(0.5, t.dims, f64)

    # ------------------------------------------------------------ ops

    def binary(self) -> SSAValue | None:
        a = self.pick()
        b = self.pick(rows(a).dom.set, "unit")
        if not broadcast(a, b):
            return None
        return self.b.pointwise(self.draw.choice(("add", "mul", "sub", "maximum")), a, b)

    def choice(self) -> SSAValue:
        a = self.pick()
        return self.b.where(self.b.pointwise("gt", a, self.like(a)), a, self.like(a))

    def unary(self) -> SSAValue:
        return self.b.pointwise(self.draw.choice(("tanh", "relu", "neg")), self.pick())

    def stopped(self) -> SSAValue:
        return self.b.stop(self.pick())

    def read(self) -> SSAValue:
        return self.b.at(self.g, self.draw.choice(("src", "dst")), self.pick("N"))

    def reduced(self) -> SSAValue:
        x, along = self.pick("g"), self.draw.choice((("dst",), ("src",), ()))
        kind = self.draw.choice(("sum", "mean", "max", "last"))
        other = self.b.const(0.5, rows(x).dims, f64) if kind == "last" else None
        return self.b.reduce(kind, x, self.g, along, otherwise=other)

    def softmax(self) -> SSAValue:
        return self.b.softmax(self.pick("g"), self.g, ("dst",))

    def dropped(self) -> SSAValue:
        return self.b.dropout(self.pick("g"), self.key, self.g, 0.5, 1)

    def reshaped(self) -> SSAValue:
        x = self.pick()
        dims = [n for n in rows(x).dims if n != 1]
        for _ in range(self.draw.randrange(3)):
            dims.insert(self.draw.randrange(len(dims) + 1), 1)
        return self.b.reshape(x, dims)

    def repeated(self) -> SSAValue | None:
        x, dims = self.pick(), self.draw.choice(SHAPES)
        both = broadcast_of(rows(x).dims, dims)
        return self.b.broadcast(x, both) if both == dims else None

    def turned(self) -> SSAValue:
        x = self.pick()
        order = list(range(len(rows(x).dims)))
        self.draw.shuffle(order)
        return self.b.transpose(x, order)

    def summed(self) -> SSAValue | None:
        x = self.pick()
        rank = len(rows(x).dims)
        if not rank:
            return None
        axes = self.draw.sample(range(rank), self.draw.randint(1, rank))
        return self.b.row_reduce(self.draw.choice(("sum", "max")), x, sorted(axes))

    def sliced(self) -> SSAValue | None:
        x = self.pick()
        if not rows(x).dims:
            return None
        dim = self.draw.randrange(len(rows(x).dims))
        return self.b.slice(x, dim, 0, self.draw.randint(1, rows(x).dims[dim]))

    def joined(self) -> SSAValue | None:
        x = self.pick()
        dims = rows(x).dims
        if not dims or sum(dims) > 8:
            return None
        return self.b.concat([x, self.like(x)], self.draw.randrange(len(dims)))

    def product(self) -> SSAValue | None:
        x, w = self.pick("N", "g"), self.pick("unit")
        if len(rows(x).dims) != 2 or len(rows(w).dims) != 2:
            return None
        if rows(x).dims[1] != rows(w).dims[0]:
            return None
        return self.b.contract("hk,kf->hf", x, w)

    OPS = (binary, choice, unary, stopped, read, reduced, softmax, dropped, reshaped, repeated) + (
        (turned, summed, sliced, joined, product) + (binary, read, reduced, reshaped, product)
    )


def broadcast_of(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of both together; None where they do not fit."""
    pairs = list(zip(reversed(a), reversed(b), strict=False))
    return broadcast_dims([a, b]) if all(m == n or 1 in (m, n) for m, n in pairs) else None


def broadcast(a: SSAValue, b: SSAValue) -> bool:
    return broadcast_of(rows(a).dims, rows(b).dims) is not None


def canonical(module: ModuleOp) -> ModuleOp:
    after = module.clone()
    CanonicalizePass().apply(Context(), after)
    after.verify()
    return after


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed: int) -> None:
    before = Drawer(seed).module()
    before.verify()
    after = canonical(before)
    (func,) = after.body.block.ops
    assert isinstance(func, FuncOp)
    verify_sets(func)
    same_meaning(before, after, seeds=range(3))
    assert str(canonical(after)) == str(after)
    for op in func.body.block.ops:
        if isinstance(op, ValueOp) and not isinstance(op, MAY_HAVE_ONES):
            assert 1 not in op.type.dims, op


def test_the_programs_have_what_is_to_go() -> None:
    """Of ops that must not have dimensions of 1, the random programs have plenty."""
    modules = [Drawer(seed).module() for seed in SEEDS]
    ops = [op for m in modules for op in m.walk() if isinstance(op, ValueOp)]
    with_ones = [op for op in ops if 1 in op.type.dims and not isinstance(op, MAY_HAVE_ONES)]
    assert len(with_ones) > 100
    assert any(isinstance(op, BroadcastOp) for op in with_ones)
