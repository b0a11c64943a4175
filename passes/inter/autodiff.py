"""autodiff: reverse mode on whole functions.

(arguments) -> (results) becomes (arguments, cotangents) -> (results, gradients): a cotangent for
every float result that is no update of an argument and not `inter.detached`, a gradient for every
argument with `inter.needs_grad`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...dialects.attributes import COTANGENT, GRAD, NAME, NEEDS_GRAD
from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.types import RowsType, is_float, rows
from ...dialects.signature import (
    Names,
    arg_attributes,
    arguments,
    array_of,
    result_attributes,
    results,
    return_of,
)
from ..analysis.dependence import is_differentiated
from ..function_pass import FunctionPass
from .differentiation.derivatives import STOPS, differentiate, passes_gradient
from .differentiation.reverse import Reverse
from .verify_sets import verify_sets


def autodiff(func: FuncOp, reverse: type[Reverse] = Reverse) -> None:
    """Differentiates `func` in place.

    Cotangent arguments are named `d_<result>` and carry `inter.cotangent`; gradients are named
    `d_<argument>`, have exactly its type and carry `inter.grad = "<argument>"`; an argument that no
    result is made of (`attached_arguments`) has none. The forward ops stay as they are, the
    backward ones follow them; what turns out to be unused is for dce. Raises
    PassFailedException where no argument wants a gradient, where the function is differentiated
    already, and where an op on the way has no derivative.
    """
    env = verify_sets(func)
    given = arguments(func)
    attrs = [d for _, _, d in given]
    wanted, attached = _wanted(func), attached_arguments(func)
    ret, returned = return_of(func), results(func)
    body = [op for op in func.body.block.ops if isinstance(op, ValueOp)]
    Rewriter.erase_op(ret)

    names = Names(name for name, _, _ in given)
    r = reverse(Builder(env, func.body.block), env, _reached(body, wanted))
    for result, value, outcome in returned:
        if _is_float(value) and is_differentiated(outcome):
            d = func.body.block.insert_arg(value.type, len(func.body.block.args))
            d.name_hint = name = names.fresh(f"d_{result}")
            attrs.append({COTANGENT: StringAttr(result), NAME: StringAttr(name)})
            r.put_result(value, d)
    for op in reversed(body):
        if r.has(op.results[0]):
            differentiate(r, op)

    moved = {a: name for a, name in wanted.items() if name in attached}
    cotangents = (r.cotangent(a) if r.has(a) else r.zero(a, rows(a).dims) for a in moved)
    gradients = [r.b.widen(d, rows(a).dom) for a, d in zip(moved, cotangents, strict=True)]
    outcomes = [outcome for _, _, outcome in returned]
    for name in moved.values():
        own = names.fresh(f"d_{name}")
        outcomes.append({NAME: StringAttr(own), GRAD: StringAttr(name)})
    func.body.block.add_op(ReturnOp(*(v for _, v, _ in returned), *gradients))
    func.arg_attrs, func.res_attrs = array_of(attrs), array_of(outcomes)
    func.update_function_type()


def attached_arguments(func: FuncOp) -> set[str]:
    """The names of the arguments that a float result is made of, `inter.stop` apart: those to which
    torch gives a gradient, be it 0, and not none. An optimizer leaves the others alone."""
    wanted = [is_differentiated(outcome) for outcome in result_attributes(func)]
    parts = zip(made_of(func), wanted, strict=True)
    return {name for (names, _), is_result in parts if is_result for name in names}


def made_of(func: FuncOp) -> list[tuple[set[str], set[int]]]:
    """For each result the names of the arguments that it is made of, and the numbers of the other
    results, in floats and `inter.stop` apart. A result that is no float is made of none."""
    body = [op for op in reversed(func.body.block.ops) if isinstance(op, ValueOp)]
    names = {a: name for name, a, _ in arguments(func)}
    returned = return_of(func).operands
    out: list[tuple[set[str], set[int]]] = []
    for value in returned:
        reached = _made_of(value, body)
        others = {i for i, x in enumerate(returned) if x in reached and x is not value}
        out.append(({name for a, name in names.items() if a in reached}, others))
    return out


def _made_of(value: SSAValue, body: Iterable[ValueOp]) -> set[SSAValue]:
    """The floats that a value is made of, itself among them; `body` is in reverse order."""
    reached = {value} if _is_float(value) else set[SSAValue]()
    for op in body:
        if op.results[0] in reached and type(op) not in STOPS:
            reached.update(x for x in op.operands if _is_float(x))
    return reached


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, RowsType) and is_float(value.type.elem)


def _wanted(func: FuncOp) -> dict[SSAValue, str]:
    """The arguments whose gradient is wanted, with their names."""
    here = f"autodiff: @{func.sym_name.data}"
    if any(COTANGENT in d for d in arg_attributes(func)):
        raise PassFailedException(f"{here} has cotangents already: run autodiff once")
    wanted: dict[SSAValue, str] = {}
    for name, a, d in arguments(func):
        if NEEDS_GRAD not in d:
            continue
        if not _is_float(a):
            raise PassFailedException(
                f"{here}: argument {name} is {a.type}: only rows of floats have gradients, drop "
                f"its {NEEDS_GRAD}"
            )
        wanted[a] = name
    if not wanted:
        raise PassFailedException(
            f"{here}: no argument has {NEEDS_GRAD}: mark those whose gradient is wanted"
        )
    return wanted


def _reached(body: Sequence[ValueOp], start: Iterable[SSAValue]) -> set[SSAValue]:
    """`start` and every value that moves with it."""
    reached = set(start)
    for op in body:
        if any(x in reached and passes_gradient(op, i) for i, x in enumerate(op.operands)):
            reached.update(op.results)
    return reached


@dataclass(frozen=True)
class AutodiffPass(FunctionPass):
    """Appends the gradients of arguments marked `inter.needs_grad` to each function's results."""

    name = "autodiff"

    def on(self, func: FuncOp) -> None:
        autodiff(func)
