"""What the values of a function depend on: the graph alone, cotangents, the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...dialects.attributes import (
    CONSTANT,
    COTANGENT,
    DETACHED,
    NEEDS_GRAD,
    UPDATE,
    UPDATED,
)
from ...dialects.inter.base import StructureOp
from ...dialects.inter.types import UNIT, RowsType, SetType, is_float
from ...dialects.signature import Attributes, arguments, body_ops, result_attributes, results

FREE = frozenset({"inter.const", "inter.table", "inter.index", "inter.iota", "inter.size"})
"""Ops that cost nothing: every phase that uses such a value makes it itself."""
RANDOM = "inter.dropout"


def updated_names(func: FuncOp) -> set[str]:
    """The names of the arguments that a call overwrites (running statistics)."""
    return {
        attr.data
        for attrs in result_attributes(func)
        if isinstance(attr := attrs.get(UPDATE), StringAttr)
    }


def invariant_arguments(func: FuncOp, inputs: bool, units: bool) -> set[SSAValue]:
    """The arguments that change with the graph only: sets, and integer and i1 rows on sets.

    `inputs` adds those marked `inter.constant`, `units` the integer `rows<unit, ..>`; these may be
    random keys or step counters, so they count for structure ops only. An argument that the
    function updates is never invariant.
    """
    updated = updated_names(func)
    out: set[SSAValue] = set()
    for name, arg, attrs in arguments(func):
        if isinstance(arg.type, SetType):
            out.add(arg)
        elif isinstance(arg.type, RowsType) and COTANGENT not in attrs:
            fixed = not is_float(arg.type.elem) and (units or arg.type.dom.set != UNIT)
            if name not in updated and (fixed or (inputs and CONSTANT in attrs)):
                out.add(arg)
    return out


def closure(ops: Iterable[Operation], start: set[SSAValue]) -> set[SSAValue]:
    """`start` and the results of those of `ops` (in order) that use nothing else."""
    known = set(start)
    for op in ops:
        if op.name != RANDOM and all(x in known for x in op.operands):
            known.update(op.results)
    return known


def dependants(ops: Iterable[Operation], start: set[SSAValue]) -> set[SSAValue]:
    """`start` and the results of those of `ops` (in order) that use any of it."""
    known = set(start)
    for op in ops:
        if any(x in known for x in op.operands):
            known.update(op.results)
    return known


def to_differentiate(func: FuncOp) -> set[SSAValue]:
    """The values that a gradient will be taken through; none once autodiff has done so."""
    if has_backward(func):
        return set()
    start = {a for _, a, attrs in arguments(func) if NEEDS_GRAD in attrs}
    return dependants(body_ops(func), set[SSAValue](start))


def is_differentiated(result: Attributes) -> bool:
    """Whether a result with these attributes has a cotangent, where it is of floats."""
    return UPDATE not in result and DETACHED not in result


def behind_results(func: FuncOp) -> set[SSAValue]:
    """The results with cotangents, and the values that these are made of."""
    known = {v for _, v, attrs in results(func) if is_differentiated(attrs)}
    for op in reversed(body_ops(func)):
        if not known.isdisjoint(op.results):
            known.update(op.operands)
    return known


def cotangents(func: FuncOp) -> list[SSAValue]:
    """The arguments that autodiff appended."""
    return [a for _, a, attrs in arguments(func) if COTANGENT in attrs]


def has_backward(func: FuncOp) -> bool:
    """Whether gradients are a part of the function."""
    return bool(cotangents(func)) or UPDATED in func.attributes


def ancestors(
    values: Iterable[SSAValue], stop: Callable[[Operation], bool] = lambda op: False
) -> set[Operation]:
    """The ops that `values` are computed by; a `stop` op is left out, and what it uses."""
    out: set[Operation] = set()
    todo = list(values)
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, Operation) and owner not in out and not stop(owner):
            out.add(owner)
            todo.extend(owner.operands)
    return out


def operands_first(
    v: SSAValue,
    known: Container[SSAValue],
    reads: Callable[[SSAValue], Iterable[SSAValue]],
) -> Iterator[SSAValue]:
    """`v` and what is read on the way to it, behind what it reads itself; each must be `known` when
    the next one is asked for. Without recursion: programs are deep."""
    todo = [v]
    while todo:
        x = todo[-1]
        if x in known:
            todo.pop()
        elif new := [y for y in reads(x) if y not in known]:
            todo += new
        else:
            yield x


def structure_ancestors(func: FuncOp) -> set[Operation]:
    """The structure ops that follow from sets and integers alone, and all that they use."""
    ops = body_ops(func)
    known = closure(ops, invariant_arguments(func, inputs=False, units=True))
    roots = [op.results[0] for op in ops if isinstance(op, StructureOp) and op.results[0] in known]
    return ancestors(roots)


def in_order(ops: Sequence[Operation], chosen: set[Operation]) -> list[Operation]:
    """The chosen ones in the order of `ops`."""
    return [op for op in ops if op in chosen]
