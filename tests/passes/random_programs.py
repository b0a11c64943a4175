"""Random message-passing programs, typed on whole sets as the importer does: what the passes' tests
draw on beyond the layers that people write."""

import random

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnitAttr, f64, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from gnnc.dialects.inter.builder import Builder
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import ONE, Dom, RowsType, SetType, rows

WIDTHS = (1, 2, 3)
SMOOTH = ("relu", "tanh", "sigmoid", "neg", "leaky_relu")


class Drawer:
    """Draws one program of about `length` ops."""

    def __init__(self, seed: int, length: int = 22):
        self.r = random.Random(seed)
        self.length = length
        self.types: list[Attribute] = [SetType.get("N"), SetType.get("R")]
        maps = {"src": "N", "dst": "N", "rel": "R"}
        self.types.append(SetType.get("g", maps, pairs=[("rel", "src"), ("dst", "rel")]))
        self.attributes: list[dict[str, Attribute]] = [{}, {}, {}]
        for dom in (Dom("N"), Dom("N"), Dom("g"), Dom("R"), ONE, ONE):
            for _ in range(2):
                self.argument(dom, self.r.choice(((), (1,), (2,), (3,))))
        for k, f in ((1, 2), (2, 3), (3, 2), (2, 2), (3, 1), (4, 2), (5, 2), (6, 2)):
            self.argument(ONE, (k, f))
        for k, f in ((2, 3), (3, 2)):
            self.argument(Dom("R"), (k, f))
        self.key = len(self.types)
        self.types.append(RowsType.get(ONE, (), i64))
        self.attributes.append({})

    def argument(self, dom: Dom, dims: tuple[int, ...]) -> None:
        self.types.append(RowsType.get(dom, dims, f64))
        grad: dict[str, Attribute] = {"inter.needs_grad": UnitAttr()}
        self.attributes.append(grad if self.r.random() < 0.6 else {})

    def module(self) -> ModuleOp:
        """The program as @f."""
        block = Block(arg_types=self.types)
        for i, a in enumerate(block.args):
            a.name_hint = ("N", "R", "g")[i] if i < 3 else f"a{i}"
        env = SetEnv()
        for a in block.args[:3]:
            env.add(a)
        self.b = Builder(env, block, vanilla=True)
        self.values = [a for i, a in enumerate(block.args) if i > 2 and i != self.key]
        self.key_value = block.args[self.key]
        self.sites = 0
        while len(list(block.ops)) < self.length:
            self.step()
        # results that nothing is made of, so that most of the program is alive
        last = [v for v in self.values if not v.uses and rows(v).dom.set in ("N", "unit")]
        results = [v for v in last if v not in block.args][-3:] or self.values[-1:]
        block.add_op(ReturnOp(*results))
        attributes = [dict(a) for a in self.attributes]
        if not any(attributes):
            attributes[3] = {"inter.needs_grad": UnitAttr()}
        func = FuncOp(
            "f",
            (self.types, [v.type for v in results]),
            Region(block),
            arg_attrs=ArrayAttr(DictionaryAttr(a) for a in attributes),
        )
        return ModuleOp([func])

    def pick(self, *sets: str, dims: int | None = None) -> SSAValue | None:
        """A value on one of the sets, rather a late one; `dims`: of that rank."""
        found = [
            v
            for v in self.values
            if rows(v).dom.set in sets
            and not rows(v).dom.keys
            and (dims is None or len(rows(v).dims) == dims)
        ]
        if not found:
            return None
        return found[min(int(self.r.expovariate(0.25)), len(found) - 1) * -1 - 1]

    def step(self) -> None:
        """Adds one op, or nothing where what was drawn does not fit."""
        draw = self.r.choice(
            (self.read, self.read, self.mul, self.mul, self.product, self.product, self.reduce)
            + (self.reduce, self.reduce, self.add, self.smooth, self.shape, self.rare, self.join)
        )
        v = draw()
        if v is not None:
            self.values.append(v)

    def read(self) -> SSAValue | None:
        x = self.pick("N", "R")
        if x is None:
            return None
        path = "rel" if rows(x).dom.set == "R" else self.r.choice(("src", "dst"))
        return self.b.at("g", path, x)

    def two(self) -> tuple[SSAValue, SSAValue] | None:
        where = self.r.choice(("N", "g", "g"))
        a, b = self.pick(where), self.pick(where, "unit")
        if a is None or b is None or max(len(rows(x).dims) for x in (a, b)) > 1:
            return None
        wide = {n for x in (a, b) for n in rows(x).dims if n != 1}
        return (a, b) if len(wide) < 2 else None

    def mul(self) -> SSAValue | None:
        pair = self.two()
        return pair and self.b.mul(*pair)

    def add(self) -> SSAValue | None:
        pair = self.two()
        return pair and self.b.pointwise(self.r.choice(("add", "sub")), *pair)

    def product(self) -> SSAValue | None:
        x = self.pick("N", "g", dims=1)
        if x is None:
            return None
        (k,) = rows(x).dims
        weights = [
            w
            for w in self.values
            if len(rows(w).dims) == 2 and rows(w).dom.set in ("unit", rows(x).dom.set)
        ]
        spec = {0: "k,kf->f", 1: "k,fk->f"}
        fits = [(w, i) for w in weights for i in (0, 1) if rows(w).dims[i] == k]
        if not fits:
            return None
        w, i = self.r.choice(fits)
        return self.b.contract(spec[i], x, w)

    def reduce(self) -> SSAValue | None:
        x = self.pick("g")
        if x is None or len(rows(x).dims) > 1:
            return None
        kind = self.r.choice(("sum", "sum", "sum", "mean", "max"))
        along = self.r.choice((("dst",), ("dst",), ("src",), ("src",), (), ("dst", "rel")))
        y = self.b.reduce(kind, x, "g", along)
        if len(along) == 2:
            y = self.b.reduce("sum", y, Dom("g", ("dst", "rel")), ("dst",))
        return y

    def join(self) -> SSAValue | None:
        """A product of rows side by side."""
        a, b = self.pick("g", dims=1), self.pick("g", dims=1)
        if a is None or b is None:
            return None
        x = self.b.concat([a, b], 0)
        (k,) = rows(x).dims
        weights = [w for w in self.values if rows(w).dims == (k, 2) and rows(w).dom == ONE]
        return self.b.contract("k,kf->f", x, weights[0]) if weights else None

    def smooth(self) -> SSAValue | None:
        x = self.pick("N", "g")
        name = self.r.choice(SMOOTH)
        parameters = {"slope": 0.2} if name == "leaky_relu" else {}
        return x and self.b.pointwise(name, x, **parameters)

    def shape(self) -> SSAValue | None:
        x = self.pick("N", "g")
        if x is None:
            return None
        dims = rows(x).dims
        return self.b.reshape(x, (1,) if dims == () else () if dims == (1,) else dims)

    def rare(self) -> SSAValue | None:
        x = self.pick("g")
        if x is None or len(rows(x).dims) > 1:
            return None
        what = self.r.choice(("softmax", "dropout", "count", "inverse", "norm"))
        if what == "softmax":
            return self.b.softmax(x, "g", ("dst",))
        if what == "dropout":
            self.sites += 1
            numbers = self.r.choice((None, self.b.index("g", "src")))
            return self.b.dropout(x, self.key_value, "g", 0.4, self.sites, numbers)
        count = self.b.count("g", (self.r.choice(("src", "dst")),), f64)
        if what == "norm":
            return self.b.pointwise("rsqrt", count, zero=0.0)
        one = self.b.const(1.0, (), f64)
        if what == "inverse":
            return self.b.div(one, self.b.pointwise("maximum", count, one))
        return count
