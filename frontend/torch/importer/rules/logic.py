"""Rules of comparisons and of truth values, and of choices between two numbers."""

import math
from typing import Any

import torch

from ..errors import NoRule
from ..values.elements import FLOATS
from ..values.sizes import expression
from ..values.tensors import Arr
from .registry import Call, rule, rules

rules(
    {
        "isnan": lambda c: c.ctx.compare("ne", c.x, c.x),
        "eq ne lt le gt ge": lambda c: c.ctx.compare(c.op, c.arg("input"), c.arg("other")),
        "masked_fill": lambda c: c.ctx.where(c.tensor("mask"), c.arg("value"), c.x, elem=c.x.elem),
    }
)


@rule(*(f"{kind}_{name}" for kind in ("logical", "bitwise") for name in ("and", "or", "not")))
def _logical(c: Call) -> Arr:
    kind, name = c.op.split("_")
    operands = [c.ctx.lift(c.arg("input"))]
    if name != "not":
        operands.append(c.ctx.lift(c.arg("other")))
    if any(a.elem != "i1" for a in operands):
        if kind == "bitwise":
            raise NoRule("bitwise arithmetic of integers")
        operands = [c.ctx.compare("ne", a, 0) if a.elem != "i1" else a for a in operands]
    return c.ctx.raw(f"logical_{name}", operands, "i1")


@rule("logical_xor")
def _xor(c: Call) -> Arr:
    """Whether one of two is true, and not the other."""
    a, b = (x if x.elem == "i1" else c.ctx.compare("ne", x, 0) for x in (c.x, c.tensor("other")))
    return c.ctx.compare("ne", a, b)


@rule("isclose")
def _isclose(c: Call) -> Arr:
    """Whether |a - b| is at most atol + rtol |b|; equal infinities are close."""
    ctx, a, b = c.ctx, c.x, c.tensor("other")
    if a.elem not in FLOATS or a.elem != b.elem or c.arg("equal_nan"):
        raise NoRule("isclose of integers, or with equal_nan")
    bound = ctx.binary("mul", ctx.unary("abs", b), float(c.number("rtol")))
    bound = ctx.binary("add", bound, float(c.number("atol")))
    apart = ctx.unary("abs", ctx.binary("sub", a, b))
    finite = ctx.compare("lt", apart, math.inf)
    near = ctx.raw("logical_and", [ctx.compare("le", apart, bound), finite], "i1")
    return ctx.raw("logical_or", [near, ctx.compare("eq", a, b)], "i1")


@rule("where")
def _where(c: Call) -> Any:
    condition = c.tensor("condition")
    if "other" not in c.arguments:
        return (c.ctx.row_numbers(condition, expression(c.example[0].shape[0])),)
    return c.ctx.where(condition, c.arg("input"), c.arg("other"))


@rule("nan_to_num")
def _nan_to_num(c: Call) -> Arr:
    x, ctx = c.x, c.ctx
    if x.elem not in FLOATS:
        c.seen_in_result("nan", "posinf", "neginf")  # integers are never that
        return x
    big = torch.finfo(torch.float64 if x.elem == "f64" else torch.float32).max
    nan, pos, neg = (c.arg(n) for n in ("nan", "posinf", "neginf"))
    # each asks for what x is: what stands for one of the three may be another of them
    out = ctx.where(ctx.compare("ne", x, x), float(nan or 0.0), x)
    out = ctx.where(ctx.compare("eq", x, math.inf), float(big if pos is None else pos), out)
    return ctx.where(ctx.compare("eq", x, -math.inf), float(-big if neg is None else neg), out)


@rule("isinf", "isfinite")
def _isinf(c: Call) -> Arr:
    of_floats, of_integers = ("eq", "ne") if c.op == "isinf" else ("lt", "eq")
    if c.x.elem not in FLOATS:
        return c.ctx.compare(of_integers, c.x, c.x)
    return c.ctx.compare(of_floats, c.ctx.unary("abs", c.x), math.inf)
