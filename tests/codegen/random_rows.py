"""Random programs of a dozen ops on wide rows, heads and matrices of all layouts, from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from .shared import program

SHAPES = ((), (1,), (3,), (2, 3), (5,), (17,), (2, 1), (4, 2, 3))
MOST_NUMBERS = 200
"""Rows stay short, so that compiling and interpreting stay quick."""


@dataclass(frozen=True)
class Value:
    """An SSA value: its name, the set that its rows are over (`unit`: one row) and their shape."""

    name: str
    dom: str
    dims: tuple[int, ...]


def rows(dom: str, dims: tuple[int, ...], elem: str) -> str:
    """`!inter.rows<N, 2x3xf64>`"""
    return f"!inter.rows<{dom}, {'x'.join([*map(str, dims), elem])}>"


def joined(a: str, b: str) -> str | None:
    """The set over which values on `a` and `b` meet."""
    if a == "unit":
        return b
    return a if b in ("unit", a) else None


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that two rows have together, aligned right."""
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        return None
    shape = tuple(max(p) for p in pairs)
    return shape if math.prod(shape) <= MOST_NUMBERS else None


@dataclass
class Generator:
    """Grows a program op by op; a choice that does not fit the value at hand is passed over."""

    seed: int
    elem: str = "f64"
    arguments: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def text(self) -> str:
        """The program; its results are the last values."""
        for dom in ("N", "N", "g", "R", "unit"):
            self.values.append(self.argument(dom, self.random.choice(SHAPES)))
        makers: list[Callable[[Value], None]] = [
            self.unary,
            self.binary,
            self.binary,
            self.read,
            self.read,
            self.reduce,
            self.reduce,
            self.softmax,
            self.product,
            self.dot,
            self.layout,
            self.where,
        ]
        for _ in range(self.random.randint(4, 14)):
            self.random.choice(makers)(self.random.choice(self.values[-8:]))
        self.unary(self.values[-1])
        results = [v for v in self.values if v.name.startswith("%v")]
        results = results[-self.random.randint(1, 3) :]
        text = "; ".join(f"{v.name} : {rows(v.dom, v.dims, self.elem)}" for v in results)
        return program(", ".join(self.arguments), text, "\n".join(self.body))

    # ------------------------------------------------------------ values

    def argument(self, dom: str, dims: tuple[int, ...]) -> Value:
        """A new argument, most of them with a gradient."""
        v = Value(f"%a{len(self.arguments)}", dom, dims)
        wanted = " {inter.needs_grad}" if self.random.random() < 0.7 else ""
        self.arguments.append(f"{v.name} : {rows(dom, dims, self.elem)}{wanted}")
        return v

    def emit(self, text: str, dom: str, dims: tuple[int, ...], elem: str = "") -> Value:
        """A new op; its value is there for later ones."""
        v = Value(f"%v{len(self.body)}", dom, dims)
        self.body.append(f"{v.name} = inter.{text} : {rows(dom, dims, elem or self.elem)}")
        return v

    def keep(self, text: str, dom: str, dims: tuple[int, ...]) -> None:
        """`emit` for a value that later ops may read."""
        self.values.append(self.emit(text, dom, dims))

    # ------------------------------------------------------------ ops

    def unary(self, v: Value) -> None:
        fn = self.random.choice(["tanh", "sigmoid", "relu", "neg", "sin", "abs", "leaky_relu"])
        slope = " {slope = 0.2}" if fn == "leaky_relu" else ""
        self.keep(f"{fn} {v.name}{slope}", v.dom, v.dims)

    def binary(self, v: Value) -> None:
        w = self.random.choice(self.values)
        dom, dims = joined(v.dom, w.dom), broadcast(v.dims, w.dims)
        if dom is not None and dims is not None:
            fn = self.random.choice(["add", "mul", "sub", "maximum"])
            self.keep(f"{fn} {v.name}, {w.name}", dom, dims)

    def read(self, v: Value) -> None:
        paths = {"N": ("src", "dst"), "R": ("rel",)}.get(v.dom)
        if paths is not None:
            self.keep(f"at %g[{self.random.choice(paths)}], {v.name}", "g", v.dims)

    def reduce(self, v: Value) -> None:
        kind = self.random.choice(["sum", "mean", "max", "min"])
        if v.dom in ("N", "R"):
            self.keep(f"reduce {kind} {v.name} over %{v.dom} along ()", "unit", v.dims)
        elif v.dom == "g":
            ends = {"dst": "N", "src": "N", "rel": "R", "()": "unit", "(dst, rel)": "g[dst, rel]"}
            along = self.random.choice(list(ends))
            text = f"reduce {kind} {v.name} over %g along {along}"
            if along != "(dst, rel)":
                self.keep(text, ends[along], v.dims)
                return
            m = self.emit(text, ends[along], v.dims)
            self.keep(f"reduce sum {m.name} over %g[dst, rel] along dst", "N", v.dims)

    def softmax(self, v: Value) -> None:
        if v.dom == "g":
            along = self.random.choice(["dst", "src", "(dst, rel)", "()"])
            self.keep(f"softmax {v.name} over %g along {along}", "g", v.dims)

    def product(self, v: Value) -> None:
        """With a matrix for all rows or one a relation; one a head, or the same for all."""
        if v.dom == "unit" or not v.dims:
            return
        lead, size = v.dims[:-1], {"k": v.dims[-1], "f": self.random.choice([1, 2, 4, 9])}
        heads = "abc"[: len(lead)]
        order = self.random.choice(["kf", "fk"])
        own = self.random.random() < 0.4
        dims = (*(lead if own else ()), *(size[c] for c in order))
        if v.dom == "g" and self.random.random() < 0.4:
            w = self.argument("R", dims)
            w = self.emit(f"at %g[rel], {w.name}", "g", dims)
        else:
            w = self.argument("unit", dims)
        spec = f"{heads}k,{heads if own else ''}{order}->{heads}f"
        self.keep(f'contract "{spec}" {v.name}, {w.name}', v.dom, (*lead, size["f"]))

    def dot(self, v: Value) -> None:
        w = self.random.choice(self.values)
        dom = joined(v.dom, w.dom)
        if dom is None:
            return
        if v.dims == w.dims and len(v.dims) == 2:
            self.keep(f'contract "hk,hk->h" {v.name}, {w.name}', dom, v.dims[:1])
        elif len(v.dims) == len(w.dims) == 1 and v.dims[0] * w.dims[0] < MOST_NUMBERS:
            self.keep(f'contract "k,f->kf" {v.name}, {w.name}', dom, v.dims + w.dims)

    def layout(self, v: Value) -> None:
        """An op that moves numbers of the row, or folds them."""
        dims, count = v.dims, math.prod(v.dims)
        flat = self.random.choice([(count,), (1, count), (count, 1)])
        choices = [(f"reshape {v.name}", flat)]
        if len(dims) == 2:
            choices.append((f"transpose {v.name} [1, 0]", dims[::-1]))
        if dims:
            kind, d = self.random.choice(["sum", "max"]), self.random.randrange(len(dims))
            choices.append((f"row_reduce {kind} {v.name} [{d}]", dims[:d] + dims[d + 1 :]))
        if dims and dims[0] > 1:
            bounds = f"{{dim = 0, lo = 1, hi = {dims[0]}}}"
            choices.append((f"slice {v.name} {bounds}", (dims[0] - 1, *dims[1:])))
        if dims and 2 * count <= MOST_NUMBERS:
            twice = (2 * dims[0], *dims[1:])
            choices.append((f"concat {v.name}, {v.name} {{dim = 0}}", twice))
            choices.append((f"broadcast {v.name}", (2, *dims)))
        text, shape = self.random.choice(choices)
        self.keep(text, v.dom, shape)

    def where(self, v: Value) -> None:
        w = self.random.choice(self.values)
        dom = joined(v.dom, w.dom)
        if dom is not None and v.dims == w.dims:
            m = self.emit(f"gt {v.name}, {w.name}", dom, v.dims, "i1")
            self.keep(f"where {m.name}, {v.name}, {w.name}", dom, v.dims)


def random_program(seed: int, elem: str = "f64") -> str:
    """The text of a program."""
    return Generator(seed, elem).text()
