"""How gradients are clipped in front of a step of an optimizer, as operations on their rows.

The bounds are data. Formulas are those of `torch.nn.utils.clip_grad_value_` and `clip_grad_norm_`:
the norm is that of all gradients as one vector, and where one of them is NaN all of them are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from ...dialects.inter.builder import Builder
from ...dialects.inter.types import UNIT, rows

Rows = SSAValue
Gradients = Mapping[str, Rows]


def clipped(b: Builder, gradients: Gradients, kinds: Sequence[str], bounds: Rows) -> Gradients:
    """The gradients clipped in each of these ways (keys of `CLIPS`), one after the other; `bounds`
    is one row with a number for each."""
    for i, kind in enumerate(kinds):
        bound = b.reshape(b.slice(bounds, 0, i, i + 1), ())
        gradients = CLIPS[kind](b, gradients, bound)
    return gradients


def _each(b: Builder, gradients: Gradients, bound: Rows) -> Gradients:
    """Each number of each gradient between -bound and bound."""
    out: dict[str, Rows] = {}
    for name, g in gradients.items():
        top = _aligned(b, bound, g)
        out[name] = b.pointwise("minimum", b.pointwise("maximum", g, b.pointwise("neg", top)), top)
    return out


def _by_length(b: Builder, gradients: Gradients, bound: Rows) -> Gradients:
    """All gradients scaled down so far that their Euclidean norm is below the bound."""
    squares = _totals(b, "sum", [b.mul(g, g) for g in gradients.values()])
    return _scaled(b, gradients, b.pointwise("sqrt", functools.reduce(b.add, squares)), bound)


def _by_largest(b: Builder, gradients: Gradients, bound: Rows) -> Gradients:
    """All gradients scaled down so far that their largest number is below the bound."""
    sizes = _totals(b, "max", [b.pointwise("abs", g) for g in gradients.values()])
    largest = functools.reduce(lambda x, y: b.pointwise("maximum", x, y), sizes)
    return _scaled(b, gradients, largest, bound)


CLIPS: dict[str, Callable[[Builder, Gradients, Rows], Gradients]] = {
    "value": _each,
    "norm-2": _by_length,
    "norm-inf": _by_largest,
}


def _totals(b: Builder, kind: str, blocks: Sequence[Rows]) -> list[Rows]:
    """For each block the sum or maximum of all its numbers, in the most precise of their types."""
    widest = f64 if any(rows(x).elem == f64 for x in blocks) else f32
    out: list[Rows] = []
    for x in blocks:
        t = rows(x)
        total = b.row_reduce(kind, x, range(len(t.dims)))
        if t.dom.set != UNIT:
            total = b.reduce(kind, total, t.dom)
        out.append(b.cast(total, widest))
    return out


def _scaled(b: Builder, gradients: Gradients, norm: Rows, bound: Rows) -> Gradients:
    elem = rows(norm).elem
    # a norm of 0 divides nothing by 0; below the bound nothing changes
    ratio = b.div(b.cast(bound, elem), b.add(norm, b.const(1e-6, (), elem)))
    factor = b.pointwise("minimum", ratio, b.const(1.0, (), elem))
    return {name: b.mul(g, _aligned(b, factor, g)) for name, g in gradients.items()}


def _aligned(b: Builder, number: Rows, g: Rows) -> Rows:
    """One number of a row's type and rank."""
    t = rows(g)
    return b.reshape(b.cast(number, t.elem), (1,) * len(t.dims))
