"""The pointwise vocabulary in C, for scalars and for vector pieces.

Exponentials and their kin are those of vector_math.h, which give a number the same bits in a scalar
and in a lane, as does `pow` of f32 (vector_power.h). That of f64, `sin` and `cos` go lane by lane
through C's library. `sqrt`, `floor`, `sign`
and `mod` are printed lane by lane as well; the compiler makes vector instructions of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.utils.exceptions import PassFailedException

from .c_types import F32, CType, Piece

Params = Mapping[str, float]

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# functions of vector_math.h, which has one for every piece: exp_f32, exp_f32x16
_MATH = frozenset(
    ("exp", "expm1", "log", "log1p", "tanh", "erf", "sigmoid", "softplus", "gelu", "gelu_tanh")
)
# library or prelude functions of one argument, by the name of the vocabulary
_CALLS = {"sqrt": "sqrt", "sin": "sin", "cos": "cos", "floor": "floor", "sign": "sign"}
_CALLS2 = {
    "pow": "pow",
    "maximum": "greater",
    "minimum": "less",
    "mod": "rest",
    "floordiv": "floordiv",
}


def number(x: float, c: CType) -> str:
    """A literal that reads back exactly."""
    if c.suffix == "i":
        return str(int(x))
    if x != x:
        return "NAN"
    if x in (float("inf"), float("-inf")):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    return f"{float(x)!r}{c.suffix}" if c.suffix else repr(float(x))


def math(fn: str, x: str, c: CType, width: int = 1) -> str:
    """A call of vector_math.h on a piece of `width` numbers of a floating type; `x` are the
    arguments."""
    assert c.vector is not None, c
    lanes = c.vector.removesuffix("x") if width == 1 else f"{c.vector}{width}"
    return f"{fn}_{lanes}({x})"


def scalar(fn: str, xs: Sequence[str], c: CType, params: Params) -> str:
    """The C expression of `fn` on scalars; `c` is the type of the operands (of the branches for
    `where`).
    """
    a, b = (*xs, "", "")[:2]
    if fn in _OPERATORS:
        return f"({a} {_OPERATORS[fn]} {b})"
    if fn in _COMPARISONS:
        return f"({a} {_COMPARISONS[fn]} {b})"
    if fn == "floordiv" and c.suffix != "i":
        return f"floor{c.suffix}({a} / {b})"
    if fn in _MATH:
        return math(fn, a, c)
    if fn in _CALLS:
        return f"{_CALLS[fn]}{c.suffix}({a})"
    if fn == "pow" and c is F32:
        return math(fn, f"{a}, {b}", c)
    if fn in _CALLS2:
        return f"{_CALLS2[fn]}{c.suffix}({a}, {b})"
    match fn:
        case "neg":
            return f"(-{a})"
        case "abs":
            return f"({a} < 0 ? -{a} : {a})" if c.suffix == "i" else f"fabs{c.suffix}({a})"
        case "relu":
            return f"({a} < 0 ? 0 : {a})"
        case "leaky_relu":
            return f"({a} > 0 ? {a} : {number(params['slope'], c)} * {a})"
        case "elu":
            return f"({a} > 0 ? {a} : {number(params['alpha'], c)} * {math('expm1', a, c)})"
        case "rsqrt":
            plain = f"rsqrt{c.suffix}({a})"
            return (
                f"({a} == 0 ? {number(params['zero'], c)} : {plain})" if "zero" in params else plain
            )
        case "logical_and":
            return f"({a} && {b})"
        case "logical_or":
            return f"({a} || {b})"
        case "logical_not":
            return f"(!{a})"
        case "where":
            return f"({a} ? {b} : {xs[2]})"
        case _:
            raise PassFailedException(
                f"the pointwise function {fn!r} has no C spelling; add it to codegen/c_functions.py"
            )


def vector(fn: str, xs: Sequence[str], c: CType, piece: Piece, params: Params) -> str:
    """The same on vector pieces; masks are integer vectors of the operands' lane width."""
    if piece.width == 1:
        return scalar(fn, xs, c, params)
    t, m = piece.type(c), piece.mask(c)
    a, b = (*xs, "", "")[:2]

    def select(mask: str, yes: str, no: str) -> str:
        return f"SELECT({t}, {m}, {mask}, {yes}, {no})"

    def splat(x: float) -> str:
        return f"SPLAT({t}, {number(x, c)})"

    if fn in _OPERATORS:
        return f"({a} {_OPERATORS[fn]} {b})"
    if fn in _COMPARISONS:
        return f"({a} {_COMPARISONS[fn]} {b})"
    if fn in _MATH:
        return math(fn, a, c, piece.width)
    if fn == "pow" and c is F32:
        return math(fn, f"{a}, {b}", c, piece.width)
    if fn in _CALLS:
        return f"LANES({t}, {a}, {_CALLS[fn]}{c.suffix})"
    match fn:
        case "neg":
            return f"(-{a})"
        case "relu":
            return select(f"({a} < {splat(0)})", f"({t}){{0}}", a)
        case "leaky_relu":
            return select(f"({a} > {splat(0)})", a, f"({splat(params['slope'])} * {a})")
        case "elu":
            return select(
                f"({a} > {splat(0)})",
                a,
                f"({splat(params['alpha'])} * {math('expm1', a, c, piece.width)})",
            )
        case "abs":
            return select(f"({a} < {splat(0)})", f"(-{a})", a)
        case "rsqrt":
            plain = f"({splat(1)} / LANES({t}, {a}, sqrt{c.suffix}))"
            return (
                select(f"({a} == {splat(0)})", splat(params["zero"]), plain)
                if "zero" in params
                else plain
            )
        case "maximum":
            return select(f"(({a} != {a}) | ({a} > {b}))", a, b)
        case "minimum":
            return select(f"(({a} != {a}) | ({a} < {b}))", a, b)
        case "logical_and":
            return f"({a} & {b})"
        case "logical_or":
            return f"({a} | {b})"
        case "logical_not":
            return f"(~{a})"
        case "where":
            return select(a, b, xs[2])
        case _ if fn in _CALLS2:
            return f"LANES2({t}, {a}, {b}, {_CALLS2[fn]}{c.suffix})"
        case _:
            raise PassFailedException(
                f"the pointwise function {fn!r} has no C spelling; add it to codegen/c_functions.py"
            )
