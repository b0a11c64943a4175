"""The standard pipelines: lists of passes in order, as gnn-opt would spell them."""

from __future__ import annotations

from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes as get_xdsl_passes

from .. import get_all_passes
from ..targets import DEFAULT, Target

CLEAN = ("canonicalize", "cse")
IMPORT = (*CLEAN, "unify-sets", *CLEAN)
"""Tidy what import made: equal graphs become one."""

RESTRICT = ("restrict-rows",)
REORDER = ("reorder-linear", *CLEAN, "dce-sets")
EXPAND = ("expand-softmax",)
"""Of training after autodiff, which has a rule for the whole softmax."""

DIFFERENTIATE = (
    "autodiff",
    "update-parameters",
    "seed-loss",
    *CLEAN,
    "dce-sets",
    *EXPAND,
    *REORDER,
    "widen-domains",
    "plan-saves",
)
"""Add the backward program and decide what it keeps."""

PHASES = ("hoist-invariants", "split-phases")
WEIGH = ("reorder-linear", "lower-to-intra")
"""Passes before a target's own that ask its record."""


def pipeline(training: bool, target: Target) -> str:
    """The whole pipeline from an imported module to one that prints for a target, as a gnn-opt
    specification. A target that is the default of its passes' options is not spelled.
    """
    aim = "" if target.name == DEFAULT else f"{{target={target.name}}}"
    stages = [
        *IMPORT,
        "raise",
        *RESTRICT,
        *(() if training else EXPAND),
        *REORDER,
        "infer-domains",
        "widen-domains",
        *(DIFFERENTIATE if training else ()),
        *PHASES,
        "lower-to-intra",
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
