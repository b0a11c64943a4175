"""torch's optimizers in terms of the rules of passes/inter/optimizers.py: which rule a parameter
follows, what torch keeps for it, and the numbers of the next step.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

from ...passes.inter.optimizers import COUNT, RULES

Group = Mapping[str, Any]


class NotOneStep(RuntimeError):
    """A step of training cannot be one program; the message says why."""


def rule_of(optimizer: Optimizer, group: Group) -> str:
    """The rule that a group of parameters follows, a key of `RULES`.

    Raises:
        NotOneStep: there is none for this optimizer, or one of its options.
    """
    kind = type(optimizer)
    if kind not in KINDS:
        *names, last = (k.__name__ for k in KINDS)
        raise NotOneStep(f"{kind.__name__} has no rule: there are {', '.join(names)} and {last}")
    for option in ("differentiable", "capturable"):
        if group.get(option):
            raise NotOneStep(f"{kind.__name__} with {option}=True has no rule")
    return KINDS[kind].rule(group)


def count_type(optimizer: Optimizer, parameter: Tensor, group: Group) -> torch.dtype:
    """The type in which the steps of a parameter are counted: that of the count that there is, else
    the one that torch chooses."""
    count = optimizer.state.get(parameter, {}).get(COUNT)
    if isinstance(count, Tensor) and count.dtype in (torch.float32, torch.float64):
        return count.dtype
    double = torch.get_default_dtype() == torch.float64 and not group.get("fused")
    return torch.float64 if double else torch.float32


def state_of(
    optimizer: Optimizer, parameter: Tensor, rule: str, count: torch.dtype
) -> dict[str, Any]:
    """What `optimizer` keeps for a parameter, made as its first step would make it; the buffer of
    SGD is None before that. A count of steps of another type than `count` becomes one of that.

    Raises:
        NotOneStep: there is state, but not all that the rule needs, or some is on another device.
    """
    names = RULES[rule].state
    if not names:
        return {}
    state = optimizer.state[parameter]
    if isinstance(optimizer, SGD):
        state.setdefault("momentum_buffer", None)
        _beside(parameter, state, names)
        return state
    if not state:
        state[COUNT] = torch.zeros((), dtype=count, device=parameter.device)
        start = optimizer.defaults.get("initial_accumulator_value", 0.0)  # of Adagrad's `sum`
        for name in names[1:]:
            state[name] = torch.full_like(parameter, start)
    if missing := [name for name in names if name not in state]:
        raise NotOneStep(f"the optimizer's state has no {missing[0]} for a parameter")
    steps = state[COUNT]
    counted_there = isinstance(steps, Tensor) and steps.is_cpu and not parameter.is_cpu
    if not isinstance(steps, Tensor) or steps.dtype != count or counted_there:
        # torch counts on the host where it does not capture; a program counts where it runs
        state[COUNT] = torch.as_tensor(steps).to(parameter.device, count)
    _beside(parameter, state, names)
    return state


def _beside(parameter: Tensor, state: Mapping[str, Any], names: Sequence[str]) -> None:
    """
    Raises:
        NotOneStep: what is kept by one of the names is on another device than the parameter.
    """
    for name in names:
        x = state[name]
        if not isinstance(x, Tensor) or (x.is_cpu and parameter.is_cpu):
            continue
        if x.device != parameter.device:
            where = "the CPU" if parameter.is_cpu else parameter.device
            raise NotOneStep(
                f"the optimizer's {name} of a parameter is on the device {x.device}, the parameter "
                f"on {where}"
            )


def numbers_of(optimizer: Optimizer, group: Group, steps: float, first: bool) -> list[float]:
    """The numbers of the next step after so many, in the order that the rule of `group` has them.
    `first`: nothing is kept of an earlier one."""
    return KINDS[type(optimizer)].numbers(group, steps, first)


def _sgd_rule(group: Group) -> str:
    if not group["momentum"]:
        return "sgd"
    return "nesterov" if group["nesterov"] else "momentum"


def _sgd(group: Group, steps: float, first: bool) -> list[float]:
    numbers = [float(group["lr"]), float(group["weight_decay"]), _sign(group)]
    if not group["momentum"]:
        return numbers
    undamped = 1.0 if first else 1.0 - group["dampening"]
    return [*numbers, group["momentum"], undamped]


def _adam(group: Group, steps: float, first: bool, decoupled: bool = False) -> list[float]:
    rate, decay = float(group["lr"]), float(group["weight_decay"])
    beta1, beta2 = (float(b) for b in group["betas"])
    step = steps + 1
    # AdamW of older versions of torch has no such option
    decoupled = group.get("decoupled_weight_decay", decoupled)
    return [
        rate / (1 - beta1**step),
        0.0 if decoupled else decay,
        _sign(group),
        1 - rate * decay if decoupled else 1.0,
        1 - beta1,
        beta2,
        1 - beta2,
        1 / math.sqrt(1 - beta2**step),
        group["eps"],
    ]


def _adagrad(group: Group, steps: float, first: bool) -> list[float]:
    rate = float(group["lr"]) / (1 + steps * group["lr_decay"])
    return [rate, float(group["weight_decay"]), _sign(group), group["eps"]]


def _rmsprop_rule(group: Group) -> str:
    kept = ["centered"] if group["centered"] else []
    return "-".join(["rmsprop", *kept, *(["momentum"] if group["momentum"] > 0 else [])])


def _rmsprop(group: Group, steps: float, first: bool) -> list[float]:
    alpha = group["alpha"]
    numbers = [float(group["lr"]), float(group["weight_decay"]), _sign(group)]
    numbers += [alpha, 1 - alpha, group["eps"]]
    return [*numbers, group["momentum"]] if group["momentum"] > 0 else numbers


def _sign(group: Group) -> float:
    return -1.0 if group.get("maximize") else 1.0


@dataclass(frozen=True)
class Kind:
    """How a class of optimizers is said in terms of rules: the rule of a group, and its numbers."""

    rule: Callable[[Group], str]
    numbers: Callable[[Group, float, bool], list[float]]


def _adam_rule(group: Group) -> str:
    return "amsgrad" if group["amsgrad"] else "adam"


KINDS: dict[type[Optimizer], Kind] = {
    Adam: Kind(_adam_rule, _adam),
    AdamW: Kind(_adam_rule, functools.partial(_adam, decoupled=True)),
    SGD: Kind(_sgd_rule, _sgd),
    Adagrad: Kind(lambda group: "adagrad", _adagrad),
    RMSprop: Kind(_rmsprop_rule, _rmsprop),
}
"""The optimizers whose steps are compiled; a subclass may do something else."""


class Counts:
    """How many steps tensors count, remembered as long as nobody else writes to them: to read a
    tensor takes longer."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, int, float]] = {}

    def of(self, count: Tensor) -> float:
        known = self._known.get(id(count))
        if known is not None and known[0] is count and known[1] == count._version:
            return known[2]
        return float(count)

    def note(self, count: Tensor, value: float) -> None:
        """`count` holds `value` now."""
        self._known[id(count)] = (count, count._version, value)


class NumberRows:
    """Rows of numbers for a call of a program, overwritten by the next: to make tensors anew takes
    longer."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, torch.dtype, int], tuple[Tensor, NDArray[Any]]] = {}

    def hold(self, place: int, dtype: torch.dtype, numbers: Sequence[float]) -> Tensor:
        """The numbers as a tensor; rows of one call have different places."""
        key = (place, dtype, len(numbers))
        if key not in self._held:
            row = torch.empty(len(numbers), dtype=dtype)
            self._held[key] = (row, row.numpy())
        row, array = self._held[key]
        array[:] = numbers
        return row
