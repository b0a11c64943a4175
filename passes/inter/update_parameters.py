"""update-parameters: a loss with its gradients becomes a whole step of training.

Where parameters name the rule of an optimizer, their gradients are used up: in the place of a
gradient the function gives the new parameter and what the optimizer keeps for it, as updates of
arguments. What the loss is multiplied with on the way to the gradients is 1, and no argument any
more. Nothing is left for a backward phase.

Before: `%w {inter.needs_grad, inter.optimizer = "sgd"}`, its numbers `%n {inter.state_of = "w"}`,
and a result `%dw {inter.grad = "w"}`. After: a result `%w - rate * %dw {inter.update = "w"}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...dialects.attributes import GRAD, NAME, OPTIMIZER, STATE_OF, UPDATE, UPDATED
from ...dialects.inter.builder import Builder
from ...dialects.inter.types import UNIT, rows
from ...dialects.signature import (
    Attributes,
    Names,
    arg_attributes,
    arguments,
    array_of,
    result_attributes,
    return_of,
)
from ..analysis.dependence import cotangents
from ..function_pass import FunctionPass
from .optimizers import COUNT, RULES, Rule, updated
from .verify_sets import verify_sets


@dataclass(frozen=True)
class Parameter:
    """A parameter that the function updates: its rule, the arguments that hold its state, and the
    one that holds the numbers of the step."""

    name: str
    value: SSAValue
    rule: Rule
    state: Sequence[tuple[str, SSAValue]]
    numbers: SSAValue


def update_parameters(func: FuncOp) -> None:
    """Applies the rules that `func` names, in place.

    Raises:
        PassFailedException: a rule is not known or its arguments do not fit; the function has not
            one differentiable number as its result; a gradient has no rule, or a rule no gradient.
    """
    parameters = {p.name: p for p in _parameters(func)}
    if not parameters:
        return
    env = verify_sets(func)
    _seed(func, Builder(env, InsertPoint.at_start(func.body.block)))
    ret, attributes = return_of(func), result_attributes(func)
    b = Builder(env, InsertPoint.before(ret))
    names = Names(n.data for d in attributes if isinstance(n := d.get(NAME), StringAttr))
    results: list[tuple[SSAValue, Attributes]] = []
    for value, attrs in zip(ret.operands, attributes, strict=True):
        if not isinstance(of := attrs.get(GRAD), StringAttr):
            results.append((value, attrs))
            continue
        if of.data not in parameters:
            _fail(func, f"argument {of.data} has a gradient and no {OPTIMIZER}: mark all or none")
        p = parameters.pop(of.data)
        new = updated(b, p.rule, p.value, value, [v for _, v in p.state], p.numbers)
        for name, x in zip([p.name, *(n for n, _ in p.state)], new, strict=True):
            own = StringAttr(names.fresh(f"new_{name}"))
            results.append((x, {NAME: own, UPDATE: StringAttr(name)}))
    if parameters:
        _fail(func, f"argument {next(iter(parameters))} has no gradient: mark it inter.needs_grad")
    Rewriter.erase_op(ret)
    func.body.block.add_op(ReturnOp(*(v for v, _ in results)))
    func.attributes[UPDATED] = UnitAttr()
    func.res_attrs = array_of(a for _, a in results)
    func.update_function_type()


def _parameters(func: FuncOp) -> list[Parameter]:
    """The arguments with a rule, with what belongs to each."""
    named = arguments(func)
    out: list[Parameter] = []
    for name, value, attrs in named:
        if not isinstance(given := attrs.get(OPTIMIZER), StringAttr):
            continue
        if given.data not in RULES:
            _fail(func, f"there is no rule {given.data!r}, there are {', '.join(RULES)}")
        rule = RULES[given.data]
        own = [(n, v) for n, v, d in named if d.get(STATE_OF) == StringAttr(name)]
        if len(own) != len(rule.state) + 1:
            wanted = ", ".join((*rule.state, "its numbers"))
            _fail(func, f"{given.data} takes for {name}: {wanted}; it has {len(own)} arguments")
        *state, (_, numbers) = own
        t = rows(value)
        for key, (own_name, v) in zip(rule.state, state, strict=True):
            if key == COUNT and (rows(v).dom.set, rows(v).dims) != (UNIT, ()):
                _fail(
                    func, f"{own_name} counts the steps of {name}: it is one number, not {v.type}"
                )
            if key != COUNT and v.type != t:
                _fail(func, f"what is kept for {name} has not its type {t}")
        n = rows(numbers)
        if (n.dom.set, n.dims, n.elem) != (UNIT, (len(rule.numbers),), t.elem):
            count = len(rule.numbers)
            _fail(func, f"the numbers for {name} are !inter.rows<unit, {count}x{t.elem}>, not {n}")
        out.append(Parameter(name, value, rule, state, numbers))
    return out


def _seed(func: FuncOp, b: Builder) -> None:
    """Puts 1 in the place of the loss's cotangent, and drops the argument."""
    found = cotangents(func)
    if len(found) != 1 or rows(found[0]).dom.set != UNIT or math.prod(rows(found[0]).dims) != 1:
        _fail(func, "a step of training has one differentiable result, the loss, of one number")
    (cotangent,) = found
    assert isinstance(cotangent, BlockArgument)
    t = rows(cotangent)
    cotangent.replace_all_uses_with(b.const(1.0, t.dims, t.elem))
    attributes = list(arg_attributes(func))
    del attributes[cotangent.index]
    func.body.block.erase_arg(cotangent)
    func.arg_attrs = array_of(attributes)
    func.update_function_type()


def _fail(func: FuncOp, message: str) -> NoReturn:
    raise PassFailedException(f"update-parameters: @{func.sym_name.data}: {message}")


@dataclass(frozen=True)
class UpdateParametersPass(FunctionPass):
    """Uses gradients up for the update of parameters, where these name a rule."""

    name = "update-parameters"

    def on(self, func: FuncOp) -> None:
        update_parameters(func)
