"""Rules of arithmetic, comparisons, casts and copies."""

import math
from typing import Any

import torch

from ..errors import NoRule
from ..tensors import Arr, elem_of
from ..values import FLOATS, INTEGERS
from .indexing import row_numbers
from .registry import Call, rule

UNARY = "neg exp log log1p expm1 sqrt rsqrt abs sign relu tanh sigmoid erf sin cos floor".split()
for _name in UNARY:

    @rule(_name)
    def _unary(c: Call, name: str = _name) -> Arr:
        return c.ctx.unary(name, c.x)


_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "multiply": "mul",
    "subtract": "sub",
    "true_divide": "div",
    "truediv": "div",
    "maximum": "maximum",
    "minimum": "minimum",
}
for _name, _function in _OPERATORS.items():

    @rule(_name)
    def _binary(c: Call, name: str = _function) -> Any:
        a, b = c.arg(0, "input"), c.arg(1, "other")
        if isinstance(a, tuple) and isinstance(b, tuple) and name == "add":  # parts of a shape
            return a + b
        scale = c.kwargs.get("alpha", 1)
        if scale != 1:
            b = c.ctx.binary("mul", b, scale)
        return c.ctx.binary(name, a, b)


@rule("div", "divide")
def _div(c: Call) -> Arr:
    mode = c.kwargs.get("rounding_mode")
    if mode is None:
        return c.ctx.binary("div", c.arg(0, "input"), c.arg(1, "other"))
    if mode == "floor":
        return _floordiv(c)
    raise NoRule(f"division rounded by {mode!r}")


@rule("rsub")
def _rsub(c: Call) -> Arr:
    return c.ctx.binary("sub", c.arg(1, "other"), c.arg(0, "input"))


@rule("floordiv", "floor_divide")
def _floordiv(c: Call) -> Arr:
    a, b = c.arg(0, "input"), c.arg(1, "other")
    elem = c.ctx.promote(a, b)
    if elem in FLOATS:
        # 1.0 // 0.1 is 9 in torch as in Python: the quotient itself must not have been rounded
        if not isinstance(b, int | float) or math.frexp(abs(b))[0] != 0.5:
            raise NoRule("floats divided and rounded down, by another number than a power of two")
        return c.ctx.unary("floor", c.ctx.binary("div", a, b))
    return c.ctx.raw("floordiv", [c.ctx.lift(a, elem), c.ctx.lift(b, elem)], elem)


@rule("mod", "remainder")
def _mod(c: Call) -> Arr:
    a, b = c.arg(0, "input"), c.arg(1, "other")
    elem = c.ctx.promote(a, b)
    if elem not in INTEGERS:
        raise NoRule("a remainder of floats")
    return c.ctx.raw("mod", [c.ctx.lift(a, elem), c.ctx.lift(b, elem)], elem)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):

    @rule(_name)
    def _compare(c: Call, name: str = _name) -> Arr:
        return c.ctx.compare(name, c.arg(0, "input"), c.arg(1, "other"))


_LOGICAL = {
    "and_": "logical_and",
    "logical_and": "logical_and",
    "bitwise_and": "logical_and",
    "or_": "logical_or",
    "logical_or": "logical_or",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
    "logical_not": "logical_not",
    "bitwise_not": "logical_not",
}
for _name, _function in _LOGICAL.items():

    @rule(_name)
    def _logical(c: Call, name: str = _function) -> Arr:
        operands = [c.ctx.lift(a) for a in c.args]
        if any(a.elem != "i1" for a in operands):
            if c.name not in ("logical_and", "logical_or", "logical_not"):
                raise NoRule("bitwise arithmetic of integers")
            operands = [c.ctx.compare("ne", a, 0) if a.elem != "i1" else a for a in operands]
        return c.ctx.raw(name, operands, "i1")


@rule("pow")
def _pow(c: Call) -> Arr:
    x, p = c.arg(0, "input"), c.arg(1, "exponent")
    ctx = c.ctx
    if isinstance(p, int | float) and isinstance(x, Arr):
        if p == 1:
            return x
        if p == 2 or (p == 3 and x.elem in FLOATS):
            y = ctx.binary("mul", x, x)
            return y if p == 2 else ctx.binary("mul", y, x)
        if p == 0.5:
            return ctx.unary("sqrt", x)
        if p == -0.5:
            return ctx.unary("rsqrt", x)
        if p == -1:
            return ctx.binary("div", 1.0, x)
    return ctx.binary("pow", x, p)


@rule("square")
def _square(c: Call) -> Arr:
    return c.ctx.binary("mul", c.x, c.x)


@rule("reciprocal")
def _reciprocal(c: Call) -> Arr:
    return c.ctx.binary("div", 1.0, c.x)


@rule("ceil")
def _ceil(c: Call) -> Arr:
    return c.ctx.unary("neg", c.ctx.unary("floor", c.ctx.unary("neg", c.x)))


@rule("clamp", "clip")
def _clamp(c: Call) -> Arr:
    # written with comparisons, so that a value at a bound keeps its gradient as in torch
    x, ctx = c.x, c.ctx
    lo, hi = c.arg(1, "min", None), c.arg(2, "max", None)
    if any(isinstance(b, float) for b in (lo, hi)) and x.elem not in FLOATS:
        x = ctx.cast(x, elem_of(torch.get_default_dtype()))
    if lo is not None:
        x = ctx.where(ctx.compare("lt", x, lo), lo, x)
    if hi is not None:
        x = ctx.where(ctx.compare("gt", x, hi), hi, x)
    return x


@rule("clamp_min")
def _clamp_min(c: Call) -> Arr:
    lo = c.arg(1, "min")
    return c.ctx.where(c.ctx.compare("lt", c.x, lo), lo, c.x)


@rule("clamp_max")
def _clamp_max(c: Call) -> Arr:
    hi = c.arg(1, "max")
    return c.ctx.where(c.ctx.compare("gt", c.x, hi), hi, c.x)


@rule("where")
def _where(c: Call) -> Any:
    if len(c.args) + len(c.kwargs) < 3:
        return (row_numbers(c, c.example),)
    condition = c.tensor(0, "condition")
    return c.ctx.where(condition, c.arg(1, "input"), c.arg(2, "other"))


@rule("masked_fill")
def _masked_fill(c: Call) -> Arr:
    value = c.arg(2, "value")
    return c.ctx.where(c.tensor(1, "mask"), value, c.x, elem=c.x.elem)


@rule("nan_to_num")
def _nan_to_num(c: Call) -> Arr:
    x, ctx = c.x, c.ctx
    big = torch.finfo(torch.float64 if x.elem == "f64" else torch.float32).max
    nan, pos, neg = (c.arg(i + 1, n, None) for i, n in enumerate(("nan", "posinf", "neginf")))
    out = ctx.where(ctx.compare("ne", x, x), float(nan or 0.0), x)
    out = ctx.where(ctx.compare("eq", out, math.inf), float(big if pos is None else pos), out)
    return ctx.where(ctx.compare("eq", out, -math.inf), float(-big if neg is None else neg), out)


@rule("isnan")
def _isnan(c: Call) -> Arr:
    return c.ctx.compare("ne", c.x, c.x)


@rule("isinf")
def _isinf(c: Call) -> Arr:
    return c.ctx.compare("eq", c.ctx.unary("abs", c.x), math.inf)


@rule("isfinite")
def _isfinite(c: Call) -> Arr:
    return c.ctx.compare("lt", c.ctx.unary("abs", c.x), math.inf)


@rule("detach")
def _detach(c: Call) -> Arr:
    return Arr(c.x.dims, c.ctx.values.stop(c.x.v))


@rule("contiguous", "clone", "alias", "requires_grad")
def _same(c: Call) -> Arr:
    return c.x


@rule("addcmul")
def _addcmul(c: Call) -> Arr:
    y = c.ctx.binary("mul", c.tensor(1, "tensor1"), c.tensor(2, "tensor2"))
    return c.ctx.binary("add", c.x, c.ctx.binary("mul", y, c.kwargs.get("value", 1)))


@rule("lerp")
def _lerp(c: Call) -> Arr:
    step = c.ctx.binary("mul", c.arg(2, "weight"), c.ctx.binary("sub", c.tensor(1, "end"), c.x))
    return c.ctx.binary("add", c.x, step)


@rule("to", "float", "double", "long", "int", "bool", "type", "type_as", "_to_copy")
def _to(c: Call) -> Arr:
    elem = elem_of(c.out.dtype)
    if elem == "i1" and c.x.elem != "i1":
        return c.ctx.compare("ne", c.x, 0)
    return c.ctx.cast(c.x, elem)


@rule("copy")
def _copy(c: Call) -> Arr:
    y = c.ctx.cast(c.ctx.lift(c.arg(1, "src")), c.x.elem)
    return c.ctx.expand(y, c.x.dims)


@rule("fill", "zero")
def _fill(c: Call) -> Arr:
    value: Any = 0 if c.name.startswith("zero") else c.arg(1, "value")
    return c.ctx.expand(c.ctx.lift(value, c.x.elem), c.x.dims)
