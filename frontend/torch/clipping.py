"""How a `train_step` clips gradients: the user's numbers, for a program and for torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from .optimizers import NotOneStep


@dataclass
class Clipping:
    """Bounds for each number of the gradients and for their norm; None where there is none."""

    value: float | None
    norm: float | None
    norm_type: float

    def kinds(self) -> tuple[str, ...]:
        """The ways in their order, by the names of passes/inter/gradient_clipping.py.

        Raises:
            NotOneStep: there is no rule for the norm.
        """
        kinds = [] if self.value is None else ["value"]
        if self.norm is not None:
            if self.norm_type not in (2.0, math.inf):
                raise NotOneStep(f"clipping by a norm of type {self.norm_type:g} has no rule")
            kinds.append("norm-2" if self.norm_type == 2.0 else "norm-inf")
        return tuple(kinds)

    def bounds(self) -> list[float]:
        """A number for each of `kinds`."""
        return [x for x in (self.value, self.norm) if x is not None]

    def clip(self, optimizer: Optimizer) -> None:
        """Clips the gradients that the optimizer's parameters have."""
        parameters = [p for g in optimizer.param_groups for p in g["params"]]
        if self.value is not None:
            nn.utils.clip_grad_value_(parameters, self.value)
        if self.norm is not None:
            nn.utils.clip_grad_norm_(parameters, self.norm, self.norm_type)


def bound(name: str, value: Any) -> float | None:
    """The value of an argument of this name, a bound or None.

    Raises:
        TypeError, ValueError: it is neither.
    """
    return None if value is None else _number(name, value, "None or a number of at least 0")


def kind_of_norm(value: Any) -> float:
    """The value of the argument `norm_type`, which may be "inf" as in torch.

    Raises:
        TypeError, ValueError: there is no such norm.
    """
    return _number("norm_type", math.inf if value == "inf" else value, 'a number above 0 or "inf"')


def _number(name: str, value: Any, what: str) -> float:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {what}, not {type(value).__name__}")
    number = float(value)
    if math.isnan(number) or number < 0 or (number == 0 and "above" in what):
        raise ValueError(f"{name} must be {what}, got {number:g}")
    return number


def count_of_calls(value: Any) -> int:
    """The value of the argument `accumulate`.

    Raises:
        TypeError, ValueError: it is no number of calls.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"accumulate must be a number of calls, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"accumulate must be a number of calls, at least 1, got {value}")
    return value
