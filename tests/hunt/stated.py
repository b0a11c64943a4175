"""Differences that are none: where eager itself has no one answer, and what docs/decisions.md says
of compiled calls ("Where torch has no one answer", "Users may edit what eager has not saved")."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .compare import Difference
from .execute import Observation


@dataclass(frozen=True)
class Context:
    """The calls of a program: eagerly, compiled, and eagerly with the other precision."""

    eager: Sequence[Observation]
    compiled: Sequence[Observation]
    with_other_precision: Callable[[], Sequence[Observation]]


def reason(found: Difference, context: Context) -> str | None:
    """Why a difference is none; None where it is one."""
    if _is_of_an_edited_argument(found, context):
        return "an argument that eager has not saved"
    name = found.detail.partition(":")[0]
    x = context.eager[found.call].values.get(name)
    y = context.compiled[found.call].values.get(name)
    if x is None or y is None or x.shape != y.shape:
        return None
    if found.kind.endswith("wrong NaN") and _is_of_nothing(x, y):
        return "a sum of nothing by a factor that is no number"
    if found.kind.endswith(("wrong", "wrong integers")):
        other = context.with_other_precision()[found.call].values.get(name)
        if other is not None and _is_unsettled(x, y, other):
            return "with other precision eager differs as well"
    return None


EDITED = re.compile(r"(?!result).* was changed in place after a compiled call that is diff")


def _is_of_an_edited_argument(found: Difference, context: Context) -> bool:
    """Whether a backward refuses since the user has edited an argument, which eager has not saved
    and the compiled call has."""
    if not found.kind.startswith("raises"):
        return False
    eager, got = context.eager[found.call], context.compiled[found.call]
    refuses = got.raised == ("backward", "RuntimeError") and EDITED.match(got.message)
    return eager.raised is None and bool(refuses)


def _is_of_nothing(x: Tensor, y: Tensor) -> bool:
    """Whether a compiled call has NaN only where eager has it too, or a 0: of a sum over no rows,
    which a row of NaN that nobody reads was moved behind."""
    return bool((x.isnan() <= y.isnan()).all() and (x[y.isnan() & ~x.isnan()] == 0).all())


def _is_unsettled(x: Tensor, y: Tensor, other: Tensor) -> bool:
    """Whether eager's own value is quite another with `other` precision, at a kink or of a
    comparison of numbers that are equal but for their rounding; or whether the difference is that
    of rounding where a slope is infinite, whose error goes with the root of the precision."""
    if x.shape != other.shape:
        return False
    if not x.is_floating_point():
        return not torch.equal(x, other)
    size = x.abs().max()
    own = (x - other).abs().max() / size
    return bool(own > 0.01 or (x - y).abs().max() / size < own**2)
