"""fuse-traversals, quotients: of a row that is stored as it is and divided by a number of its own,
only the quotient is stored. Who reads the row itself at its own place multiplies again.

Gradients of means need both: the quotient for the sum over the edges, the row for the weight of the
node itself. The number must be one or more, as the size of a group that `maximum` keeps from 0:
then nothing is divided by 0, nothing overflows, and only the last bit may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import AllocOp, InputOp, OutputOp
from ....dialects.intra.rows import ApplyOp, ConstOp, LoadOp, StoreOp
from ....dialects.intra.steps import phases
from ....dialects.intra.syntax import length
from .uses import at_own_row, loads, only_store


@dataclass(frozen=True)
class Quotient:
    """A row of `divisor` by which the rows of `whole` are divided in `quotient`."""

    whole: AllocOp
    quotient: AllocOp
    divisor: LoadOp


def keep_quotients(module: ModuleOp) -> None:
    """Read rows back from their quotients; the stores that are dead then are left to simplify."""
    divisors = one_or_more(module)
    for func in phases(module):
        for alloc in [op for op in func.body.block.ops if isinstance(op, AllocOp)]:
            if found := quotient_of(alloc, divisors):
                for load in list(loads(alloc)):
                    multiply_again(load, found)


def one_or_more(module: ModuleOp) -> set[str]:
    """Names of buffers of which a phase makes every number at least 1."""
    safe: dict[str, bool] = {}
    for op in module.walk():
        if isinstance(op, StoreOp) and isinstance(buffer := op.buffer.owner, OutputOp):
            name = buffer.buffer.data
            safe[name] = safe.get(name, True) and is_one_or_more(op.value)
    return {name for name, every in safe.items() if every}


def is_one_or_more(v: SSAValue) -> bool:
    """Whether `v` is `maximum` of something and a constant of at least 1."""
    op = v.owner
    return (
        isinstance(op, ApplyOp)
        and op.fn.data == "maximum"
        and any(
            isinstance(c := x.owner, ConstOp)
            and isinstance(c.value, FloatAttr)
            and c.value.value.data >= 1
            for x in op.xs
        )
    )


def quotient_of(whole: AllocOp, divisors: set[str]) -> Quotient | None:
    """Where the rows of `whole` are stored divided as well, and read only by nests at their own
    row."""
    store = only_store(whole)
    if store is None or length(store.value) == 1:
        return None
    if not all(at_own_row(load) for load in loads(whole)):
        return None
    for use in store.value.uses:
        div = use.operation
        if not isinstance(div, ApplyOp) or div.fn.data != "div" or div.xs[0] is not store.value:
            continue
        divisor = div.xs[1].owner
        if div.result.type != store.value.type or not isinstance(divisor, LoadOp):
            continue
        given = divisor.buffer.owner
        if (
            not isinstance(given, InputOp)
            or given.buffer.data not in divisors
            or given.domain != whole.domain
            or divisor.row is not store.row
        ):
            continue
        for quotient in stored_in(div.result):
            if quotient.domain == whole.domain and only_store(quotient) is not None:
                return Quotient(whole, quotient, divisor)
    return None


def stored_in(v: SSAValue) -> Iterator[AllocOp]:
    """The temporaries that a row is written to."""
    for use in v.uses:
        if isinstance(use.operation, StoreOp) and use.operation.value is v:
            buffer = use.operation.buffer.owner
            if isinstance(buffer, AllocOp):
                yield buffer


def multiply_again(load: LoadOp, found: Quotient) -> None:
    """The quotient of this row times its divisor in the place of the row."""
    row = load.row
    quotient = LoadOp.make([found.quotient.result, row, None], [load.result.type])
    divisor = LoadOp.make([found.divisor.buffer, row, None], [found.divisor.result.type])
    product = ApplyOp.make(
        [quotient.result, divisor.result], [load.result.type], fn=StringAttr("mul")
    )
    Rewriter.insert_op([quotient, divisor, product], InsertPoint.before(load))
    Rewriter.replace_op(load, [], [product.result])
