"""Comparisons, truth values, and the choice between two numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .record import Array, OperandKind, PointwiseSpec
from .spelling import infix


def _comparison(
    name: str, function: Callable[[Array, Array], Array], operator: str, kind: OperandKind
) -> PointwiseSpec:
    return PointwiseSpec(
        name, 2, function, (None, None), infix(operator), operands=kind, result="bool"
    )


RECORDS: tuple[PointwiseSpec, ...] = (
    _comparison("eq", np.equal, "==", "any"),
    _comparison("ne", np.not_equal, "!=", "any"),
    _comparison("lt", np.less, "<", "number"),
    _comparison("le", np.less_equal, "<=", "number"),
    _comparison("gt", np.greater, ">", "number"),
    _comparison("ge", np.greater_equal, ">=", "number"),
    PointwiseSpec(
        "logical_and",
        2,
        np.logical_and,
        slopes=(None, None),
        c=lambda s: s.both(s.a, s.b),
        operands="bool",
        selective=True,
    ),
    PointwiseSpec(
        "logical_or",
        2,
        np.logical_or,
        slopes=(None, None),
        c=lambda s: s.either(s.a, s.b),
        operands="bool",
        selective=True,
    ),
    PointwiseSpec(
        "logical_not",
        1,
        np.logical_not,
        slopes=(None,),
        c=lambda s: s.negated(s.a),
        operands="bool",
        involution=True,
    ),
    PointwiseSpec(
        "where",
        3,
        np.where,
        slopes=(
            None,
            lambda s: s.d.where(s.xs[0]),
            lambda s: s.d.unless(s.xs[0]),
        ),
        c=lambda s: s.select(*s.xs),
        operands="where",
    ),
)
