"""raise: what users write becomes the ops that later passes reason about.

Constants that do nothing go (raising/constants.py), spelled-out normalisations, means, scores and
stacked sums become ops (raising/patterns.py). Loops over relations, one masked graph each, become
one typed aggregation (raising/relations.py), or rows written at once (raising/assignments.py). What
relations read of their types part by part is read at once (raising/stacked_reads.py). Sums of a
constant become counts. All is exact, where it is not bit for bit it is a reassociation.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ..function_pass import FunctionPass
from .linear.function import LinearFunction
from .linear.reads import drop_read_of_unit
from .raising.assignments import relation_assignments
from .raising.constants import drop_neutral, fold_constants, name_power, unstack
from .raising.patterns import (
    contract_of_sum,
    count_of_sum,
    guarded_rsqrt,
    mean_of_sum,
    sum_of_stack,
)
from .raising.relations import relation_loop
from .raising.stacked_reads import read_of_stack

_RULES = (
    drop_read_of_unit,
    unstack,
    fold_constants,
    drop_neutral,
    name_power,
    count_of_sum,
    guarded_rsqrt,
    mean_of_sum,
    contract_of_sum,
    sum_of_stack,
    relation_loop,
    relation_assignments,
    read_of_stack,
)


def raise_patterns(func: FuncOp) -> None:
    """Raises `func` until nothing changes any more."""
    LinearFunction(func).settle("raise", _RULES)


@dataclass(frozen=True)
class RaisePass(FunctionPass):
    """Turns spelled-out normalisations, means, scores and relation loops into the ops they mean."""

    name = "raise"

    def on(self, func: FuncOp) -> None:
        raise_patterns(func)
