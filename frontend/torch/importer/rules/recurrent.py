"""Rules of recurrent cells, and of recurrent layers over one step, as message passing has them
(`gru(m.unsqueeze(0), h)`). Longer sequences run in torch: step by step they are code that a C
compiler works at for longer than torch runs it."""

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import NoRule
from ..values.context import Context
from ..values.products import linear
from ..values.tensors import Arr
from .registry import Call, rule

State = tuple[Arr, ...]
"""What a cell hands on: what it gives first, then what only its next step reads."""

Weights = Sequence[Arr | None]
"""A cell's matrices for its input and its state, and their biases; None in the place of what it
lacks."""

Step = Callable[[Context, Arr, State, Weights], State]


def _gates(ctx: Context, x: Arr, h: Arr, weights: Weights) -> tuple[Arr, Arr]:
    """What the input and the state add to the gates."""
    w_i, w_h, b_i, b_h = weights
    assert w_i is not None and w_h is not None
    return linear(ctx, x, w_i, b_i), linear(ctx, h, w_h, b_h)


def _parts(ctx: Context, gates: Arr, count: int) -> list[Arr]:
    dim = gates.rank - 1
    whole = gates.dims[dim]
    if not isinstance(whole, int):
        raise NoRule("gates whose number is not constant")
    width = whole // count
    return [ctx.narrow(gates, dim, k * width, (k + 1) * width) for k in range(count)]


def _gru(ctx: Context, x: Arr, state: State, weights: Weights) -> State:
    (h,) = state
    of_x, of_h = (_parts(ctx, g, 3) for g in _gates(ctx, x, h, weights))
    reset, update = (
        ctx.unary("sigmoid", ctx.binary("add", a, b)) for a, b in zip(of_x[:2], of_h[:2])
    )
    new = ctx.unary("tanh", ctx.binary("add", of_x[2], ctx.binary("mul", reset, of_h[2])))
    old = ctx.binary("mul", update, h)
    return (ctx.binary("add", ctx.binary("mul", ctx.binary("sub", 1.0, update), new), old),)


def _lstm(ctx: Context, x: Arr, state: State, weights: Weights) -> State:
    h, cell = state
    i, f, g, o = _parts(ctx, ctx.binary("add", *_gates(ctx, x, h, weights)), 4)
    kept = ctx.binary("mul", ctx.unary("sigmoid", f), cell)
    added = ctx.binary("mul", ctx.unary("sigmoid", i), ctx.unary("tanh", g))
    cell = ctx.binary("add", kept, added)
    return ctx.binary("mul", ctx.unary("sigmoid", o), ctx.unary("tanh", cell)), cell


def _simple(activation: str) -> Step:
    def step(ctx: Context, x: Arr, state: State, weights: Weights) -> State:
        return (ctx.unary(activation, ctx.binary("add", *_gates(ctx, x, *state, weights))),)

    return step


_STEPS: dict[str, Step] = {
    "gru": _gru,
    "lstm": _lstm,
    "rnn_tanh": _simple("tanh"),
    "rnn_relu": _simple("relu"),
}


@rule(*(f"{kind}_cell" for kind in _STEPS))
def _cell(c: Call) -> Any:
    hx = c.arg("hx")
    state: State = tuple(hx) if isinstance(hx, tuple | list) else (c.tensor("hx"),)
    biases = c.optional("b_ih"), c.optional("b_hh")
    weights = [c.tensor("w_ih"), c.tensor("w_hh"), *biases]
    after = _STEPS[c.op.removesuffix("_cell")](c.ctx, c.x, state, weights)
    return after if len(after) > 1 else after[0]


@rule(*_STEPS)
def _one_step(c: Call) -> tuple[Arr, ...]:
    """All layers, in one direction or both, for a sequence of one step."""
    ctx, x, hx, params = c.ctx, c.x, c.arg("hx"), c.arg("params")
    layers, both, biases = c.arg("num_layers"), c.arg("bidirectional"), c.arg("has_biases")
    time, dropout, train = 1 if c.arg("batch_first") else 0, c.number("dropout"), c.arg("train")
    directions, arrays = 2 if both else 1, 4 if biases else 2
    if x.rank != 3 or x.dims[time] != 1:
        raise NoRule("a recurrent layer over sequences of more than one step")
    if len(params) != layers * directions * arrays:
        raise NoRule("a recurrent layer whose states are projected")
    if train and dropout and layers > 1:
        raise NoRule("dropout between recurrent layers")
    states: State = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    given, found = ctx.select(x, time, 0), list[State]()
    for layer in range(layers):
        for k in range(layer * directions, (layer + 1) * directions):
            before = tuple(ctx.select(s, 0, k) for s in states)
            weights: Weights = (*params[k * arrays : (k + 1) * arrays], None, None)[:4]
            found.append(_STEPS[c.op](ctx, given, before, weights))
        given = ctx.concat([after[0] for after in found[-directions:]], 1)
    after = (ctx.concat([ctx.unsqueeze(y, 0) for y in ys], 0) for ys in zip(*found, strict=True))
    return ctx.unsqueeze(given, time), *after
