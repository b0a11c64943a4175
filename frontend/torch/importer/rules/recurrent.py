"""Rules of recurrent layers: cells, and sequences of a constant number of steps, step by step."""

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import NoRule
from ..values.context import Context
from ..values.products import linear
from ..values.tensors import Arr
from .layers import dropped
from .registry import Call, rule

State = tuple[Arr, ...]
"""What a cell hands on: what it gives first, then what only its next step reads."""

Weights = Sequence[Arr | None]
"""A cell's matrices for its input and its state, their biases, and the projection of what it gives;
None in the place of what it lacks."""

Step = Callable[[Context, Arr, State, Weights], State]

_CELLS_AT_MOST = 16
"""Steps times layers times directions: each is code of its own, which a C compiler works at longer
than torch would run it."""


def _gates(ctx: Context, x: Arr, h: Arr, weights: Weights) -> tuple[Arr, Arr]:
    """What the input and the state add to the gates."""
    w_i, w_h, b_i, b_h = weights[:4]
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
    h = ctx.binary("mul", ctx.unary("sigmoid", o), ctx.unary("tanh", cell))
    projection = weights[4]
    return h if projection is None else linear(ctx, h, projection, None), cell


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
    weights = [c.tensor("w_ih"), c.tensor("w_hh"), *biases, None]
    after = _STEPS[c.op.removesuffix("_cell")](c.ctx, c.x, state, weights)
    return after if len(after) > 1 else after[0]


@rule(*_STEPS)
def _sequence(c: Call) -> tuple[Arr, ...]:
    """All steps of all layers, from what each layer and direction begins with; what the last layer
    gives at each step, and what each layer and direction ends with."""
    ctx, hx = c.ctx, c.arg("hx")
    if "batch_sizes" in c.arguments:
        raise NoRule("sequences that are packed")
    begun: State = tuple(hx) if isinstance(hx, tuple | list) else (c.tensor("hx"),)
    layers, ways, time = c.arg("num_layers"), 1 + c.arg("bidirectional"), int(c.arg("batch_first"))
    p, training = c.number("dropout"), c.arg("train")
    steps, weights = _steps(c, time, layers * ways), _weights(c, begun, layers * ways)
    xs = [ctx.select(c.x, time, t) for t in range(steps)]
    ended: list[State] = []
    for layer in range(layers):
        if layer:
            xs = [dropped(c, x, p if training else 0) for x in xs]
        given: list[list[Arr]] = [[] for _ in xs]
        for way in range(ways):
            cell = layer * ways + way
            state: State = tuple(ctx.select(h, 0, cell) for h in begun)
            for t in reversed(range(steps)) if way else range(steps):
                state = _STEPS[c.op](ctx, xs[t], state, weights[cell])
                given[t].append(state[0])
            ended.append(state)
        xs = [ys[0] if ways == 1 else ctx.concat(ys, ys[0].rank - 1) for ys in given]
    ends = (_stacked(ctx, states, 0) for states in zip(*ended, strict=True))
    return _stacked(ctx, xs, time), *ends


def _steps(c: Call, time: int, cells: int) -> int:
    steps = c.x.dims[time]
    if not isinstance(steps, int):
        raise NoRule("a sequence along rows, whose number of steps changes from call to call")
    if not 0 < steps * cells <= _CELLS_AT_MOST:
        raise NoRule(f"{steps} steps of {cells} cells, which are too many to be written one by one")
    return steps


def _weights(c: Call, begun: State, cells: int) -> list[Weights]:
    """Of each layer and direction; torch has them in one list."""
    flat = list(c.arg("params"))
    biased, projected = c.arg("has_biases"), begun[0].dims[-1] != begun[-1].dims[-1]
    each = len(flat) // cells
    if each * cells != len(flat) or each != 2 + 2 * biased + projected:
        raise NoRule(f"a layer of {len(flat)} tensors of weights")
    out: list[Weights] = []
    for k in range(cells):
        mine = flat[k * each : (k + 1) * each]
        biases = mine[2:4] if biased else [None, None]
        out.append([*mine[:2], *biases, mine[-1] if projected else None])
    return out


def _stacked(ctx: Context, xs: Sequence[Arr], dim: int) -> Arr:
    return ctx.concat([ctx.unsqueeze(x, dim) for x in xs], dim)
