"""reorder-linear: the same linear algebra in a cheaper order.

Rules, each in its own file, applied until none does anything more: row-wise ops move before reads
(linear/reads.py), added concatenations are joined (linear/concat_sums.py), added products of one
value are one (linear/added.py), matrices that products make are made one by one
(linear/weights.py), sums over pairs become sums over edges (linear/levels.py), masks of dropout are
factors (linear/masks.py), inner products leave sums (linear/inner.py), factors leave sums
(linear/sums.py), sums that follow from others are not done again (linear/reuse.py), a product
stands before or after an aggregation by cost (linear/aggregation.py), factors of outer products go
where they are (linear/scaled.py), chains of products are bracketed by cost (linear/chains.py),
products of concatenations and sums are done in parts by cost (linear/distribute.py). All are exact
up to rounding.

The pass runs before infer-domains and again after autodiff. The order of a product and an
aggregation is settled in the first run, backward included; the second only moves products of the
forward half that backward does not depend on.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ..analysis.costs import DEGREE
from ..function_pass import FunctionPass
from ..targets import DEFAULT, TARGETS, Target, target_of
from .linear.added import join_products
from .linear.aggregation import move_product
from .linear.chains import rebracket
from .linear.concat_sums import join_pieces
from .linear.distribute import distribute
from .linear.function import LinearFunction
from .linear.inner import take_out_product
from .linear.levels import join_levels
from .linear.masks import set_mask_apart
from .linear.reads import drop_read_of_unit, sink_reads
from .linear.reuse import reuse_sum
from .linear.scaled import share_scaled
from .linear.sums import regroup_sum
from .linear.weights import make_by_rows
from .raising.constants import drop_neutral
from .raising.patterns import contract_of_sum

_RULES = (
    drop_read_of_unit,
    drop_neutral,
    contract_of_sum,
    sink_reads,
    join_pieces,
    join_products,
    make_by_rows,
    join_levels,
    set_mask_apart,
    take_out_product,
    regroup_sum,
    reuse_sum,
    rebracket,
    distribute,
    move_product,
    share_scaled,
)


def reorder_linear(
    func: FuncOp,
    degree: float = DEGREE,
    target: Target = TARGETS[DEFAULT],
) -> None:
    """Reorders `func` until nothing changes any more."""
    LinearFunction(func, degree, target).settle("reorder-linear", _RULES)


@dataclass(frozen=True)
class ReorderLinearPass(FunctionPass):
    """Moves products before reads and out of sums, and before or after aggregations by cost."""

    name = "reorder-linear"

    degree: float = DEGREE
    target: str = DEFAULT

    def on(self, func: FuncOp) -> None:
        target = target_of(self.name, self.target)
        reorder_linear(func, self.degree, target)
