"""Rules of arithmetic, element by element."""

import math
from typing import Any

from ..errors import NoRule
from ..values import pieces
from ..values.elements import FLOATS, INTEGERS, Elem
from ..values.nodes import is_const
from ..values.tensors import Arr
from .registry import Call, formulas, rule, rules

UNARY = (
    "neg abs sign exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sigmoid relu erf erfinv "
    "sin cos tan asin acos atan tanh"
)


@rule(*UNARY.split())
def _unary(c: Call) -> Arr:
    if c.x.elem == "i1" and c.elem == "i1":
        raise NoRule(f"{c.op} of booleans")
    return c.ctx.unary(c.op, c.x)


@rule("sinh", "cosh", "asinh", "acosh", "atanh")
def _hyperbolic(c: Call) -> Arr:
    """Of floats: of integers torch gives float32, as large as their exponentials, and a sum of both
    signs is as exact as torch's own only where every number has torch's last digit."""
    if c.x.elem not in FLOATS:
        raise NoRule(f"{c.op} of integers")
    if c.form.edits and c.op.startswith("a"):
        raise NoRule(f"{c.op}_, which torch has no derivative of")
    return c.ctx.unary(c.op, c.x)


@rule(*[f"numpy.{name}" for name in "exp expm1 log log1p log2 sqrt sin cos tanh".split()])
def _of_a_size(c: Call) -> Arr:
    """A function of NumPy of a number that is no constant, which Dynamo makes a tensor."""
    return c.ctx.unary(c.op.removeprefix("numpy."), c.ctx.lift(c.arg("input"), c.elem))


formulas(
    reciprocal=lambda f, x: f.binary("div", 1.0, x),
    floor=lambda f, x: _whole(f, "floor", x),
    trunc=lambda f, x: _whole(f, "trunc", x),
    frac=lambda f, x: f.binary("sub", x, _whole(f, "trunc", x)),
    positive=lambda f, x: x,
    deg2rad=lambda f, x: _turned(f, x, math.pi / 180),
    rad2deg=lambda f, x: _turned(f, x, 180 / math.pi),
)


def _whole(f: Any, name: str, x: Arr) -> Arr:
    """One of the whole numbers beside x."""
    if x.elem == "i1":
        raise NoRule(f"{name} of booleans")
    return f.unary(name, x) if x.elem in FLOATS else x


def _turned(f: Any, x: Arr, factor: float) -> Arr:
    if x.elem not in FLOATS:
        raise NoRule("angles that are integers")
    return f.binary("mul", x, factor)


@rule("round")
def _round(c: Call) -> Arr:
    if c.arg("decimals", 0) != 0:
        raise NoRule("numbers rounded to decimals")
    return _whole(c.ctx, "round", c.x)


@rule("add")
def _add(c: Call) -> Any:
    a, b = c.arg("input"), c.arg("other")
    if isinstance(a, tuple) and isinstance(b, tuple):  # parts of a shape
        return a + b
    return _scaled_sum(c, "add", a, b)


def _scaled_sum(c: Call, name: str, a: Any, b: Any) -> Arr:
    """a + alpha b or a - alpha b, in the type of a and b."""
    if name == "sub" and any(isinstance(x, Arr) and x.elem == "i1" for x in (a, b)):
        raise NoRule("a difference of booleans, which torch refuses")
    alpha = c.arg("alpha", 1)
    if alpha == 1 and not isinstance(alpha, bool):
        return c.ctx.binary(name, a, b)
    elem = c.ctx.promote(a, b)
    if elem == "i1":
        raise NoRule("a scaled sum of booleans")
    a, b = c.ctx.lift(a, elem), c.ctx.lift(b, elem)
    return c.ctx.binary(name, a, c.ctx.binary("mul", b, c.ctx.lift(alpha, elem)))


rules(
    {
        "mul maximum minimum atan2": lambda c: c.ctx.binary(c.op, c.arg("input"), c.arg("other")),
        "sub": lambda c: _scaled_sum(c, "sub", c.arg("input"), c.arg("other")),
        "rsub": lambda c: _scaled_sum(c, "sub", c.arg("other"), c.arg("input")),
        "clamp clamp_min clamp_max": lambda c: pieces.clamp(
            c.ctx, c.x, c.arg("min", None), c.arg("max", None)
        ),
    }
)


@rule("div")
def _div(c: Call) -> Arr:
    mode = c.arg("rounding_mode", None)
    if mode is None:
        return c.ctx.binary("div", c.arg("input"), c.arg("other"))
    if mode == "floor":
        return _floordiv(c)
    raise NoRule(f"division rounded by {mode!r}")


@rule("floor_divide")
def _floordiv(c: Call) -> Arr:
    a, b = c.arg("input"), c.arg("other")
    elem = c.ctx.promote(a, b)
    if elem in FLOATS:
        # 1.0 // 0.1 is 9 in torch as in Python: the quotient itself must not have been rounded
        if not isinstance(b, int | float) or math.frexp(abs(b))[0] != 0.5:
            raise NoRule("floats divided and rounded down, by another number than a power of two")
        # stopped: torch has no derivative of it
        return c.ctx.flat(c.ctx.unary("floor", c.ctx.binary("div", a, b)))
    if elem == "i1":
        raise NoRule("a division of booleans")
    return _divided(c, "floordiv", a, b, elem)


def _divided(c: Call, name: str, a: Any, b: Any, elem: Elem) -> Arr:
    """Integers divided, by what is no zero: torch raises for that, where kernels cannot."""
    divisor = c.ctx.lift(b, elem)
    if not is_const(divisor.v) or divisor.v.attrs["value"] == 0:
        raise NoRule("integers divided by others than constants, which may be 0")
    return c.ctx.raw(name, [c.ctx.lift(a, elem), divisor], elem)


@rule("remainder")
def _mod(c: Call) -> Arr:
    a, b = c.arg("input"), c.arg("other")
    elem = c.ctx.promote(a, b)
    if elem not in INTEGERS:
        raise NoRule("a remainder of floats")
    return _divided(c, "mod", a, b, elem)


@rule("pow")
def _pow(c: Call) -> Arr:
    x, p = c.arg("input"), c.arg("exponent")
    ctx = c.ctx
    if isinstance(p, int | float) and isinstance(x, Arr):
        x = ctx.cast(x, ctx.promote(x, p))
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
    x = c.ctx.cast(c.x, c.elem)  # of truth values it is a number
    return c.ctx.binary("mul", x, x)


@rule("ceil")
def _ceil(c: Call) -> Arr:
    if c.x.elem not in FLOATS:
        return _whole(c.ctx, "ceil", c.x)
    return c.ctx.unary("neg", c.ctx.unary("floor", c.ctx.unary("neg", c.x)))


@rule("logaddexp", "logaddexp2")
def _logaddexp(c: Call) -> Arr:
    """The greater number and what the other adds to it; equal infinities are the result."""
    ctx, a, b = c.ctx, c.x, c.tensor("other")
    if c.elem not in FLOATS or a.elem != b.elem:
        raise NoRule(f"{c.op} of integers, or of two types")
    log, power = ("log1p", "exp") if c.op == "logaddexp" else ("log2", "exp2")
    apart = ctx.where(ctx.compare("eq", a, b), 0.0, ctx.binary("sub", a, b), elem=a.elem)
    more = ctx.unary(power, ctx.unary("neg", ctx.unary("abs", apart)))
    more = more if log == "log1p" else ctx.binary("add", more, 1.0)
    return ctx.binary("add", ctx.binary("maximum", a, b), ctx.unary(log, more))


@rule("addcdiv")
def _addcdiv(c: Call) -> Arr:
    """x + value * (a / b), the product first as in torch."""
    a, b, value = c.tensor("tensor1"), c.tensor("tensor2"), c.arg("value")
    if c.ctx.promote(a, b) not in FLOATS:
        raise NoRule("a division of integers")
    a = a if value == 1 else c.ctx.binary("mul", a, value)
    return c.ctx.binary("add", c.x, c.ctx.binary("div", a, b))


@rule("addcmul")
def _addcmul(c: Call) -> Arr:
    y = c.ctx.binary("mul", c.tensor("tensor1"), c.tensor("tensor2"))
    value = c.arg("value")
    return c.ctx.binary("add", c.x, y if value == 1 else c.ctx.binary("mul", y, value))


@rule("lerp")
def _lerp(c: Call) -> Arr:
    elem = c.elem
    xs = [c.ctx.lift(x, elem) for x in (c.x, c.tensor("end"), c.arg("weight"))]
    return c.ctx.raw("lerp", xs, elem)


@rule("cross", "linalg_cross")
def _cross(c: Call) -> Arr:
    """The vector product, of vectors that lie along a dimension."""
    a, b, dim = c.x, c.tensor("other"), c.arg("dim")
    if dim is None:
        raise NoRule("cross along the first dimension of size three, whichever that is")
    dim = a.wrap(dim)

    def turned(x: Arr, by: int) -> Arr:
        return c.ctx.concat([c.ctx.narrow(x, dim, by, 3), c.ctx.narrow(x, dim, 0, by)], dim)

    ahead = c.ctx.binary("mul", turned(a, 1), turned(b, 2))
    return c.ctx.binary("sub", ahead, c.ctx.binary("mul", turned(a, 2), turned(b, 1)))
