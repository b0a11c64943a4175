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
        """The gradient of the loss with its L2 penalty."""
        b = self.b
        return b.add(self.gradient, b.mul(self.parameter, self.numbers["weight_decay"]))

    def moved(self, direction: Rows) -> Rows:
        """The parameter after a step against `direction`."""
        return self.b.sub(self.parameter, self.b.mul(direction, self.numbers["rate"]))


@dataclass(frozen=True)
class Rule:
    """An update rule.

    Attributes:
        state: what is kept for a parameter, by torch's names; each has the parameter's shape, but
            `COUNT`, which is one number.
        numbers: the numbers of a step, in the order of the row that holds them.
        update: from a step and the rows of `state` to the new parameter and the new `state`.
    """

    state: tuple[str, ...]
    numbers: tuple[str, ...]
    update: Callable[[Step, Sequence[Rows]], tuple[Rows, Sequence[Rows]]]


def _adam(step: Step, state: Sequence[Rows]) -> tuple[Rows, Sequence[Rows]]:
    """Adam (Kingma and Ba, ICLR 2015, algorithm 1), with the decay of weights taken from the
    gradient or, where `keep` is below 1, from the weights (Loshchilov and Hutter, ICLR 2019); with
    a last row of state the largest second moment so far divides (Reddi et al., ICLR 2018)."""
    b, n = step.b, step.numbers
    count, mean, square = state[:3]
    g = step.decayed_gradient()
    mean = b.add(mean, b.mul(b.sub(g, mean), n["mean_weight"]))
    square = b.add(b.mul(square, n["beta2"]), b.mul(b.mul(g, g), n["square_weight"]))
    largest = [b.pointwise("maximum", x, square) for x in state[3:]]
    root = b.pointwise("sqrt", largest[0] if largest else square)
    divisor = b.add(b.mul(root, n["root_scale"]), n["eps"])
    kept = Step(b, b.mul(step.parameter, n["keep"]), g, n)
    count = b.add(count, b.const(1.0, (), rows(count).elem))
    return kept.moved(b.div(mean, divisor)), [count, mean, square, *largest]


def _sgd(step: Step, state: Sequence[Rows]) -> tuple[Rows, Sequence[Rows]]:
    return step.moved(step.decayed_gradient()), []


def _momentum(step: Step, state: Sequence[Rows]) -> tuple[Rows, Sequence[Rows]]:
    """SGD with momentum (Sutskever et al., ICML 2013, as torch has it: the rate is outside)."""
    b, n = step.b, step.numbers
    g = step.decayed_gradient()
    buffer = b.add(b.mul(state[0], n["momentum"]), b.mul(g, n["undamped"]))
    return step.moved(buffer), [buffer]


def _nesterov(step: Step, state: Sequence[Rows]) -> tuple[Rows, Sequence[Rows]]:
    """The same with the gradient looked up one step ahead."""
    b, g = step.b, step.decayed_gradient()
    _, (buffer,) = _momentum(step, state)
    return step.moved(b.add(g, b.mul(buffer, step.numbers["momentum"]))), [buffer]


_ADAM = (
    "rate",
    "weight_decay",
    "keep",
    "mean_weight",
    "beta2",
    "square_weight",
    "root_scale",
    "eps",
)
_SGD = ("rate", "weight_decay")
_MOMENTUM = (*_SGD, "momentum", "undamped")

RULES: dict[str, Rule] = {
    "adam": Rule((COUNT, "exp_avg", "exp_avg_sq"), _ADAM, _adam),
    "amsgrad": Rule((COUNT, "exp_avg", "exp_avg_sq", "max_exp_avg_sq"), _ADAM, _adam),
    "sgd": Rule((), _SGD, _sgd),
    "momentum": Rule(("momentum_buffer",), _MOMENTUM, _momentum),
    "nesterov": Rule(("momentum_buffer",), _MOMENTUM, _nesterov),
}


def updated(
    b: Builder, rule: Rule, parameter: Rows, gradient: Rows, state: Sequence[Rows], numbers: Rows
) -> list[Rows]:
    """The new parameter and the new state after a step of `rule`, in the order of `state`."""
    ones = (1,) * len(rows(parameter).dims)
    named = {
        name: b.reshape(b.slice(numbers, 0, i, i + 1), ones) for i, name in enumerate(rule.numbers)
    }
    new, kept = rule.update(Step(b, parameter, gradient, named), state)
    return [new, *kept]
