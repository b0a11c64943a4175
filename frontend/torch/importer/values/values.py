"""Makes symbolic values: each once, and integers in a normal form.

So the same column of edge_index reached by two ways is one node, hence one map. `emit/` turns nodes
into `inter` ops. What the IR cannot hold is no node: every constructor raises NoRule for it.

Rows of two sets of one size, such as two slices of a tensor, meet row by row: those of one are read
at the rows of the other by their number.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sympy
from torch import fx

from ..errors import NoRule
from . import slices
from .elements import FLOATS, INTEGERS, Elem, refuse_untaken
from .nodes import Node, Set, broadcast_shapes, is_const

_EXACT = 2**53
"""Every integer up to here is a double."""

_NEUTRAL = {"add": 0, "mul": 1}
"""What changes no integer. Floats keep it: nobody looks for the same float by two ways."""


class Values:
    """Makes nodes, each once. `meet` is called where the rows of two sets meet, and gives the set
    that they meet on. `source` is the node of the FX graph that they are made for."""

    def __init__(self, meet: Callable[[Set, Set], Set]) -> None:
        self.meet = meet
        self.table: dict[Any, Node] = {}
        self.counter = itertools.count()
        self.source: fx.Node | None = None

    def __iter__(self) -> Iterator[Node]:
        return iter(self.table.values())

    def make(
        self,
        op: str,
        args: Sequence[Node],
        set: Set | None,
        shape: Sequence[int],
        elem: Elem,
        **attrs: Any,
    ) -> Node:
        key = (
            op,
            tuple(a.number for a in args),
            None if set is None else set.find().number,
            tuple(shape),
            elem,
            tuple((k, _key(v)) for k, v in sorted(attrs.items())),
        )
        if key not in self.table:
            refuse_untaken(op, [a.elem for a in args], shape, attrs)
            self.table[key] = Node(
                op, tuple(args), set, tuple(shape), elem, attrs, next(self.counter), self.source
            )
        return self.table[key]

    def join(self, nodes: Sequence[Node], over: Set | None = None) -> tuple[list[Node], Set | None]:
        """A row-wise op's operands on the set that they share, together with `over`; that set."""
        homes = [v.home for v in nodes if v.home is not None]
        homes += [] if over is None else [over.find()]
        home = functools.reduce(self.meet, homes) if homes else None
        return [self.on(v, home) for v in nodes], home

    def on(self, v: Node, home: Set | None) -> Node:
        """Rows of a set at those of another, of as many rows: by their number."""
        if v.home is None or home is None or v.home is home.find():
            return v
        number = self.make("iota", [], home.find(), (), "i64", same=v.home)
        return self.at(v, number, home.find(), v.home)

    # -------------------------------------------------------------- leaves

    def const(self, value: bool | int | float, elem: Elem, shape: Sequence[int] = ()) -> Node:
        if elem == "f32":
            value = float(np.float32(value))  # what it is when it is cast to f64
        elif elem in FLOATS:
            value = float(value)
        elif elem == "i1":
            value = bool(value)
        else:
            value = int(value)
        return self.make("const", [], None, shape, elem, value=value)

    def literal(self, data: Any, shape: Sequence[int], elem: Elem) -> Node:
        if elem in INTEGERS and any(abs(int(x)) > _EXACT for x in np.array(data).flat):
            raise NoRule(f"a literal with integers above {_EXACT}, which tables keep as doubles")
        return self.make("table", [], None, shape, elem, data=data)

    def count_up(self, n: int, elem: Elem = "i64") -> Node:
        """0 .. n-1 as one row."""
        return self.literal(tuple(range(n)), (n,), elem)

    # ---------------------------------------------------------- row-wise ops

    def pointwise(self, name: str, args: Sequence[Node], elem: Elem, **params: float) -> Node:
        """A function of the shared vocabulary; `elem` is the result's element type."""
        shape = broadcast_shapes(*(a.shape for a in args))
        if name in _NEUTRAL and elem in INTEGERS:
            for a, b in (args, reversed(args)):
                if is_const(b, _NEUTRAL[name]) and a.shape == shape:
                    return a
        args, home = self.join(args)
        return self.make("pointwise", args, home, shape, elem, name=name, params=params)

    def cast(self, v: Node, elem: Elem) -> Node:
        if v.elem == elem:
            return v
        if v.op == "const":
            return self.const(v.attrs["value"], elem, v.shape)
        return self.make("cast", [v], v.set, v.shape, elem)

    def stop(self, v: Node) -> Node:
        """No gradient flows through the result."""
        if v.elem not in FLOATS or v.op in ("const", "table", "stop"):
            return v
        return self.make("stop", [v], v.set, v.shape, v.elem)

    def reshape(self, v: Node, shape: Sequence[int]) -> Node:
        if v.op == "reshape":
            v = v.args[0]
        shape = tuple(shape)
        if shape == v.shape:
            return v
        assert math.prod(shape) == math.prod(v.shape), (v, v.shape, shape)
        if v.op == "const":
            return self.const(v.attrs["value"], v.elem, shape)
        if v.op in ("stack", "parent") and v.elem in INTEGERS:
            return self._through(v, lambda a: self.reshape(a, shape))
        return self.make("reshape", [v], v.set, shape, v.elem)

    def transpose(self, v: Node, order: Sequence[int]) -> Node:
        if list(order) == sorted(order):
            return v
        shape = [v.shape[i] for i in order]
        return self.make("transpose", [v], v.set, shape, v.elem, order=tuple(order))

    def broadcast(self, v: Node, shape: Sequence[int]) -> Node:
        """Repeats size-1 dimensions; new ones may come on the left."""
        shape = tuple(shape)
        if shape == v.shape:
            return v
        if v.op == "const":
            return self.const(v.attrs["value"], v.elem, shape)
        return self.make("broadcast", [v], v.set, shape, v.elem)

    def repeat(self, v: Node, shape: Sequence[int]) -> Node:
        """Tiles each dimension to a multiple of its size."""
        shape = tuple(shape)
        for i, (a, b) in enumerate(zip(v.shape, shape, strict=True)):
            if a != b and a != 1:
                v = self.concat([v] * (b // a), i)
        return self.broadcast(v, shape)

    def slice(self, v: Node, dim: int, lo: int, hi: int, step: int = 1) -> Node:
        size = v.shape[dim]
        if step == 1 and (lo, hi) == (0, size):
            return v
        positions, shape = range(lo, hi, step), list(v.shape)
        shape[dim] = len(positions)
        if v.op == "const":
            return self.const(v.attrs["value"], v.elem, shape)
        if v.op == "table":
            data = slices.of_literal(v.attrs["data"], dim, positions)
            return self.literal(data, shape, v.elem)
        if step > 1 and size % step == 0 and len(positions) == size // step:  # one of each group
            groups = self.reshape(v, (*v.shape[:dim], size // step, step, *v.shape[dim + 1 :]))
            return self.reshape(self.slice(groups, dim + 1, lo, lo + 1), shape)
        if step == 1:
            pushed = self._pushed_slice(v, dim, lo, hi, shape)
            if pushed is not None:
                return pushed
        return self.make("slice", [v], v.set, shape, v.elem, dim=dim, lo=lo, hi=hi, step=step)

    def _pushed_slice(
        self, v: Node, dim: int, lo: int, hi: int, shape: Sequence[int]
    ) -> Node | None:
        """A choice of columns goes to the source: one map, one node."""
        if v.op in ("stack", "parent"):
            return self._through(v, lambda a: self.slice(self.broadcast(a, v.shape), dim, lo, hi))
        if v.op == "concat" and v.attrs["dim"] == dim:
            start = 0
            for a in v.args:
                if start <= lo and hi <= start + a.shape[dim]:
                    return self.slice(a, dim, lo - start, hi - start)
                start += a.shape[dim]
        if v.op == "slice" and v.attrs["dim"] == dim and v.attrs["step"] == 1:
            start = v.attrs["lo"]
            return self.slice(v.args[0], dim, start + lo, start + hi)
        if v.op == "broadcast" and len(v.args[0].shape) == len(v.shape):
            if v.args[0].shape[dim] == 1:
                return self.broadcast(v.args[0], shape)
            return self.broadcast(self.slice(v.args[0], dim, lo, hi), shape)
        return None

    def _through(self, v: Node, f: Any) -> Node:
        """A row-wise f pushed through stack or parent."""
        args = [f(a) for a in v.args]
        return self.make(v.op, args, v.set, args[0].shape, v.elem, **v.attrs)

    def concat(self, vs: Sequence[Node], dim: int) -> Node:
        vs = self._joined_slices(vs, dim)
        if len(vs) == 1:
            return vs[0]
        shape = list(vs[0].shape)
        shape[dim] = sum(v.shape[dim] for v in vs)
        vs, home = self.join(vs)
        return self.make("concat", vs, home, shape, vs[0].elem, dim=dim)

    def _joined_slices(self, vs: Sequence[Node], dim: int) -> Sequence[Node]:
        """Slices of one value that continue each other become one."""
        out: list[Node] = []
        for source, group in itertools.groupby(vs, lambda v: _sliced(v, dim)):
            if source is None:
                out += group
                continue
            ranges = [range(v.attrs["lo"], v.attrs["hi"], v.attrs["step"]) for v in group]
            for r in slices.joined(ranges):
                out.append(self.slice(source, dim, r.start, r.stop, r.step))
        return out

    def row_reduce(self, kind: str, v: Node, dims: Sequence[int]) -> Node:
        if not dims:
            return v
        shape = [n for i, n in enumerate(v.shape) if i not in dims]
        return self.make(
            "row_reduce", [v], v.set, shape, v.elem, kind=kind, dims=tuple(sorted(dims))
        )

    def contract(self, spec: str, a: Node, b: Node) -> Node:
        """einsum over row dimensions. A letter that occurs once is summed beforehand. A weight
        that is constant on each part of a union becomes one product per part."""
        left, out = spec.split("->")
        p, q = left.split(",")
        a, p = self._summed(a, p, q + out)
        b, q = self._summed(b, q, p + out)
        spec = f"{p},{q}->{out}"
        for i, (x, w) in enumerate(((a, b), (b, a))):
            if w.op == "stack" and all(y.set is None for y in w.args):
                parts = []
                for k, y in enumerate(w.args):
                    xk = self.part(x, w.set, k)
                    parts.append(self.contract(spec, *((xk, y) if i == 0 else (y, xk))))
                return self.stack(w.set, parts)
        sizes = dict(zip(p + q, a.shape + b.shape, strict=True))
        shape = [sizes[c] for c in out]
        operands, home = self.join([a, b])
        return self.make("contract", operands, home, shape, a.elem, spec=spec)

    def _summed(self, v: Node, letters: str, others: str) -> tuple[Node, str]:
        lone = [i for i, c in enumerate(letters) if c not in others]
        kept = "".join(c for c in letters if c in others)
        return self.row_reduce("sum", v, lone), kept

    # ------------------------------------------------------------ across sets

    def at(self, x: Node, index: Node, over: Set, codomain: Set) -> Node:
        """Rows of `codomain` seen from `over` through an integer value there."""
        if x.set is None:
            return x
        if index.op == "iota" and over.find() is codomain.find() and index.home is over.find():
            return x  # each row sees itself
        if x.op == "stack" and index.op == "stack" and x.home is codomain.find():
            split = self._at_parts(x, index, over)
            if split is not None:
                return split
        return self.make("at", [x, index], over, x.shape, x.elem, over=over, codomain=codomain)

    def _at_parts(self, x: Node, index: Node, over: Set) -> Node | None:
        """`cat(xs)[cat(i_k + offset_k)]`, where each offset is the start of a part: part by part.

        An index outside of its own part would read another one in torch; here it is an error.
        """
        union, edges = x.home.origin, over.find().origin
        starts = [
            sum((p.find().expr for p in union.parts[:k]), sympy.Integer(0))
            for k in range(len(union.parts))
        ]
        out = []
        for i, part in zip(index.args, edges.parts, strict=True):
            if i.set is None or i.shape != ():
                return None
            base, offset = offset_of(i)
            if offset not in starts:
                return None
            k = len(starts) - 1 - starts[::-1].index(offset)
            out.append(self.at(x.args[k], base, part.find(), union.parts[k].find()))
        return self.stack(over, out)

    def parent(self, x: Node, subset: Set) -> Node:
        """Rows of a set at those that a filter keeps."""
        if x.set is None:
            return x
        return self.make("parent", [x], subset, x.shape, x.elem)

    def stack(self, union: Set, xs: Sequence[Node]) -> Node:
        """Rows of the parts, one after the other. One constant everywhere stays a constant."""
        if all(x is xs[0] for x in xs) and xs[0].op == "const":
            return xs[0]
        shape = broadcast_shapes(*(x.shape for x in xs))
        return self.make("stack", [self.broadcast(x, shape) for x in xs], union, shape, xs[0].elem)

    def part(self, x: Node, union: Set, k: int) -> Node:
        """The rows of one part of a union."""
        if x.set is None:
            return x
        if x.op == "stack" and x.home is union.find():
            return x.args[k]
        part = union.find().origin.parts[k]
        if x.op == "pointwise":
            args = [self.part(a, union, k) for a in x.args]
            return self.pointwise(x.attrs["name"], args, x.elem, **x.attrs["params"])
        if x.op in ("reshape", "broadcast") and x.args[0].op == "stack":
            y = self.part(x.args[0], union, k)
            return self.reshape(y, x.shape) if x.op == "reshape" else self.broadcast(y, x.shape)
        return self.make("part", [x], part.find(), x.shape, x.elem, union=union, k=k)

    def as_rows(self, x: Node, rows: Set) -> Node:
        """A one-row value whose first dimension becomes the rows of a set of that constant size."""
        return self.make("as_rows", [x], rows, x.shape[1:], x.elem)

    def as_unit(self, x: Node, rows: Set, n: int) -> Node:
        """The inverse of `as_rows`."""
        if x.op == "as_rows":
            return x.args[0]
        x = self.make("as_unit", [x], None, (n, *x.shape), x.elem, rows=rows)
        return x

    def reduce(
        self,
        kind: str,
        x: Node,
        over: Set,
        index: Node | None,
        codomain: Set | None,
        zero_ties: bool = False,
    ) -> Node:
        """Reduces over the rows of `over` into the groups of `index` (None: into one row)."""
        args = [x] if index is None else [x, index]
        args, over = self.join(args, over)
        return self.make(
            "reduce", args, codomain, x.shape, x.elem, kind=kind, over=over, zero_ties=zero_ties
        )

    def softmax(self, x: Node, over: Set, index: Node, codomain: Set) -> Node:
        args, over = self.join([x, index], over)
        return self.make("softmax", args, over, x.shape, x.elem, over=over, codomain=codomain)


def offset_of(index: Node) -> tuple[Node, sympy.Expr]:
    """index = base + offset with a size expression as offset (0: none)."""
    if index.op == "pointwise" and index.attrs["name"] == "add":
        for a, b in ((index.args[0], index.args[1]), (index.args[1], index.args[0])):
            if b.op == "size":
                return a, b.attrs["expr"]
            if is_const(b):
                return a, sympy.Integer(b.attrs["value"])
    return index, sympy.Integer(0)


def _sliced(v: Node, dim: int) -> Node | None:
    """What `v` is a slice of in a dimension."""
    return v.args[0] if v.op == "slice" and v.attrs["dim"] == dim else None


def _key(x: Any) -> Any:
    if isinstance(x, Node):
        return ("node", x.number)
    if isinstance(x, Set):
        return ("set", x.find().number)
    if isinstance(x, tuple | list):
        return tuple(_key(y) for y in x)
    if isinstance(x, dict):
        return tuple((k, _key(v)) for k, v in sorted(x.items()))
    return (type(x).__name__, repr(x))
