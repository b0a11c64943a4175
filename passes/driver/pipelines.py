"""The standard pipelines: lists of passes in order, as gnn-opt would spell them."""

from __future__ import annotations

from typing import Literal, get_args

from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes as get_xdsl_passes

from .. import get_all_passes
from ..targets import DEFAULT, Target

CLEAN = ("canonicalize", "cse")
IMPORT = (*CLEAN, "unify-sets", *CLEAN)
"""Tidy what import made: equal graphs become one."""

NO_GRADIENTS = ("drop-stops",)
"""Where none is taken any more: before all else in programs that predict, else after autodiff."""

RESTRICT = ("restrict-rows",)
REORDER = ("reorder-linear", *CLEAN, "dce-sets")
EXPAND = ("expand-softmax",)
"""Of training after autodiff, which has a rule for the whole softmax."""
BEFORE_LAYERS = (*IMPORT, *NO_GRADIENTS, "raise", *EXPAND, *REORDER)
"""What comes before a program is cut into stages that run over chunks of rows."""
SPLIT = (*EXPAND, "split-unions", *CLEAN, "dce-sets")
"""The same of partitioned programs."""
JOIN = ("join-parts", *CLEAN, "dce-sets")
"""Of partitioned programs whose messages are copies, beside which nothing is done."""

BACKWARD = ("autodiff", "update-parameters", "seed-loss", *NO_GRADIENTS, *CLEAN, "dce-sets")
"""Add the backward program."""

AMONG_RANKS = ("insert-all-reduce", *CLEAN, "dce-sets", "verify-ranks")
"""Of partitioned programs."""

PHASES = ("hoist-invariants", "split-phases")
WEIGH = ("reorder-linear", "lower-to-intra")
"""Passes before a target's own that ask its record."""


Between = Literal["messages", "copies", "reads", "built", "sums"]
"""How rows come from other ranks: by messages that go on beside other work; by copies that ranks of
one machine make of them; read where they lie where a target can; or by messages that are all known
when a program is built, which makes no sets of them itself. With `sums` no rows come: ranks have a
graph each, and add up their gradients."""

OVERLAP: dict[Between, str] = dict.fromkeys(get_args(Between), "overlap-exchanges")
OVERLAP["copies"] = "overlap-exchanges{hide=false}"
"""Nothing hides a copy."""


def first(training: bool) -> tuple[str, ...]:
    """What makes patterns of gnnc's own of an imported program."""
    return (*IMPORT, *(() if training else NO_GRADIENTS), "raise")


def before_partition(training: bool) -> tuple[str, ...]:
    """What comes before a program is partitioned: what is narrower crosses, features or products,
    by the sizes of the whole graph."""
    return (*first(training), *REORDER)


def pipeline(training: bool, target: Target, ranks: Between | None = None) -> str:
    """The whole pipeline from an imported module to one that prints for a target, as a gnn-opt
    specification; with `ranks` from a module that is partitioned, or where ranks have graphs of
    their own. A target that is the default of its passes' options is not spelled.
    """
    reads = ranks == "reads" and target.remote_reads
    parted = ranks not in (None, "sums")
    expand = SPLIT if parted else EXPAND
    aim = "" if target.name == DEFAULT else f"{{target={target.name}}}"
    stages = [
        *first(training),
        *(() if ranks == "built" else RESTRICT),
        *(JOIN if ranks == "copies" else ()),
        *(() if training else expand),
        *REORDER,
        "infer-domains",
        "widen-domains",
        *((*BACKWARD, *expand, *REORDER, "widen-domains") if training else ()),
        *(AMONG_RANKS if parted else ()),
        *(("plan-saves",) if training else ()),
        *PHASES,
        "lower-to-intra",
        *(("publish-rows",) if reads else ()),
        *((OVERLAP[ranks],) if ranks else ()),
        *(("publish-totals",) if reads else ()),
    ]
    aimed = [stage + aim if stage in WEIGH else stage for stage in stages]
    return ",".join([*aimed, *target.tail_passes()])


def passes_of(specification: str) -> list[ModulePass]:
    """The passes that a specification names, ready to run.

    Raises:
        ValueError: a name that is no pass.
    """
    known = {**get_xdsl_passes(), **get_all_passes()}
    return list(PassPipeline.parse_spec(known, specification).passes)
