"""Differences that are none: where eager itself has no one answer, and what docs/decisions.md says
of compiled calls ("Where torch has no one answer", "Users may edit what eager has not saved")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .compare import Difference, difference_of, largest
from .execute import Observation
from .program import Program

Calls = Callable[[], Sequence[Observation]]


@dataclass(frozen=True)
class Context:
    """A program and its calls: eagerly, compiled, eagerly with the other precision, and eagerly
    in ways that torch could do as well, each with what is said of it."""

    program: Program
    eager: Sequence[Observation]
    compiled: Sequence[Observation]
    with_other_precision: Calls
    otherwise: Mapping[str, Calls]


def reason(found: Difference, context: Context) -> str | None:
    """Why a difference is none; None where it is one."""
    k, name = found.call, found.detail.partition(":")[0]
    if found.kind.startswith("raises"):
        edited = is_of_an_edited_argument(context.eager[k], context.compiled[k])
        return "an argument that eager has not saved" if edited else None
    x, y = (side[k].values.get(name) for side in (context.eager, context.compiled))
    if x is None or y is None or x.shape != y.shape:
        return None
    if found.kind.endswith("wrong NaN") and context.program.settings.get("values") == "nan":
        if _is_of_nothing(x, y):
            return "a sum of nothing by a factor that is no number"
        if "gradient" in found.kind and _is_of_nothing(y, x) and _is_flat(context.program):
            return "a slope of 0 behind which another is no number"
    if "wrong" not in found.kind:
        return None
    z = context.with_other_precision()[k].values.get(name)
    if z is not None and _is_unsettled(x, y, z):
        return "with other precision eager differs as well"
    for told, calls in context.otherwise.items():
        seen = calls()[k].values
        if difference_of(name, y, seen.get(name), None, largest(seen, name)) is None:
            return told
    return None


EDITED = re.compile(r".* inplace operation: (?!result)\S+ is at version \d+, and the compiled call")


def is_of_an_edited_argument(eager: Observation, got: Observation) -> bool:
    """Whether a backward refuses since the user has edited an argument, which eager has not saved
    and the compiled call has."""
    refuses = got.raised == ("backward", "RuntimeError") and EDITED.match(got.message)
    return eager.raised is None and bool(refuses)


def _is_of_nothing(x: Tensor, y: Tensor) -> bool:
    """Whether `y` has NaN only where `x` has it too, or a 0. A compiled sum over no rows has where
    a row of NaN that nobody reads was moved behind it, and an eager gradient where a slope of 0 did
    not end it."""
    return bool((x.isnan() <= y.isnan()).all() and (x[y.isnan() & ~x.isnan()] == 0).all())


FLAT = re.compile(r"\b(sign|floor|ceil|round|trunc|heaviside)_?\(")


def _is_flat(program: Program) -> bool:
    """Whether a function of a program has a slope of 0 everywhere."""
    return bool(FLAT.search(program.code))


def _is_unsettled(x: Tensor, y: Tensor, other: Tensor) -> bool:
    """Whether eager's own value is quite another with `other` precision, at a kink or of a
    comparison of numbers that are equal but for their rounding; or whether the difference is that
    of rounding where a slope is infinite, whose error goes with the root of the precision."""
    if x.shape != other.shape:
        return False
    if not x.is_floating_point():
        return not torch.equal(x, other)
    if not torch.equal(x.isinf() * x.sign(), (other.isinf() * other.sign()).to(x.dtype)):
        return True
    size = x.abs().max()
    own = (x - other).abs().max() / size
    return bool(own > 0.01 or (x - y).abs().max() / size < own**2)


class PositiveZeros(TorchFunctionMode):
    """Where rows are added to a -0, nothing among them, there is a 0."""

    ADDING = frozenset({"index_add", "scatter_add", "index_put", "scatter_reduce"})

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.__name__ in self.ADDING:
            return out + 0.0
        if func.__name__.removesuffix("_") in self.ADDING:
            out.data.add_(0.0)  # unseen by autograd
        return out


class OtherZeros(TorchFunctionMode):
    """Where torch takes one of 0 and -0 for the larger, it could have been the other."""

    CHOOSING = frozenset({"max", "min", "maximum", "minimum", "amax", "amin", "clamp"})

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.__name__ not in self.CHOOSING or not isinstance(out, Tensor):
            return out
        return torch.where(out == 0, -out, out)


OTHERWISE: Mapping[str, Callable[[], TorchFunctionMode]] = {
    "a sum of nothing that is added to -0": PositiveZeros,
    "of 0 and -0 either is the larger": OtherZeros,
}
