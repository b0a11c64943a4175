"""Rules of dense layers: products, normalisations, dropout and recurrent cells."""

from typing import Any

from ..errors import NoRule
from ..products import einsum, linear, matmul
from ..tensors import Arr
from .registry import Call, rule


@rule("linear")
def _linear(c: Call) -> Arr:
    return linear(c.ctx, c.x, c.tensor(1, "weight"), c.arg(2, "bias", None))


@rule("matmul", "mm", "mv", "dot")
def _matmul(c: Call) -> Arr:
    return matmul(c.ctx, c.x, c.args[1])


@rule("bmm")
def _bmm(c: Call) -> Arr:
    return matmul(c.ctx, c.x, c.args[1])


@rule("addmm")
def _addmm(c: Call) -> Arr:
    """`beta * x + alpha * (mat1 @ mat2)`; a beta of 0 keeps what is not finite in x out."""
    y = matmul(c.ctx, c.tensor(1, "mat1"), c.tensor(2, "mat2"))
    alpha, beta = c.kwargs.get("alpha", 1), c.kwargs.get("beta", 1)
    if alpha != 1:
        y = c.ctx.binary("mul", y, alpha)
    if beta == 0:
        return y
    return c.ctx.binary("add", c.x if beta == 1 else c.ctx.binary("mul", c.x, beta), y)


@rule("einsum")
def _einsum(c: Call) -> Arr:
    """Products from left to right; a letter is summed as soon as nobody else has it."""
    if not isinstance(c.args[0], str):
        raise NoRule("einsum with numbers in place of letters")
    spec = c.args[0].replace(" ", "")
    xs = c.args[1:] if isinstance(c.args[1], Arr) else c.args[1]
    if len(xs) < 2 or "." in spec:
        raise NoRule(f"einsum {spec!r} of {len(xs)} tensors (two or more, without an ellipsis)")
    left, arrow, out = spec.partition("->")
    if not arrow:  # in the order of the alphabet what occurs once
        out = "".join(a for a in sorted({*left} - {","}) if left.count(a) == 1)
    mine, *others = left.split(",")
    x, *rest = xs
    for k, (letters, y) in enumerate(zip(others, rest, strict=True)):
        later = {*out, *"".join(others[k + 1 :])}
        kept = "".join(a for a in dict.fromkeys(mine + letters) if a in later)
        last = k == len(others) - 1
        x = einsum(c.ctx, f"{mine},{letters}->{out if last else kept}", x, y)
        mine = kept
    return x


@rule("outer", "ger")
def _outer(c: Call) -> Arr:
    return einsum(c.ctx, "a,b->ab", c.x, c.args[1])


@rule("dropout", "dropout1d", "feature_dropout")
def _dropout(c: Call) -> Arr:
    p, training = c.arg(1, "p", 0.5), c.arg(2, "training", c.arg(2, "train", True))
    if not training or p == 0:
        return c.x
    if c.name != "dropout":
        raise NoRule("dropout of whole columns")
    return dropout(c, c.x, float(p))


def dropout(c: Call, x: Arr, p: float) -> Arr:
    """A dropout site: its own stream of random bits, keyed by the row and the column."""
    over = x.home
    v = c.ctx.values.make(
        "dropout", [x.v, c.key().v], over, x.v.shape, x.elem, p=p, site=c.new_site(), over=over
    )
    return Arr(x.dims, v)


@rule("layer_norm")
def _layer_norm(c: Call) -> Arr:
    shape = c.arg(1, "normalized_shape")
    w, b, eps = c.arg(2, "weight", None), c.arg(3, "bias", None), float(c.arg(4, "eps", 1e-5))
    return _normalised(c, c.x, list(range(-len(shape), 0)), w, b, eps)


@rule("rms_norm")
def _rms_norm(c: Call) -> Arr:
    ctx, x = c.ctx, c.x
    shape, w, eps = c.arg(1, "normalized_shape"), c.arg(2, "weight", None), c.arg(3, "eps", None)
    if eps is None:
        eps = 2.0**-52 if x.elem == "f64" else 2.0**-23
    power = ctx.mean(ctx.binary("mul", x, x), list(range(-len(shape), 0)), True)
    y = ctx.binary("mul", x, ctx.unary("rsqrt", ctx.binary("add", power, float(eps))))
    return y if w is None else ctx.binary("mul", y, w)


def _normalised(c: Call, x: Arr, dims: Any, w: Arr | None, b: Arr | None, eps: float) -> Arr:
    ctx = c.ctx
    centred = ctx.binary("sub", x, ctx.mean(x, dims, True))
    var = ctx.mean(ctx.binary("mul", centred, centred), dims, True)
    return _scaled(c, centred, var, w, b, eps)


def _scaled(c: Call, centred: Arr, var: Arr, w: Arr | None, b: Arr | None, eps: float) -> Arr:
    ctx = c.ctx
    y = ctx.binary("mul", centred, ctx.unary("rsqrt", ctx.binary("add", var, eps)))
    y = y if w is None else ctx.binary("mul", y, w)
    return y if b is None else ctx.binary("add", y, b)


@rule("batch_norm", "instance_norm")
def _batch_norm(c: Call) -> Arr:
    if c.name != "batch_norm":
        raise NoRule("instance_norm")
    x, ctx = c.x, c.ctx
    mean, var = c.arg(1, "running_mean"), c.arg(2, "running_var")
    w, b = c.arg(3, "weight", None), c.arg(4, "bias", None)
    training, momentum = c.arg(5, "training", False), c.arg(6, "momentum", 0.1)
    eps = float(c.arg(7, "eps", 1e-5))
    if x.rank != 2 or (x.axis not in (0, None)):
        raise NoRule("batch_norm of a tensor that is not rows x columns")
    if not training:
        return _scaled(c, ctx.binary("sub", x, mean), var, w, b, eps)
    batch_mean = ctx.mean(x, 0)
    centred = ctx.binary("sub", x, batch_mean)
    batch_var = ctx.mean(ctx.binary("mul", centred, centred), 0)
    if mean is not None:
        n = ctx.count(x, 0)
        unbiased = ctx.binary("div", ctx.binary("mul", batch_var, n), ctx.binary("sub", n, 1.0))
        for position, name, old, new in (
            (1, "running_mean", mean, batch_mean),
            (2, "running_var", var, unbiased),
        ):
            node = c.node.args[position] if position < len(c.node.args) else c.node.kwargs[name]
            still = Arr(new.dims, ctx.values.stop(new.v))
            kept = ctx.binary("mul", old, 1.0 - momentum)
            c.edits.append((node, ctx.binary("add", kept, ctx.binary("mul", still, momentum))))
    return _scaled(c, centred, batch_var, w, b, eps)


@rule("gru_cell")
def _gru_cell(c: Call) -> Arr:
    x, h, w_i, w_h, *rest = c.args
    b_i, b_h = [*rest, None, None][:2]
    ctx = c.ctx
    gates_i, gates_h = linear(ctx, x, w_i, b_i), linear(ctx, h, w_h, b_h)
    width = h.dims[-1]

    def gate(g: Arr, k: int) -> Arr:
        return ctx.narrow(g, g.rank - 1, k * width, (k + 1) * width)

    reset, update = (
        ctx.unary("sigmoid", ctx.binary("add", gate(gates_i, k), gate(gates_h, k))) for k in (0, 1)
    )
    new = ctx.binary("add", gate(gates_i, 2), ctx.binary("mul", reset, gate(gates_h, 2)))
    new = ctx.unary("tanh", new)
    old = ctx.binary("mul", update, h)
    return ctx.binary("add", ctx.binary("mul", ctx.binary("sub", 1.0, update), new), old)


@rule("lstm_cell")
def _lstm_cell(c: Call) -> tuple[Arr, Arr]:
    x, (h, cell), w_i, w_h, *rest = c.args
    b_i, b_h = [*rest, None, None][:2]
    ctx = c.ctx
    gates = ctx.binary("add", linear(ctx, x, w_i, b_i), linear(ctx, h, w_h, b_h))
    width = h.dims[-1]
    i, f, g, o = (ctx.narrow(gates, gates.rank - 1, k * width, (k + 1) * width) for k in range(4))
    kept = ctx.binary("mul", ctx.unary("sigmoid", f), cell)
    added = ctx.binary("mul", ctx.unary("sigmoid", i), ctx.unary("tanh", g))
    cell = ctx.binary("add", kept, added)
    return ctx.binary("mul", ctx.unary("sigmoid", o), ctx.unary("tanh", cell)), cell
