"""Rules of comparisons and of truth values, and of choices between two numbers."""

import math
from typing import Any

import torch

from ..errors import NoRule
from ..values.elements import FLOATS
from ..values.sizes import expression
from ..values.tensors import Arr
from .registry import Call, formulas, rule

formulas(isnan=lambda f, x: f.compare("ne", x, x))

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):

    @rule(_name)
    def _compare(c: Call, name: str = _name) -> Arr:
        return c.ctx.compare(name, c.arg("input"), c.arg("other"))


for _name in ("and", "or", "not"):

    @rule(f"logical_{_name}", f"bitwise_{_name}")
    def _logical(c: Call, name: str = f"logical_{_name}") -> Arr:
        operands = [c.ctx.lift(c.arg("input"))]
        if name != "logical_not":
            operands.append(c.ctx.lift(c.arg("other")))
        if any(a.elem != "i1" for a in operands):
            if c.op.startswith("bitwise"):
                raise NoRule("bitwise arithmetic of integers")
            operands = [c.ctx.compare("ne", a, 0) if a.elem != "i1" else a for a in operands]
        return c.ctx.raw(name, operands, "i1")


@rule("where")
def _where(c: Call) -> Any:
    condition = c.tensor("condition")
    if "other" not in c.arguments:
        return (c.ctx.row_numbers(condition, expression(c.example[0].shape[0])),)
    return c.ctx.where(condition, c.arg("input"), c.arg("other"))


@rule("masked_fill")
def _masked_fill(c: Call) -> Arr:
    value = c.arg("value")
    return c.ctx.where(c.tensor("mask"), value, c.x, elem=c.x.elem)


@rule("nan_to_num")
def _nan_to_num(c: Call) -> Arr:
    x, ctx = c.x, c.ctx
    if x.elem not in FLOATS:
        c.seen_in_result("nan", "posinf", "neginf")  # integers are never that
        return x
    big = torch.finfo(torch.float64 if x.elem == "f64" else torch.float32).max
    nan, pos, neg = (c.arg(n) for n in ("nan", "posinf", "neginf"))
    out = ctx.where(ctx.compare("ne", x, x), float(nan or 0.0), x)
    out = ctx.where(ctx.compare("eq", out, math.inf), float(big if pos is None else pos), out)
    return ctx.where(ctx.compare("eq", out, -math.inf), float(-big if neg is None else neg), out)


@rule("isinf")
def _isinf(c: Call) -> Arr:
    if c.x.elem not in FLOATS:
        return c.ctx.compare("ne", c.x, c.x)
    return c.ctx.compare("eq", c.ctx.unary("abs", c.x), math.inf)


@rule("isfinite")
def _isfinite(c: Call) -> Arr:
    if c.x.elem not in FLOATS:
        return c.ctx.compare("eq", c.x, c.x)
    return c.ctx.compare("lt", c.ctx.unary("abs", c.x), math.inf)
