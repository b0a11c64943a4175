"""What inter means, in NumPy (float64, int64, bool), on xDSL's interpreter framework.

This is the oracle. Ops that make sets, and rows that sets depend on, have a fast meaning besides,
that of runtime/sets/{set_steps,row_steps}.py: tests/runtime/test_structure_meaning.py compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    impl,
    register_impls,
)
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Attribute, Operation, SSAValue

from ...runtime.carrier import Carrier
from ..inter import ranks, shapes, structure, values
from ..inter import reduce as reduction
from ..inter.pointwise import POINTWISE_OPS, PointwiseOp
from ..inter.sets import SetEnv
from ..inter.types import (
    UNIT,
    Dom,
    RowsType,
    SetType,
    is_bool,
    row_text,
    rows,
    set_name,
    set_type,
)
from . import philox
from .arrays import aligned, as_elements, dtype_of, last_rows, scatter, spread
from .world import Array, Index, SetVal, World, check_map

Args = tuple[Any, ...]
"""What an op gets: sets, and arrays with the row axis first."""


class InterFunctions(InterpreterFunctions):
    """The meaning of every op of the dialect. A program for ranks is one over the rows of all, or
    with a `carrier` for its messages that of one rank."""

    def __init__(self, carrier: Carrier | None = None) -> None:
        self._carrier = carrier
        self._envs: dict[Operation, SetEnv] = {}

    def world(self, interp: Interpreter, op: Operation) -> World:
        """The sets of the function around `op`."""
        func = op.parent_op()
        if not isinstance(func, FuncOp):
            raise ValueError(f"{op.name} is not in a function")
        if func not in self._envs:
            self._envs[func] = SetEnv.of(func)
        env = self._envs[func]

        def lookup(name: str) -> SetVal:
            return cast(SetVal, interp.get_values([env.value(name)])[0])

        return World(env, lookup)

    def operand(self, w: World, v: SSAValue, x: Array, dom: Dom) -> Array:
        """An operand, one row per stored row of `dom`."""
        what = f"%{v.name_hint}" if v.name_hint else "an operand"
        return w.read(x, rows(v).dom, dom, what)

    # ------------------------------------------------------------ structure

    @impl(structure.FilterOp)
    def filter(self, interp: Interpreter, op: structure.FilterOp, args: Args) -> PythonValues:
        s: SetVal = args[0]
        w, name = self.world(interp, op), set_name(op.set)
        if op.mask is None:
            flags = w.step(name, "src") != w.step(name, "dst")
        else:
            flags = self.operand(w, op.mask, args[1], Dom(name))
        keep = np.flatnonzero(flags)
        maps = {k: m[keep] for k, m in s.maps.items() if k in op.set_type.map_dict()}
        return (SetVal(len(keep), maps | {structure.PARENT: keep}),)

    @impl(structure.IntervalOp)
    def interval(
        self, interp: Interpreter, op: structure.IntervalOp, args: tuple[Any, ...]
    ) -> PythonValues:
        s: SetVal = args[0]
        keep = np.arange(s.n)[int(args[1][0]) : int(args[2][0])]
        maps = {k: m[keep] for k, m in s.maps.items() if k in op.set_type.map_dict()}
        return (SetVal(len(keep), maps | {structure.PARENT: keep}),)

    @impl(structure.LoopsOp)
    def loops(self, interp: Interpreter, op: structure.LoopsOp, args: Args) -> PythonValues:
        w, name = self.world(interp, op), set_name(op.set)
        src, dst = w.step(name, "src"), w.step(name, "dst")
        n = w.size(w.env.codomain(name, "src"))
        maps = {"src": np.arange(n), "dst": np.arange(n)}
        if op.remaining is not None:
            maps[structure.OLD] = last_rows(np.where(src == dst, src, -1), n)
        return (SetVal(n, maps),)

    @impl(structure.UnionOp)
    def union(self, interp: Interpreter, op: structure.UnionOp, args: Args) -> PythonValues:
        w, parts = self.world(interp, op), args
        ends = op.joined_ends()
        maps: dict[str, Array] = {}
        for k in op.set_type.map_dict():
            each: list[Array] = [a.maps[k] for a in parts]
            if k in ends:
                sizes = [w.size(p) for p in w.env.info(ends[k]).type.part_names]
                first = [sum(sizes[:i]) for i in op.places(w.env, k)]
                each = [np.where(m < 0, m, m + n) for m, n in zip(each, first, strict=True)]
            maps[k] = np.concatenate(each)
        return (SetVal(sum(a.n for a in parts), maps),)

    @impl(structure.AttachOp)
    def attach(self, interp: Interpreter, op: structure.AttachOp, args: Args) -> PythonValues:
        w, s, t = self.world(interp, op), set_name(op.set), op.set_type
        old: SetVal = args[0]
        maps = {k: m for k, m in old.maps.items() if k in t.map_dict()}
        maps[structure.PARENT] = np.arange(old.n)
        new = op.new_maps()
        for (k, m), x, v in zip(new.items(), args[1:], op.xs, strict=True):
            index = self.operand(w, v, x, Dom(s))
            n = w.size(m.codomain)
            what = f"map {k} of set {t.label}"
            check_map(what, index, n, "partial" in m.flags, m.codomain)
            has = index[index >= 0]
            if "mono" in m.flags and len(np.unique(has)) != len(has):
                raise ValueError(f"{what} is declared mono, but two rows have the same image")
            if "onto" in m.flags and len(np.unique(has)) != n:
                raise ValueError(f"{what} is declared onto, but misses rows of {m.codomain}")
            maps[k] = index
        made = SetVal(old.n, maps)
        check_equations(World(w.env, lambda n: made if n == t.label else w.lookup(n)), t)
        return (made,)

    @impl(structure.RangeOp)
    def range(self, interp: Interpreter, op: structure.RangeOp, args: Args) -> PythonValues:
        return (SetVal(op.size.value.data),)

    @impl(structure.SizedOp)
    def sized(self, interp: Interpreter, op: structure.SizedOp, args: Args) -> PythonValues:
        n = int(args[0][0])
        if n < 0:
            raise ValueError(f"set {op.set_type.label} would have {n} rows")
        return (SetVal(n),)

    # ------------------------------------------------------------ values

    @impl(values.ConstOp)
    def const(self, interp: Interpreter, op: values.ConstOp, args: Args) -> PythonValues:
        return (np.full((1, *op.type.dims), op.number, dtype_of(op.type.elem)),)

    @impl(values.TableOp)
    def table(self, interp: Interpreter, op: values.TableOp, args: Args) -> PythonValues:
        return (op.numbers()[None],)

    @impl(values.AtOp)
    def at(self, interp: Interpreter, op: values.AtOp, args: Args) -> PythonValues:
        w, d, path = self.world(interp, op), op.type.dom, op.path.data
        x = self.operand(w, op.x, args[1], rows(op.x).dom)
        if op.otherwise is None:
            return (x[w.through(d, path, rows(op.x).dom)],)
        other = self.operand(w, op.otherwise, args[2], d)
        seen = w.path(d.set, path)
        if not np.any(seen >= 0):
            return (other,)
        if rows(op.x).dom.set == UNIT:
            value = x[np.zeros_like(seen)]
        else:
            value = x[w.stored(rows(op.x).dom)[0][np.maximum(seen, 0)]]
        return (np.where(spread(seen >= 0, other), value, other),)

    @impl(values.IndexOp)
    def index(self, interp: Interpreter, op: values.IndexOp, args: Args) -> PythonValues:
        w, s, path = self.world(interp, op), set_name(op.set), op.path.data
        if op.type.dom == Dom(s):
            return (w.path(s, path),)
        return (w.through(op.type.dom, path, Dom(w.env.codomain(s, path))),)

    @impl(values.IotaOp)
    def iota(self, interp: Interpreter, op: values.IotaOp, args: Args) -> PythonValues:
        s: SetVal = args[0]
        return (np.arange(s.n),)

    @impl(values.SizeOp)
    def size(self, interp: Interpreter, op: values.SizeOp, args: Args) -> PythonValues:
        return (np.array([args[0].n], np.int64),)

    @impl(values.StackOp)
    def stack(self, interp: Interpreter, op: values.StackOp, args: Args) -> PythonValues:
        w, parts = self.world(interp, op), set_type(op.set).part_names
        each = zip(op.xs, args[1:], parts, strict=True)
        return (np.concatenate([self.operand(w, v, x, Dom(p)) for v, x, p in each]),)

    @impl(values.PartOp)
    def part(self, interp: Interpreter, op: values.PartOp, args: Args) -> PythonValues:
        w, t, i = self.world(interp, op), set_type(op.set), op.index.data
        x = self.operand(w, op.x, args[1], Dom(t.label))
        sizes = [w.size(p) for p in t.part_names]
        if sum(sizes) != len(x):
            raise ValueError(f"the parts of {t.label} have {sizes} rows, the set has {len(x)}")
        low = sum(sizes[:i])
        return (x[low : low + sizes[i]],)

    @impl(values.AsRowsOp)
    def as_rows(self, interp: Interpreter, op: values.AsRowsOp, args: Args) -> PythonValues:
        x: Array = args[1][0]
        if len(x) != args[0].n:
            raise ValueError(
                f"{len(x)} rows of numbers for set {set_name(op.set)}, which has {args[0].n} rows"
            )
        return (x,)

    @impl(values.AsUnitOp)
    def as_unit(self, interp: Interpreter, op: values.AsUnitOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[1], Dom(set_name(op.set)))
        if len(x) != op.type.dims[0]:
            raise ValueError(
                f"set {set_name(op.set)} has {len(x)} rows, the program needs {op.type.dims[0]}"
            )
        return (x[None],)

    @impl(values.CastOp)
    def cast(self, interp: Interpreter, op: values.CastOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[0], op.type.dom)
        if is_bool(op.type.elem):
            return (x != 0,)
        with np.errstate(invalid="ignore"):
            return (as_elements(x, op.type.elem),)

    @impl(values.StopOp)
    def stop(self, interp: Interpreter, op: values.StopOp, args: Args) -> PythonValues:
        return (self.operand(self.world(interp, op), op.x, args[0], op.type.dom),)

    # ------------------------------------------------------------ row dimensions

    @impl(shapes.ContractOp)
    def contract(self, interp: Interpreter, op: shapes.ContractOp, args: Args) -> PythonValues:
        w, d = self.world(interp, op), op.type.dom
        left, right, out = op.letters()
        free = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in left + right)
        a, b = (self.operand(w, v, x, d) for v, x in zip(op.operands, args, strict=True))
        with np.errstate(all="ignore"):
            y: Array = np.einsum(f"{free}{left},{free}{right}->{free}{out}", a, b)
        return (y,)

    @impl(shapes.ReshapeOp)
    def reshape(self, interp: Interpreter, op: shapes.ReshapeOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[0], op.type.dom)
        return (x.reshape(x.shape[0], *op.type.dims),)

    @impl(shapes.BroadcastOp)
    def broadcast(self, interp: Interpreter, op: shapes.BroadcastOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[0], op.type.dom)
        lead = (1,) * (len(op.type.dims) - (x.ndim - 1))
        x = x.reshape(x.shape[0], *lead, *x.shape[1:])
        return (np.broadcast_to(x, (x.shape[0], *op.type.dims)),)

    @impl(shapes.TransposeOp)
    def transpose(self, interp: Interpreter, op: shapes.TransposeOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[0], op.type.dom)
        return (x.transpose(0, *(i + 1 for i in op.order)),)

    @impl(shapes.SliceOp)
    def slice(self, interp: Interpreter, op: shapes.SliceOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[0], op.type.dom)
        dim, lo, hi, step = op.bounds
        return (np.take(x, np.arange(lo, hi, step), axis=dim + 1),)

    @impl(shapes.ConcatOp)
    def concat(self, interp: Interpreter, op: shapes.ConcatOp, args: Args) -> PythonValues:
        w, d = self.world(interp, op), op.type.dom
        xs = [self.operand(w, v, x, d) for v, x in zip(op.xs, args, strict=True)]
        return (np.concatenate(xs, op.axis + 1),)

    @impl(shapes.RowReduceOp)
    def row_reduce(self, interp: Interpreter, op: shapes.RowReduceOp, args: Args) -> PythonValues:
        x = self.operand(self.world(interp, op), op.x, args[0], op.type.dom)
        axes = tuple(i + 1 for i in op.axes)
        kinds = {"sum": np.sum, "max": np.max, "min": np.min}
        with np.errstate(all="ignore"):
            return (np.asarray(kinds[op.kind.data](x, axis=axes)),)

    # ------------------------------------------------------------ rows of a set

    @impl(reduction.ReduceOp)
    def reduce(self, interp: Interpreter, op: reduction.ReduceOp, args: Args) -> PythonValues:
        w, kind = self.world(interp, op), op.kind.data
        x = self.operand(w, op.x, args[0], op.over)
        group, n = w.groups(op.over, op.along_keys)
        if op.otherwise is None:
            with np.errstate(all="ignore"):
                return (scatter(kind, x, group, n),)
        other = self.operand(w, op.otherwise, args[2], op.type.dom)
        last = last_rows(group, n)
        if len(x) == 0:
            return (other,)
        return (np.where(spread(last >= 0, other), x[np.maximum(last, 0)], other),)

    @impl(reduction.SoftmaxOp)
    def softmax(self, interp: Interpreter, op: reduction.SoftmaxOp, args: Args) -> PythonValues:
        w, d = self.world(interp, op), op.type.dom
        x = self.operand(w, op.x, args[0], op.over)
        group, n = w.groups(op.over, op.along_keys)
        with np.errstate(all="ignore"):
            e = np.exp(x - scatter("max", x, group, n)[group])
            p = e / scatter("sum", e, group, n)[group]
        if d == op.over:
            return (p,)
        out = np.zeros((w.count(d), *p.shape[1:]))
        out[w.index(op.over, d)] = p
        return (out,)

    @impl(reduction.CountOp)
    def count(self, interp: Interpreter, op: reduction.CountOp, args: Args) -> PythonValues:
        group, n = self.world(interp, op).groups(op.over, op.along_keys)
        counts = np.bincount(group[group >= 0], minlength=n)
        return (counts.astype(dtype_of(op.type.elem)),)

    @impl(reduction.DropoutOp)
    def dropout(self, interp: Interpreter, op: reduction.DropoutOp, args: Args) -> PythonValues:
        w, d = self.world(interp, op), op.type.dom
        x = self.operand(w, op.x, args[0], d)
        given = dict(zip(op.operands, args, strict=True))
        row, column = (
            None if v is None else self.operand(w, v, given[v], d) for v in (op.numbers, op.column)
        )
        row = np.arange(len(x)) if row is None else row
        key = int(args[1][0])
        return (philox.dropout(x, key, op.site_number, op.probability, row, column),)

    # ------------------------------------------------------------ rows of several ranks

    @impl(ranks.MoveOp)
    def move(self, interp: Interpreter, op: ranks.MoveOp, args: Args) -> PythonValues:
        w, source, target = self.world(interp, op), set_name(op.source), set_name(op.target)
        x = self.operand(w, op.x, args[0], Dom(source))
        y = np.empty((w.size(target), *x.shape[1:]), x.dtype)
        if self._carrier is not None:
            for name in (source, target):
                self._carrier.know(name, w.step(name, ranks.PEER))
            self._carrier.start(op.plan, np.ascontiguousarray(x), y)
            self._carrier.wait(op.plan)
            return (y,)
        sent, received = messages(w, source), messages(w, target)[:, ::-1]
        order, places = (np.lexsort(m.T[::-1]) for m in (sent, received))
        if not np.array_equal(sent[order], received[places]):
            raise ValueError(f"the messages of {source} are not those that {target} waits for")
        y[places] = x[order]
        return (y,)

    @impl(ranks.AllReduceOp)
    def all_reduce(self, interp: Interpreter, op: ranks.AllReduceOp, args: Args) -> PythonValues:
        x = args[0].copy()
        if self._carrier is not None:
            self._carrier.all_reduce(op.kind.data, [x])
        return (x,)


def messages(w: World, name: str) -> Index:
    """The ranks at both ends of each message: the one that has the row, and its peer."""
    own = w.path(name, f"{ranks.RANK}.{ranks.PEER}")
    return np.stack([own, w.path(name, ranks.PEER)], 1)


PointwiseImpl = Callable[[InterFunctions, Interpreter, PointwiseOp, Args], PythonValues]


def _pointwise(cls: type[PointwiseOp]) -> PointwiseImpl:
    @impl(cls)
    def run_pointwise(
        self: InterFunctions, interp: Interpreter, op: PointwiseOp, args: Args
    ) -> PythonValues:
        w, d = self.world(interp, op), op.type.dom
        xs = [self.operand(w, v, x, d) for v, x in zip(op.xs, args, strict=True)]
        with np.errstate(all="ignore"):
            y = op.SPEC.function(*aligned(xs), **op.parameters())
        return (as_elements(y, op.type.elem),)

    return run_pointwise


for _name, _cls in POINTWISE_OPS.items():
    setattr(InterFunctions, f"pointwise_{_name}", _pointwise(_cls))
register_impls(InterFunctions)


# ---------------------------------------------------------------- running a function


def check_equations(w: World, t: SetType) -> None:
    """Raises ValueError where a set does not obey the equations of its type."""
    for a, b in t.equations:
        if bad := np.flatnonzero(w.path(t.label, a) != w.path(t.label, b)).tolist():
            raise ValueError(f"set {t.label}: {a} and {b} differ at row {bad[0]}")


def as_argument(t: Attribute, value: Any, what: str) -> Any:
    """A function argument in the interpreter's types. Raises ValueError for a wrong row shape."""
    if isinstance(t, SetType):
        if not isinstance(value, SetVal):
            raise ValueError(f"{what} is a set: give a SetVal, not {type(value).__name__}")
        return SetVal(value.n, {k: np.asarray(m, np.int64) for k, m in value.maps.items()})
    if not isinstance(t, RowsType):
        return value
    x = np.asarray(value, dtype_of(t.elem))
    if x.shape[1:] != t.dims or x.ndim == 0:
        raise ValueError(
            f"{what} has shape {x.shape}: a leading row axis and rows of {row_text(t.dims)} are "
            "needed"
        )
    return x


def check_arguments(func: FuncOp, args: Sequence[Any]) -> None:
    """Raises IndexError or ValueError where sets and rows of a call do not agree. What lives on a
    set that the body makes is checked when it is read."""
    block, env = func.body.block, SetEnv.of(func)
    given = {
        a.type.label: x
        for a, x in zip(block.args, args, strict=True)
        if isinstance(a.type, SetType)
    }
    w = World(env, lambda name: given[name])
    for name, info in env.sets.items():
        if name in given and all(m.codomain in given for m in info.maps.values()):
            for label in info.maps:
                w.step(name, label)
            check_parts(w, info.type, given)
    for a, x in zip(block.args, args, strict=True):
        if isinstance(a.type, RowsType) and _known(env, a.type.dom, given):
            w.read(x, a.type.dom, a.type.dom, f"argument {a.name_hint or a.index}")


def check_parts(w: World, t: SetType, given: dict[str, SetVal]) -> None:
    """Raises ValueError where a union has not as many rows as its parts together."""
    if t.parts.data and all(p in given for p in t.part_names):
        sizes = [given[p].n for p in t.part_names]
        if sum(sizes) != given[t.label].n:
            raise ValueError(f"set {t.label} has {given[t.label].n} rows, its parts {sizes}")


def _known(env: SetEnv, d: Dom, given: dict[str, SetVal]) -> bool:
    if d.set == UNIT:
        return True
    names = {d.set}
    for k in d.keys:
        steps = k.split(".")
        names |= {env.codomain(d.set, ".".join(steps[: i + 1])) for i in range(len(steps))}
    return names <= set(given)


def interpreter(module: ModuleOp, carrier: Carrier | None = None) -> Interpreter:
    """An interpreter of inter and func ops for the functions of a module."""
    it = Interpreter(module)
    it.register_implementations(FuncFunctions())
    it.register_implementations(InterFunctions(carrier))
    return it


def run(module: ModuleOp, name: str, *args: Any, carrier: Carrier | None = None) -> tuple[Any, ...]:
    """Calls a function. Sets are `SetVal`s, rows are arrays with a leading row axis (unit: 1); the
    results are float64, int64 or bool. With a `carrier` of messages the rows are those of one rank
    of several. Raises ValueError or IndexError for wrong arguments."""
    it = interpreter(module, carrier)
    func = it.get_op_for_symbol(name)
    if not isinstance(func, FuncOp):
        raise ValueError(f"@{name} is no function")
    block = func.body.block
    if len(args) != len(block.args):
        raise ValueError(f"@{name} takes {len(block.args)} arguments, got {len(args)}")
    whole = [
        as_argument(a.type, x, f"argument {a.name_hint or a.index} of @{name}")
        for a, x in zip(block.args, args, strict=True)
    ]
    check_arguments(func, whole)
    return it.call_op(name, tuple(whole))
