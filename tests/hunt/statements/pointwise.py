"""Statements that compute element by element, in every form that a call can have."""

from __future__ import annotations

from ..writer import Nothing, Production, Writer, joined

UNARY = (
    "torch.tanh({a})",
    "{a}.tanh()",
    "torch.sigmoid({a})",
    "F.relu({a})",
    "{a}.relu()",
    "torch.relu(input={a})",
    "F.leaky_relu({a}, 0.1)",
    "F.leaky_relu({a}, negative_slope=0.3)",
    "F.elu({a})",
    "F.elu({a}, alpha=0.5)",
    "F.selu({a})",
    "F.celu({a}, 0.5)",
    "F.gelu({a})",
    "F.gelu({a}, approximate='tanh')",
    "F.silu({a})",
    "F.softplus({a})",
    "F.softplus({a}, beta=2)",
    "F.hardtanh({a})",
    "F.relu6({a})",
    "F.softsign({a})",
    "F.logsigmoid({a}.contiguous())",  # strides of others: docs/decisions.md
    "{a}.abs()",
    "torch.abs({a})",
    "torch.square({a})",
    "{a} ** 2",
    "torch.pow({a}, 2)",
    "torch.pow({a}.abs() + 0.5, 0.5)",
    "{a}.pow(exponent=3)",
    "torch.exp(torch.tanh({a}))",
    "torch.log1p({a}.abs())",
    "torch.log({a}.abs() + 0.5)",
    "torch.log2({a}.abs() + 0.5)",
    "torch.rsqrt({a}.abs() + 1)",
    "torch.sqrt({a} * {a} + 0.5)",
    "torch.sin({a})",
    "{a}.cos()",
    "torch.atan({a})",
    "torch.erf({a})",
    "torch.reciprocal({a}.abs() + 1)",
    "{a} * 0.5",
    "0.5 * {a} + 1",
    "1 - {a}",
    "1 / ({a}.abs() + 1)",
    "{a} / 3",
    "-{a}",
    "torch.neg({a})",
    "{a}.clamp(min=-0.5)",
    "torch.clamp({a}, -1, 1)",
    "{a}.clamp(max=0.7)",
    "torch.clip({a}, -0.5, None)",
    "{a}.clone()",
    "F.dropout({a}, 0.5, False)",
    "F.dropout({a}, p=0.0, training=True)",
    "torch.where({a} > 0, {a}, 0.3 * {a})",
    "{a}.masked_fill({a} > 1, 0.5)",
    "torch.masked_fill({a}, {a} < -1, value=-1.0)",
    "{a}.double().to({a}.dtype)",
    "torch.clamp_min({a}, 0.1)",
)
MAYBE_ITSELF = ("F.dropout({a}", ".to({a}.dtype)")
"""Forms that give their operand as it is, in some mode or of some dtype."""
ODD_UNARY = (
    "torch.sign({a})",
    "torch.floor({a})",
    "{a}.ceil()",
    "torch.round({a})",
    "{a}.trunc()",
    "{a} ** 0",
    "torch.sqrt({a})",
    "torch.log({a})",
    "1 / {a}",
    "{a}.sqrt()",
    "{a} % 0.5",
    "{a} // 0.3",
    "torch.fmod({a}, 0.4)",
    "torch.isnan({a}).to({a}.dtype)",
    "torch.nan_to_num({a}, 0.5)",
    "{a}.sign() * {a}",
    "{a} * 1e-40 * 1e30",
    "{a} + 0.1",
    "{a} * 0.1 - 0.3",
    "torch.pow(2.0, {a})",
    "{a}.to(torch.long).to({a}.dtype)",
    "torch.asin(torch.tanh({a}))",
    "torch.erfinv(torch.tanh({a}))",
    "torch.logit({a}.sigmoid())",
    "torch.expm1({a})",
    "torch.special.xlogy({a}, {a}.abs() + 1)",
)
BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "torch.add({a}, {b})",
    "torch.add({a}, {b}, alpha=2)",
    "torch.add({a}, other={b}, alpha=0.5)",
    "{a}.add({b}, alpha=-1)",
    "torch.sub({a}, {b}, alpha=2)",
    "torch.subtract({a}, {b})",
    "torch.rsub({a}, {b}, alpha=0.5)",
    "torch.add({a}, 2, {b})",
    "torch.mul({a}, {b})",
    "{a}.mul({b})",
    "torch.multiply({a}, other={b})",
    "torch.div({a}, {b}.abs() + 1)",
    "{a} / ({b} * {b} + 1)",
    "torch.true_divide({a}, {b}.abs() + 1)",
    "torch.maximum({a}, {b})",
    "torch.max({a}, other={b})",
    "torch.max({a}, {b})",
    "torch.minimum({a}, {b})",
    "torch.fmax({a}, {b})",
    "torch.where({b} > 0, {a}, {b})",
    "{a}.where({b} > 0, {b})",
    "torch.lerp({a}, {b}, 0.3)",
    "torch.addcmul({a}, {b}, {b}, value=0.5)",
    "torch.addcdiv({a}, {b}, {b}.abs() + 1, value=2)",
    "torch.hypot({a}, {b} + 3)",
)
ODD_BINARY = (
    "torch.atan2({a}, {b})",
    "{a} / {b}",
    "torch.div({a}, {b}, rounding_mode='floor')",
    "torch.floor_divide({a}, {b}.abs() + 1)",
    "torch.remainder({a}, {b}.abs() + 1)",
    "torch.maximum({a}, {b}) - torch.minimum({a}, {b})",
    "torch.pow({a}.abs() + 0.1, {b})",
    "torch.copysign({a}, torch.nan_to_num({b}))",
    "torch.heaviside({a}, {b})",
    "torch.logaddexp({a}, {b})",
    "torch.where({a} == {b}, {a}, {b})",
    "torch.where(torch.isclose({a}, {b}), {a}, {b})",
)


def unary(g: Writer) -> None:
    a = g.float()
    form = g.draw.choice(UNARY)
    text = form.format(a=g.inner(a))
    if any(part in form for part in MAYBE_ITSELF):
        g.let_same(text, a)
    else:
        g.let(text, a.dims)


def odd_unary(g: Writer) -> None:
    a = g.float()
    g.let(g.draw.choice(ODD_UNARY).format(a=g.inner(a)), a.dims)


def binary(g: Writer) -> None:
    two(g, BINARY)


def odd_binary(g: Writer) -> None:
    two(g, ODD_BINARY)


def two(g: Writer, texts: tuple[str, ...]) -> None:
    a = g.float()
    b = g.float(lambda v: joined(a.dims, v.dims) is not None)
    dims = joined(a.dims, b.dims)
    assert dims is not None
    text = g.draw.choice(texts)
    if text.startswith("{a}.where") and dims != a.dims:
        raise Nothing
    g.let(text.format(a=g.inner(a), b=g.inner(b)), dims)


def by_number(g: Writer) -> None:
    """A Python number: an argument, or computed."""
    a = g.float()
    t = g.pick(lambda v: v.kind == "scalar")
    text = g.one(
        "{a} * {t}", "{a} + {t}", "{a} / ({t} + 1)", "torch.mul({a}, {t})", "{a} - 2 * {t}"
    )
    g.let(text.format(a=a.name, t=t.name), a.dims)


def compared(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims))
    b = g.like(a)
    text = g.one("{a} > {b}", "{a} <= 0.2", "torch.gt({a}, {b})", "{a}.lt(0)", "{a} != {b}")
    g.let(text.format(a=a.name, b=b.name), a.dims, "bool")


def chosen(g: Writer) -> None:
    """Floats by a mask."""
    m = g.pick(lambda v: v.kind == "bool" and bool(v.dims))
    a = g.float(lambda v: joined(v.dims, m.dims) == v.dims)
    text = g.one(
        "torch.where({m}, {a}, 0.5 * {a})",
        "{a}.masked_fill({m}, 0.0)",
        "torch.where({m}, {a}, torch.zeros_like({a}))",
        "{a} * {m}",
        "{a} * {m}.to({a}.dtype)",
        "{a}.where({m}, torch.tensor(1.0, dtype={a}.dtype))",
        "torch.where({m}, {a}, 2.0)",
    )
    g.let(text.format(m=m.name, a=a.name), a.dims)


STATEMENTS: dict[Production, int] = {unary: 8, binary: 8, by_number: 1, compared: 1, chosen: 1}
ODD: dict[Production, int] = {odd_unary: 3, odd_binary: 2}
