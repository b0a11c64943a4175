"""What intra means, in NumPy (float64, int64, bool), on xDSL's interpreter framework.

A phase runs as it reads: nests are Python loops over rows, buffers are arrays with a leading row
axis, and an index is an int that is checked against its buffer or table at every use. Schedules
change nothing. Memory that nobody wrote holds nan (the least int64), and so does what is not in use
at a step by the plan of memory, so a wrong one is seen in the results.
What ranks exchange goes through a carrier; a phase that is given none is alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Attribute, SSAValue

from ...runtime.carrier import Alone, Carrier
from ..inter.types import is_bool
from ..intra import (
    arithmetic,
    bindings,
    exchange,
    indices,
    loops,
    memory,
    peers,
    products,
    publication,
    remote,
    shapes,
)
from ..intra.bindings import Lives
from ..intra.steps import Step, number_of
from ..intra.syntax import buffer_dims, element, row_dims
from ..pointwise import POINTWISE
from ..pointwise.folds import FOLDS
from . import philox, tables
from .arrays import as_elements, dtype_of
from .world import Array, World


def unwritten(count: int, dims: Sequence[int], elem: Attribute) -> Array:
    """Memory that nobody wrote."""
    out = np.zeros((count, *dims), dtype_of(elem))
    poison(out)
    return out


def poison(array: Array) -> None:
    """Make the numbers those of memory that nobody wrote."""
    if array.dtype == np.float64:
        array[...] = np.nan
    elif array.dtype == np.int64:
        array[...] = np.iinfo(np.int64).min
    else:
        array[...] = False


def start_of(kind: str, t: Attribute) -> Array:
    """A row that reducing begins with."""
    value, dtype = FOLDS[kind].start, dtype_of(element(t))
    if dtype is not np.float64 and np.isinf(value):
        value = np.iinfo(np.int64).max if value > 0 else np.iinfo(np.int64).min
    return np.full(row_dims(t), value, dtype)


def reduced(kind: str, so_far: Array, x: Array) -> Array:
    """One more row of a reduction."""
    function = FOLDS[kind].function
    with np.errstate(all="ignore"):
        return x if function is None else np.asarray(POINTWISE[function].function(so_far, x))


def checked(row: int, count: int, what: str) -> int:
    """An index into `count` rows. Raises IndexError where it is none."""
    if not 0 <= row < count:
        raise IndexError(f"{what}: row {row} of {count}")
    return row


@dataclass
class Memory:
    """The buffers of one run of a phase."""

    inputs: Mapping[str, Array]
    outputs: dict[str, Array] = field(default_factory=dict[str, Array])
    lives: list[tuple[Array, Lives]] = field(default_factory=list[tuple[Array, Lives]])

    def reuse(self, step: Step) -> None:
        """Forget what is not in use from before a step to it: others may lie there."""
        now = number_of(step)
        for array, (first, last) in self.lives:
            if not first < now <= last:
                poison(array)


class IntraFunctions(InterpreterFunctions):
    """The meaning of every op of the dialect, on the sets of `world`; `carrier`
    carries what it exchanges with other ranks."""

    def __init__(self, world: World, memory_: Memory, carrier: Carrier) -> None:
        self.world = world
        self.memory = memory_
        self.carrier = carrier

    # ------------------------------------------------------------ host level

    @impl(bindings.SizeOp)
    def size(self, interp: Interpreter, op: bindings.SizeOp, args: Any) -> PythonValues:
        return (tables.size(self.world, op.domain),)

    @impl(bindings.PiecesOp)
    def pieces(self, interp: Interpreter, op: bindings.PiecesOp, args: Any) -> PythonValues:
        return (op.count.data,)

    @impl(bindings.SumSizesOp)
    def sum_sizes(self, interp: Interpreter, op: bindings.SumSizesOp, args: Any) -> PythonValues:
        return (args[0] + args[1],)

    @impl(bindings.InputOp)
    def input(self, interp: Interpreter, op: bindings.InputOp, args: Any) -> PythonValues:
        name = op.buffer.data
        if name not in self.memory.inputs:
            raise KeyError(f"the phase reads {name!r}: no earlier phase or caller gives it")
        x = np.asarray(self.memory.inputs[name], dtype_of(element(op.result.type)))
        want = (tables.size(self.world, op.domain), *buffer_dims(op.result))
        if x.shape != want:
            raise ValueError(f"buffer {name!r} has shape {x.shape}, the phase needs {want}")
        if op.gives is not None:
            x = x.copy()  # the caller's own stays, to be compared with
            self.memory.outputs[op.gives.data] = x
        return (x,)

    @impl(bindings.OutputOp)
    def output(self, interp: Interpreter, op: bindings.OutputOp, args: Any) -> PythonValues:
        self.memory.outputs[op.buffer.data] = out = self.planned(op)
        return (out,)

    @impl(bindings.AllocOp)
    def alloc(self, interp: Interpreter, op: bindings.AllocOp, args: Any) -> PythonValues:
        return (self.planned(op),)

    def planned(self, op: bindings.Living) -> Array:
        """Rows that are kept for as long as they are planned to be in use."""
        out = self.fresh(op.result, op.domain)
        if op.lives is not None:
            self.memory.lives.append((out, op.lives))
        return out

    def fresh(self, v: SSAValue, domain: bindings.DomainAttr | None) -> Array:
        return unwritten(tables.size(self.world, domain), buffer_dims(v), element(v.type))

    @impl(bindings.TableOp)
    def literal(self, interp: Interpreter, op: bindings.TableOp, args: Any) -> PythonValues:
        numbers = [x.value.data for x in op.value]
        x = np.array(numbers, dtype_of(element(op.result.type)))
        return (x.reshape(1, *buffer_dims(op.result)),)

    @impl(bindings.PartOp)
    def part(self, interp: Interpreter, op: bindings.PartOp, args: Any) -> PythonValues:
        buffer, *offset = args
        return (buffer[sum(offset) :],)

    @impl(bindings.ViewOp)
    def view(self, interp: Interpreter, op: bindings.ViewOp, args: Any) -> PythonValues:
        x, dims = args[0], buffer_dims(op.result)
        count = tables.size(self.world, op.domain) if op.pieces is None else op.pieces.data
        if x.size != count * int(np.prod(dims)):
            raise ValueError(
                f"{len(x)} rows of {x.shape[1:]} are no {count} rows of {dims}: the set "
                f"{bindings.domain_text(op.domain)} has another size than the program says"
            )
        return (x.reshape(count, *dims),)

    @impl(bindings.ColumnsOp)
    def columns(self, interp: Interpreter, op: bindings.ColumnsOp, args: Any) -> PythonValues:
        x, dims, first = args[0], buffer_dims(op.result), op.first.data
        whole = x.reshape(len(x), math.prod(x.shape[1:]))
        found = whole[:, first : first + math.prod(dims)]
        found.shape = (len(x), *dims)  # the same memory, or an error
        return (found,)

    # ------------------------------------------------------------ exchange

    @impl(exchange.MoveStartOp)
    def move_start(self, interp: Interpreter, op: exchange.MoveStartOp, args: Any) -> PythonValues:
        sent, received = args
        self.memory.reuse(op)
        poison(received)
        self.carrier.start(op.plan.data, sent, received)
        return ()

    @impl(exchange.MoveWaitOp)
    def move_wait(self, interp: Interpreter, op: exchange.MoveWaitOp, args: Any) -> PythonValues:
        self.memory.reuse(op)
        self.carrier.wait(op.plan.data)
        return ()

    @impl(exchange.AllReduceOp)
    def all_reduce(self, interp: Interpreter, op: exchange.AllReduceOp, args: Any) -> PythonValues:
        self.carrier.all_reduce(op.kind.data, args)
        return ()

    # ------------------------------------------------------------ rows that others read

    @impl(peers.PeerRowsOp)
    def peer_rows(self, interp: Interpreter, op: peers.PeerRowsOp, args: Any) -> PythonValues:
        return (self.fresh(op.result, op.domain),)

    @impl(publication.PublishOp)
    def publish(self, interp: Interpreter, op: publication.PublishOp, args: Any) -> PythonValues:
        """What is published stays as it is, so that others may as well be given copies."""
        *through, rows, others = args
        self.carrier.start(op.plan.data, rows[through[0]] if through else rows, others)
        self.carrier.wait(op.plan.data)
        return ()

    @impl(publication.RetireOp)
    def retire(self, interp: Interpreter, op: publication.RetireOp, args: Any) -> PythonValues:
        poison(args[1])
        return ()

    @impl(peers.PeerTotalsOp)
    def peer_totals(self, interp: Interpreter, op: peers.PeerTotalsOp, args: Any) -> PythonValues:
        out = np.empty_like(args[0])
        poison(out)
        return (out,)

    @impl(publication.PublishAllOp)
    def publish_all(
        self, interp: Interpreter, op: publication.PublishAllOp, args: Any
    ) -> PythonValues:
        """What is published stays as it is, so that others may as well be given their totals."""
        self.memory.reuse(op)
        by_kind: dict[str, list[Array]] = {}
        for (total, own), x in zip(op.shown().items(), args, strict=True):
            x[...] = interp.get_values([own])[0]
            assert isinstance(total.owner, peers.PeerTotalsOp)
            by_kind.setdefault(total.owner.kind.data, []).append(x)
        for kind, arrays in by_kind.items():
            self.carrier.all_reduce(kind, arrays)
        return ()

    @impl(publication.RetireAllOp)
    def retire_all(
        self, interp: Interpreter, op: publication.RetireAllOp, args: Any
    ) -> PythonValues:
        for x in args:
            poison(x)
        return ()

    @impl(remote.IssueOp)
    def issue(self, interp: Interpreter, op: remote.IssueOp, args: Any) -> PythonValues:
        rows, row = args
        return (rows[checked(row, len(rows), "a row that is issued")].copy(),)

    @impl(remote.AwaitOp)
    def await_(self, interp: Interpreter, op: remote.AwaitOp, args: Any) -> PythonValues:
        return args

    # ------------------------------------------------------------ loops

    @impl(loops.TraverseOp)
    def traverse(self, interp: Interpreter, op: loops.TraverseOp, args: Any) -> PythonValues:
        n = args[0]
        self.memory.reuse(op)
        totals = [t for t in op.body.walk() if isinstance(t, memory.TotalOp | products.OuterOp)]
        for t in totals:
            kind = t.kind.data if isinstance(t, memory.TotalOp) else "sum"
            row = interp.get_values([t.buffer])[0]
            if isinstance(t, products.OuterOp) and t.at:
                row[...] = 0
                continue
            row[0] = start_of(kind if n or kind == "mul" else "sum", t.buffer.type)[()]
        for i in range(n):
            interp.run_ssacfg_region(op.body, (i,), "row")
        return ()

    @impl(loops.SegmentOp)
    def segment(self, interp: Interpreter, op: loops.SegmentOp, args: Any) -> PythonValues:
        offsets, row = args
        row = checked(row, len(offsets) - 1, "a segment")
        kinds = [k.data for k in op.kinds]
        begin, end = int(offsets[row]), int(offsets[row + 1])
        empty = [
            start_of(k if k == "mul" else "sum", r.type)
            for k, r in zip(kinds, op.results, strict=True)
        ]
        if begin == end:
            return tuple(empty)
        out = [start_of(k, r.type) for k, r in zip(kinds, op.results, strict=True)]
        for p in range(begin, end):
            values = interp.run_ssacfg_region(op.body, (p,), "member")
            out = [reduced(k, a, x) for k, a, x in zip(kinds, out, values, strict=True)]
        return tuple(out)

    @impl(loops.StageOp)
    def stage(self, interp: Interpreter, op: loops.StageOp, args: Any) -> PythonValues:
        return interp.run_ssacfg_region(op.body, (), "stage")

    @impl_terminator(loops.YieldOp)
    def yield_(self, interp: Interpreter, op: loops.YieldOp, args: Any):
        return ReturnedValues(args), ()

    # ------------------------------------------------------------ indices

    @impl(indices.LookupOp)
    def lookup(self, interp: Interpreter, op: indices.LookupOp, args: Any) -> PythonValues:
        table, row = args
        return (int(table[checked(row, len(table), "a look-up")]),)

    @impl(indices.LengthOp)
    def length(self, interp: Interpreter, op: indices.LengthOp, args: Any) -> PythonValues:
        offsets, row = args
        row = checked(row, len(offsets) - 1, "the length of a group")
        return (np.int64(offsets[row + 1] - offsets[row]),)

    @impl(indices.FirstOp)
    def first(self, interp: Interpreter, op: indices.FirstOp, args: Any) -> PythonValues:
        return (0,)

    @impl(indices.PositionOp)
    def position(self, interp: Interpreter, op: indices.PositionOp, args: Any) -> PythonValues:
        return (np.int64(args[0]),)

    @impl(indices.CountOp)
    def count(self, interp: Interpreter, op: indices.CountOp, args: Any) -> PythonValues:
        return (np.int64(args[0]),)

    # ------------------------------------------------------------ memory

    @impl(memory.LoadOp)
    def load(self, interp: Interpreter, op: memory.LoadOp, args: Any) -> PythonValues:
        buffer, row = args[:2]
        if op.otherwise is not None and row == -1:
            return (args[2],)
        return (buffer[checked(row, len(buffer), "a load")].copy(),)

    @impl(memory.StoreOp)
    def store(self, interp: Interpreter, op: memory.StoreOp, args: Any) -> PythonValues:
        value, buffer, row = args
        buffer[checked(row, len(buffer), "a store")] = value
        return ()

    @impl(memory.TotalOp)
    def total(self, interp: Interpreter, op: memory.TotalOp, args: Any) -> PythonValues:
        value, buffer = args
        buffer[0] = reduced(op.kind.data, buffer[0], value)
        return ()

    # ------------------------------------------------------------ arithmetic

    @impl(arithmetic.ConstOp)
    def const(self, interp: Interpreter, op: arithmetic.ConstOp, args: Any) -> PythonValues:
        t, v = op.result.type, op.value
        return (np.full(row_dims(t), v.value.data, dtype_of(element(t))),)

    @impl(arithmetic.ApplyOp)
    def apply(self, interp: Interpreter, op: arithmetic.ApplyOp, args: Any) -> PythonValues:
        with np.errstate(all="ignore"):
            y = POINTWISE[op.fn.data].function(*args, **op.parameters())
        return (as_elements(y, element(op.result.type)),)

    @impl(arithmetic.CastOp)
    def cast(self, interp: Interpreter, op: arithmetic.CastOp, args: Any) -> PythonValues:
        x, elem = np.asarray(args[0]), element(op.result.type)
        if is_bool(elem):
            return (x != 0,)
        with np.errstate(invalid="ignore"):
            return (as_elements(x, elem),)

    @impl(arithmetic.FoldOp)
    def fold(self, interp: Interpreter, op: arithmetic.FoldOp, args: Any) -> PythonValues:
        kinds = {"sum": np.sum, "max": np.max, "min": np.min}
        dims = tuple(d.data for d in op.dims)
        with np.errstate(all="ignore"):
            return (np.asarray(kinds[op.kind.data](args[0], axis=dims)),)

    @impl(arithmetic.DotOp)
    def dot(self, interp: Interpreter, op: arithmetic.DotOp, args: Any) -> PythonValues:
        with np.errstate(all="ignore"):
            return (np.asarray(np.einsum(op.spec.data, *args)),)

    @impl(arithmetic.DropoutOp)
    def dropout(self, interp: Interpreter, op: arithmetic.DropoutOp, args: Any) -> PythonValues:
        x, key, row, *column = args
        site, p = op.site.value.data, op.p.value.data
        out = philox.dropout(np.asarray(x)[None], int(key), site, p, [row], column or None)
        return (out[0],)

    # ------------------------------------------------------------ shapes

    @impl(shapes.ReshapeOp)
    def reshape(self, interp: Interpreter, op: shapes.ReshapeOp, args: Any) -> PythonValues:
        return (np.reshape(args[0], row_dims(op.result.type)),)

    @impl(shapes.BroadcastOp)
    def broadcast(self, interp: Interpreter, op: shapes.BroadcastOp, args: Any) -> PythonValues:
        return (np.broadcast_to(args[0], row_dims(op.result.type)),)

    @impl(shapes.TransposeOp)
    def transpose(self, interp: Interpreter, op: shapes.TransposeOp, args: Any) -> PythonValues:
        return (np.transpose(args[0], [p.data for p in op.perm]),)

    @impl(shapes.SliceOp)
    def slice(self, interp: Interpreter, op: shapes.SliceOp, args: Any) -> PythonValues:
        picked = np.arange(op.lo.data, op.hi.data, op.step.data)
        return (np.take(args[0], picked, axis=op.dim.data),)

    @impl(shapes.ConcatOp)
    def concat(self, interp: Interpreter, op: shapes.ConcatOp, args: Any) -> PythonValues:
        return (np.concatenate(args, op.dim.data),)

    # ------------------------------------------------------------ products

    @impl(products.MatmulOp)
    def matmul(self, interp: Interpreter, op: products.MatmulOp, args: Any) -> PythonValues:
        x, weight, *index = args
        row = checked(index[0] if index else 0, len(weight), "the matrix of a product")
        with np.errstate(all="ignore"):
            return (np.asarray(np.einsum(op.spec.data, x, weight[row])),)

    @impl(products.OuterOp)
    def outer(self, interp: Interpreter, op: products.OuterOp, args: Any) -> PythonValues:
        a, b, buffer, *at = args
        row = checked(at[0] if at else 0, len(buffer), "a sum of outer products")
        with np.errstate(all="ignore"):
            buffer[row] += np.einsum(op.spec.data, a, b)
        return ()


def _table(cls: type[bindings.TableOfDomain]) -> Any:
    @impl(cls)
    def run_table(
        self: IntraFunctions, interp: Interpreter, op: bindings.TableOfDomain, args: Any
    ) -> PythonValues:
        return (tables.table(self.world, op),)

    return run_table


for _cls in tables.TABLES:
    setattr(IntraFunctions, f"table_{_cls.__name__}", _table(_cls))
register_impls(IntraFunctions)


def run_phase(
    func: FuncOp,
    world: World,
    inputs: Mapping[str, Array],
    functions: type[IntraFunctions] = IntraFunctions,
    carrier: Carrier | None = None,
) -> dict[str, Array]:
    """Runs a function of intra on the sets of `world`; the outputs by name. `functions` are those
    of a dialect with further kinds of steps, where the phase has some. Without a `carrier` the
    world has one rank, whose plans keep rows in order.

    Raises ValueError, IndexError or KeyError where inputs do not fit the sets, or where the
    program reads out of bounds, and InterpretationError for a step without a meaning.
    """
    buffers = Memory(inputs)
    it = Interpreter(ModuleOp([]))
    it.register_implementations(FuncFunctions())
    it.register_implementations(functions(world, buffers, carrier or Alone()))
    it.push_scope(func.sym_name.data)
    for op in func.body.block.ops:
        if isinstance(op, ReturnOp):
            break
        results = it.run_op(op, it.get_values(op.operands))
        it.set_values(zip(op.results, results, strict=True))
    return buffers.outputs
