"""The update rules of optimizers, as operations on the rows of a parameter.

A rule says what is kept for a parameter between steps, which numbers a step takes, and how the new
rows follow. The numbers are data, so a schedule of learning rates or another weight decay compiles
nothing anew; they are computed in double precision by the caller, also what depends on the count of
steps. Formulas and their order of operations are those of `torch.optim`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.inter.builder import Builder
from ...dialects.inter.types import rows

Rows = SSAValue

COUNT = "step"
"""The count of steps so far: a number of the state, a float."""


@dataclass(frozen=True)
class Step:
    """What a rule works on: a parameter, its gradient, and the numbers of this step by name."""

    b: Builder
    parameter: Rows
    gradient: Rows
    numbers: Mapping[str, Rows]

    def decayed_gradient(self) -> Rows:
        """The gradient of the loss, or where `sign` is -1 of what is to be maximised, with its L2
        penalty."""
        b, n = self.b, self.numbers
        own = b.mul(self.gradient, n["sign"])
        return b.add(own, b.mul(self.parameter, n["weight_decay"]))

    def moved(self, direction: Rows) -> Rows:
        """The parameter after a step against `direction`."""
        return self.b.sub(self.parameter, self.b.mul(direction, self.numbers["rate"]))


State = dict[str, Rows]
"""What is kept for a parameter, by torch's names."""


@dataclass(frozen=True)
class Rule:
    """An update rule.

    Attributes:
        state: what is kept for a parameter, by torch's names; each has the parameter's shape, but
            `COUNT`, which is one number.
        numbers: the numbers of a step, in the order of the row that holds them.
        update: from a step and the `state` to the new parameter and the new `state`, of which
            `COUNT` is not its business.
    """

    state: tuple[str, ...]
    numbers: tuple[str, ...]
    update: Callable[[Step, State], tuple[Rows, State]]


def _adam(step: Step, state: State) -> tuple[Rows, State]:
    """Adam (Kingma and Ba, ICLR 2015, algorithm 1), with the decay of weights taken from the
    gradient or, where `keep` is below 1, from the weights (Loshchilov and Hutter, ICLR 2019); where
    the largest second moment so far is kept, that divides (Reddi et al., ICLR 2018)."""
    b, n = step.b, step.numbers
    g, mean = step.decayed_gradient(), state["exp_avg"]
    mean = b.add(mean, b.mul(b.sub(g, mean), n["mean_weight"]))
    square = b.add(b.mul(state["exp_avg_sq"], n["beta2"]), b.mul(b.mul(g, g), n["square_weight"]))
    new = {"exp_avg": mean, "exp_avg_sq": square}
    if (largest := state.get("max_exp_avg_sq")) is not None:
        square = new["max_exp_avg_sq"] = b.pointwise("maximum", largest, square)
    divisor = b.add(b.mul(b.pointwise("sqrt", square), n["root_scale"]), n["eps"])
    kept = Step(b, b.mul(step.parameter, n["keep"]), g, n)
    return kept.moved(b.div(mean, divisor)), new


def _sgd(step: Step, state: State) -> tuple[Rows, State]:
    return step.moved(step.decayed_gradient()), {}


def _momentum(step: Step, state: State) -> tuple[Rows, State]:
    """SGD with momentum (Sutskever et al., ICML 2013, as torch has it: the rate is outside)."""
    b, n = step.b, step.numbers
    g = step.decayed_gradient()
    buffer = b.add(b.mul(state["momentum_buffer"], n["momentum"]), b.mul(g, n["undamped"]))
    return step.moved(buffer), {"momentum_buffer": buffer}


def _nesterov(step: Step, state: State) -> tuple[Rows, State]:
    """The same with the gradient looked up one step ahead."""
    b, g = step.b, step.decayed_gradient()
    _, new = _momentum(step, state)
    ahead = b.mul(new["momentum_buffer"], step.numbers["momentum"])
    return step.moved(b.add(g, ahead)), new


def _adagrad(step: Step, state: State) -> tuple[Rows, State]:
    """Adagrad (Duchi et al., JMLR 2011, the diagonal form)."""
    b, g = step.b, step.decayed_gradient()
    total = b.add(state["sum"], b.mul(g, g))
    divisor = b.add(b.pointwise("sqrt", total), step.numbers["eps"])
    return step.moved(b.div(g, divisor)), {"sum": total}


def _rmsprop(step: Step, state: State) -> tuple[Rows, State]:
    """RMSprop (Hinton, Coursera lecture 6e); where the mean gradient is kept its square leaves the
    divisor (Graves, 2013, section 4.2), where a buffer is kept there is momentum."""
    b, n = step.b, step.numbers
    g = step.decayed_gradient()
    square = b.add(b.mul(state["square_avg"], n["alpha"]), b.mul(b.mul(g, g), n["square_weight"]))
    new = {"square_avg": square}
    if (mean := state.get("grad_avg")) is not None:
        mean = new["grad_avg"] = b.pointwise("lerp", mean, g, n["square_weight"])
        square = b.sub(square, b.mul(mean, mean))
    direction = b.div(g, b.add(b.pointwise("sqrt", square), n["eps"]))
    if (buffer := state.get("momentum_buffer")) is not None:
        direction = b.add(b.mul(buffer, n["momentum"]), direction)
        new["momentum_buffer"] = direction
    return step.moved(direction), new


_SGD = ("rate", "weight_decay", "sign")
_MOMENTUM = (*_SGD, "momentum", "undamped")
_ADAM = (*_SGD, "keep", "mean_weight", "beta2", "square_weight", "root_scale", "eps")
_ADAGRAD = (*_SGD, "eps")
_RMSPROP = (*_SGD, "alpha", "square_weight", "eps")
_SQUARE = (COUNT, "square_avg")

RULES: dict[str, Rule] = {
    "adam": Rule((COUNT, "exp_avg", "exp_avg_sq"), _ADAM, _adam),
    "amsgrad": Rule((COUNT, "exp_avg", "exp_avg_sq", "max_exp_avg_sq"), _ADAM, _adam),
    "sgd": Rule((), _SGD, _sgd),
    "momentum": Rule(("momentum_buffer",), _MOMENTUM, _momentum),
    "nesterov": Rule(("momentum_buffer",), _MOMENTUM, _nesterov),
    "adagrad": Rule((COUNT, "sum"), _ADAGRAD, _adagrad),
    "rmsprop": Rule(_SQUARE, _RMSPROP, _rmsprop),
    "rmsprop-momentum": Rule((*_SQUARE, "momentum_buffer"), (*_RMSPROP, "momentum"), _rmsprop),
    "rmsprop-centered": Rule((*_SQUARE, "grad_avg"), _RMSPROP, _rmsprop),
    "rmsprop-centered-momentum": Rule(
        (*_SQUARE, "momentum_buffer", "grad_avg"), (*_RMSPROP, "momentum"), _rmsprop
    ),
}


def updated(
    b: Builder, rule: Rule, parameter: Rows, gradient: Rows, state: Sequence[Rows], numbers: Rows
) -> list[Rows]:
    """The new parameter and the new state after a step of `rule`, in the order of `state`."""
    ones = (1,) * len(rows(parameter).dims)
    named = {
        name: b.reshape(b.slice(numbers, 0, i, i + 1), ones) for i, name in enumerate(rule.numbers)
    }
    old = dict(zip(rule.state, state, strict=True))
    new, kept = rule.update(Step(b, parameter, gradient, named), old)
    if (count := old.get(COUNT)) is not None:
        kept[COUNT] = b.add(count, b.const(1.0, (), rows(count).elem))
    return [new, *(kept[name] for name in rule.state)]
