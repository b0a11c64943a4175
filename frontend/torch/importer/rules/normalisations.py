"""Rules of layers that take the mean away and divide by the deviation."""

from collections.abc import Sequence

from ..errors import NoRule
from ..values.tensors import Arr, numbers
from .registry import Call, rule


@rule("layer_norm")
def _layer_norm(c: Call) -> Arr:
    return _scaled(c, *_centred(c, c.x, _last(c)), c.number("eps"))


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
    return _weighted(c, _unit(c, x, power, eps))


def _unit(c: Call, x: Arr, power: Arr, eps: float) -> Arr:
    inverse = c.ctx.unary("rsqrt", c.ctx.binary("add", power, float(eps)))
    return c.ctx.binary("mul", x, inverse)


def _weighted(c: Call, y: Arr, rank: int = 2) -> Arr:
    """y with the weight and the bias of the call, which have numbers for columns, or for the second
    of `rank` dimensions."""
    for name, function in (("weight", "mul"), ("bias", "add")):
        if (w := c.optional(name)) is not None:
            y = c.ctx.binary(function, y, _channels(c, w, rank))
    return y


def _channels(c: Call, x: Arr, rank: int) -> Arr:
    """One number for each position of the second of `rank` dimensions."""
    for _ in range(rank - 2):
        x = c.ctx.unsqueeze(x, x.rank)
    return x


def _by_statistics(c: Call) -> Arr:
    """x by a mean and a variance that are given."""
    mean, var = c.optional("running_mean"), c.optional("running_var")
    if mean is None or var is None:
        raise NoRule(f"{c.op} without statistics")
    centred = c.ctx.binary("sub", c.x, _channels(c, mean, c.x.rank))
    y = _unit(c, centred, _channels(c, var, c.x.rank), c.number("eps"))
    return _weighted(c, y, c.x.rank)


@rule("batch_norm")
def _batch_norm(c: Call) -> Arr:
    x, ctx = c.x, c.ctx
    mean, var = c.optional("running_mean"), c.optional("running_var")
    training, momentum, eps = c.arg("training"), c.number("momentum"), c.number("eps")
    if x.rank < 2 or x.axis == 1:
        raise NoRule("batch_norm of a tensor without channels, or of as many as a set has rows")
    if not training:
        return _by_statistics(c)
    dims = [d for d in range(x.rank) if d != 1]
    batch_mean = ctx.mean(x, dims, True)
    centred = ctx.binary("sub", x, batch_mean)
    batch_var = ctx.mean(ctx.binary("mul", centred, centred), dims, True)
    if mean is not None and var is not None:
        n = ctx.count(x, dims)
        some = ctx.compare("gt", n, 0.0)
        unbiased = ctx.binary("div", ctx.binary("mul", batch_var, n), ctx.binary("sub", n, 1.0))
        for name, old, new in (("running_mean", mean, batch_mean), ("running_var", var, unbiased)):
            still = ctx.flat(Arr(list(old.dims), ctx.values.reshape(new.v, old.v.shape)))
            kept = ctx.binary("mul", old, 1.0 - momentum)
            updated = ctx.binary("add", kept, ctx.binary("mul", still, momentum))
            updated = ctx.where(some, updated, old)  # no rows tell nothing
            c.edits.append((c.form.arguments[name], updated))
    return _weighted(c, _unit(c, centred, batch_var, eps), x.rank)


@rule("instance_norm")
def _instance_norm(c: Call) -> Arr:
    """Each channel of each row by itself."""
    x, momentum = c.x, c.number("momentum")
    if x.rank < 3 or x.axis == 1:
        raise NoRule("instance_norm of a tensor that is not rows x channels x places")
    if not c.arg("use_input_stats"):
        return _by_statistics(c)
    if c.optional("running_mean") is not None or c.optional("running_var") is not None:
        raise NoRule(f"running statistics of single rows, of momentum {momentum}")
    return _weighted(c, _unit(c, *_centred(c, x, range(2, x.rank)), c.number("eps")), x.rank)


@rule("group_norm")
def _group_norm(c: Call) -> Arr:
    """Channels in groups, each group of each row by itself."""
    x, groups, ctx = c.x, c.arg("num_groups"), c.ctx
    channels = x.dims[1] if x.rank > 1 else None
    if not isinstance(channels, int) or not isinstance(groups, int) or x.merged:
        raise NoRule("group_norm of channels that are no columns, or of grouped rows")
    dims = [x.dims[0], groups, channels // groups, *x.dims[2:]]
    grouped = Arr(dims, ctx.values.reshape(x.v, numbers(dims)))
    centred, var = _centred(c, grouped, range(2, grouped.rank))
    y = _unit(c, centred, var, c.number("eps"))
    return _weighted(c, Arr(list(x.dims), ctx.values.reshape(y.v, numbers(x.dims))), x.rank)


def _centred(c: Call, x: Arr, dims: Sequence[int]) -> tuple[Arr, Arr]:
    """x without its mean over dimensions, and its variance."""
    centred = c.ctx.binary("sub", x, c.ctx.mean(x, dims, True))
    return centred, c.ctx.mean(c.ctx.binary("mul", centred, centred), dims, True)
