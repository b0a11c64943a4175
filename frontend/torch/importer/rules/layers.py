"""Rules of dense layers: products, normalisations, dropout and recurrent cells."""

import string
from collections.abc import Sequence
from typing import Any

from ..errors import NoRule
from ..values.products import einsum, linear, matmul
from ..values.tensors import Arr
from .registry import Call, rule, rules

rules(
    {
        "linear": lambda c: linear(c.ctx, c.x, c.tensor("weight"), c.optional("bias")),
        "matmul mm mv dot bmm": lambda c: matmul(c.ctx, c.x, c.tensor("other")),
        "outer": lambda c: einsum(c.ctx, "a,b->ab", c.x, c.tensor("other")),
    }
)


@rule("addmm")
def _addmm(c: Call) -> Arr:
    """`beta * x + alpha * (mat1 @ mat2)`; a beta of 0 keeps what is not finite in x out."""
    y = matmul(c.ctx, c.tensor("mat1"), c.tensor("mat2"))
    alpha, beta = c.arg("alpha"), c.arg("beta")
    if alpha != 1:
        y = c.ctx.binary("mul", y, alpha)
    if beta == 0:
        c.seen_in_result("input")
        return y
    return c.ctx.binary("add", c.x if beta == 1 else c.ctx.binary("mul", c.x, beta), y)


@rule("einsum")
def _einsum(c: Call) -> Arr:
    """Products from left to right; a letter is summed as soon as nobody else has it."""
    spec, xs = _equation(c.arg("args"))
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


def _equation(args: Sequence[Any]) -> tuple[str, Sequence[Arr]]:
    """The letters and the tensors of `einsum("ij,jk", a, b)`, `einsum("ij,jk", [a, b])` and
    `einsum(a, [0, 1], b, [1, 2], [0, 2])`, whose numbers are letters in their order."""
    if isinstance(args[0], str):
        listed = len(args) == 2 and isinstance(args[1], tuple | list)
        return args[0].replace(" ", ""), args[1] if listed else args[1:]
    pairs = len(args) // 2
    lists = [*args[1 : 2 * pairs : 2], *args[2 * pairs :]]
    used = sorted({n for numbers in lists for n in numbers if n is not Ellipsis})
    if any(Ellipsis in numbers for numbers in lists) or len(used) > 26:
        raise NoRule("einsum with an ellipsis, or of more than 26 dimensions")
    words = ["".join(string.ascii_lowercase[used.index(n)] for n in w) for w in lists]
    spec = "->".join([",".join(words[:pairs]), *words[pairs:]])
    return spec, args[0 : 2 * pairs : 2]


@rule("dropout", "dropout1d", "feature_dropout")
def _dropout(c: Call) -> Arr:
    p, training = c.number("p"), c.arg("training")
    if not training or p == 0:
        return c.x
    if c.op != "dropout":
        raise NoRule("dropout of whole columns")
    if p == 1:
        return c.ctx.binary("mul", c.x, 0.0)
    return dropout(c, c.x, float(p))


def dropout(c: Call, x: Arr, p: float, place: Sequence[Arr] = ()) -> Arr:
    """A dropout site: its own stream of random bits, keyed by the row and the column. `place` has
    these for numbers that are entries of other rows."""
    over = x.home
    operands = [x.v, c.key().v, *(n.v for n in place)]
    v = c.ctx.values.make(
        "dropout", operands, over, x.v.shape, x.elem, p=p, site=c.new_site(), over=over
    )
    return Arr(x.dims, v)


@rule("layer_norm")
def _layer_norm(c: Call) -> Arr:
    x, dims, ctx = c.x, _last(c), c.ctx
    centred = ctx.binary("sub", x, ctx.mean(x, dims, True))
    var = ctx.mean(ctx.binary("mul", centred, centred), dims, True)
    return _scaled(c, centred, var, c.number("eps"))


def _last(c: Call) -> list[int]:
    """The dimensions that normalized_shape names: torch sees to it that they have that size."""
    return list(range(-len(c.arg("normalized_shape")), 0))


@rule("rms_norm")
def _rms_norm(c: Call) -> Arr:
    x, eps = c.x, c.arg("eps")
    if eps is None:
        eps = 2.0**-52 if x.elem == "f64" else 2.0**-23
    return _scaled(c, x, c.ctx.mean(c.ctx.binary("mul", x, x), _last(c), True), eps)


def _scaled(c: Call, x: Arr, power: Arr, eps: float) -> Arr:
    """x of unit power, with the weight and the bias of the call."""
    w, b, ctx = c.optional("weight"), c.optional("bias"), c.ctx
    y = ctx.binary("mul", x, ctx.unary("rsqrt", ctx.binary("add", power, float(eps))))
    y = y if w is None else ctx.binary("mul", y, w)
    return y if b is None else ctx.binary("add", y, b)


@rule("batch_norm")
def _batch_norm(c: Call) -> Arr:
    x, ctx = c.x, c.ctx
    mean, var = c.optional("running_mean"), c.optional("running_var")
    training, momentum, eps = c.arg("training"), c.number("momentum"), c.number("eps")
    if x.rank != 2 or (x.axis not in (0, None)):
        raise NoRule("batch_norm of a tensor that is not rows x columns")
    if not training:
        if mean is None or var is None:
            raise NoRule("batch_norm without statistics")
        return _scaled(c, ctx.binary("sub", x, mean), var, eps)
    batch_mean = ctx.mean(x, 0)
    centred = ctx.binary("sub", x, batch_mean)
    batch_var = ctx.mean(ctx.binary("mul", centred, centred), 0)
    if mean is not None and var is not None:
        n = ctx.count(x, 0)
        some = ctx.compare("gt", n, 0.0)
        unbiased = ctx.binary("div", ctx.binary("mul", batch_var, n), ctx.binary("sub", n, 1.0))
        for name, old, new in (("running_mean", mean, batch_mean), ("running_var", var, unbiased)):
            still = ctx.flat(new)
            kept = ctx.binary("mul", old, 1.0 - momentum)
            updated = ctx.binary("add", kept, ctx.binary("mul", still, momentum))
            updated = ctx.where(some, updated, old)  # no rows tell nothing
            c.edits.append((c.form.arguments[name], updated))
    return _scaled(c, centred, batch_var, eps)


def _weights(c: Call) -> tuple[Arr, Arr, Arr | None, Arr | None]:
    """A recurrent cell's matrices for its input and its state, and their biases."""
    return c.tensor("w_ih"), c.tensor("w_hh"), c.optional("b_ih"), c.optional("b_hh")


@rule("gru_cell")
def _gru_cell(c: Call) -> Arr:
    x, h, (w_i, w_h, b_i, b_h), ctx = c.x, c.tensor("hx"), _weights(c), c.ctx
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
    x, (h, cell), (w_i, w_h, b_i, b_h), ctx = c.x, c.arg("hx"), _weights(c), c.ctx
    gates = ctx.binary("add", linear(ctx, x, w_i, b_i), linear(ctx, h, w_h, b_h))
    width = h.dims[-1]
    i, f, g, o = (ctx.narrow(gates, gates.rank - 1, k * width, (k + 1) * width) for k in range(4))
    kept = ctx.binary("mul", ctx.unary("sigmoid", f), cell)
    added = ctx.binary("mul", ctx.unary("sigmoid", i), ctx.unary("tanh", g))
    cell = ctx.binary("add", kept, added)
    return ctx.binary("mul", ctx.unary("sigmoid", o), ctx.unary("tanh", cell)), cell
