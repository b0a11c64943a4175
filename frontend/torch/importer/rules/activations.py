"""Rules of activations. Where one has a kink, its derivative there is torch's; NaN stays NaN."""

from ..errors import NoRule
from ..values import pieces
from ..values.elements import FLOATS
from ..values.tensors import Arr
from .registry import Call, formulas, rule, rules

formulas(
    silu=lambda f, x: f.binary("mul", x, f.unary("sigmoid", x)),
    log_sigmoid=lambda f, x: f.binary("sub", 0.0, f.unary("softplus", f.unary("neg", x))),
    mish=lambda f, x: f.binary("mul", x, f.unary("tanh", f.unary("softplus", x))),
    softsign=lambda f, x: f.binary("div", x, f.binary("add", f.unary("abs", x), 1.0)),
    tanhshrink=lambda f, x: f.binary("sub", x, f.unary("tanh", x)),
    selu=lambda f, x: f.binary(
        "mul", f.unary("elu", x, alpha=1.6732632423543772), 1.0507009873554805
    ),
    relu6=lambda f, x: pieces.hardtanh(f, x, 0.0, 6.0),
    hardswish=pieces.hardswish,
)

rules(
    {
        "leaky_relu": lambda c: c.ctx.unary(c.op, c.x, slope=float(c.number("negative_slope"))),
        "elu": lambda c: c.ctx.unary(c.op, c.x, alpha=float(c.number("alpha"))),
        "hardtanh": lambda c: pieces.hardtanh(
            c.ctx, c.x, float(c.number("min_val")), float(c.number("max_val"))
        ),
        "softshrink": lambda c: pieces.softshrink(c.ctx, c.x, float(c.number("lambd"))),
    }
)


@rule("rrelu")
def _rrelu(c: Call) -> Arr:
    """In training each number has a slope that is drawn; else it is the mean of all."""
    lower, upper = float(c.number("lower")), float(c.number("upper"))
    if c.arg("training", False):
        raise NoRule("slopes that torch draws")
    return c.ctx.unary("leaky_relu", c.x, slope=(lower + upper) / 2)


@rule("celu")
def _celu(c: Call) -> Arr:
    alpha = float(c.number("alpha"))
    if alpha <= 0:
        raise NoRule(f"celu with alpha {alpha}, which is not positive")
    return c.ctx.binary(
        "mul", c.ctx.unary("elu", c.ctx.binary("div", c.x, alpha), alpha=1.0), alpha
    )


@rule("gelu")
def _gelu(c: Call) -> Arr:
    exact = c.arg("approximate") == "none"
    return c.ctx.unary("gelu" if exact else "gelu_tanh", c.x)


@rule("softplus")
def _softplus(c: Call) -> Arr:
    beta, threshold = float(c.number("beta")), float(c.number("threshold"))
    scaled = c.x if beta == 1.0 else c.ctx.binary("mul", c.x, beta)
    y = c.ctx.unary("softplus", scaled)
    y = y if beta == 1.0 else c.ctx.binary("div", y, beta)
    return c.ctx.where(c.ctx.compare("gt", scaled, threshold), c.x, y)


@rule("glu")
def _glu(c: Call) -> Arr:
    dim = c.dim()
    size = c.x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("halves of the rows of a set")
    half = c.ctx.narrow(c.x, dim, 0, size // 2)
    return c.ctx.binary(
        "mul", half, c.ctx.unary("sigmoid", c.ctx.narrow(c.x, dim, size // 2, size))
    )


# ---------------------------------------------------------------- piece by piece


@rule("prelu")
def _prelu(c: Call) -> Arr:
    """A slope for all, or one for each position of the second dimension."""
    x, slope = c.x, c.tensor("weight")
    if slope.dims in ([1], []):
        slope = Arr([], c.ctx.values.reshape(slope.v, ()))
    else:
        for _ in range(x.rank - 2):
            slope = c.ctx.unsqueeze(slope, slope.rank)
    above = c.ctx.compare("gt", x, 0)
    # of what is above 0 the slope has no gradient, not even where that is infinite
    below = c.ctx.binary("mul", slope, c.ctx.where(above, 0.0, x, elem=x.elem))
    return c.ctx.where(above, x, below)


@rule("hardsigmoid")
def _hardsigmoid(c: Call) -> Arr:
    line = c.ctx.binary("div", c.ctx.binary("add", c.x, 3.0), 6.0)
    return pieces.between(c.ctx, c.x, line, (-3.0, 3.0), 0.0, 1.0)


@rule("threshold")
def _threshold(c: Call) -> Arr:
    bound, value = c.arg("threshold"), c.arg("value")
    if c.x.elem not in FLOATS:
        raise NoRule("a threshold of integers")
    return c.ctx.where(c.ctx.compare("le", c.x, bound), value, c.x, elem=c.x.elem)


@rule("hardshrink")
def _hardshrink(c: Call) -> Arr:
    near = c.ctx.compare("le", c.ctx.unary("abs", c.x), float(c.number("lambd")))
    return c.ctx.where(near, 0.0, c.x)
