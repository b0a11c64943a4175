"""The standard pipelines: lists of passes in order, as gnn-opt would spell them."""

from __future__ import annotations

from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes as get_xdsl_passes

from .. import get_all_passes

CLEAN = ("canonicalize", "cse")
IMPORT = (*CLEAN, "unify-sets", *CLEAN)
"""Tidy what import made: equal graphs become one."""

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
LOWER = ("lower-to-intra", "fuse-traversals", "split-long-rows", "update-in-place")


def pipeline(training: bool, vector_bytes: int) -> str:
    """The whole pipeline from an imported module to one that prints, as a gnn-opt specification."""
    schedule = f"schedule{{target=openmp vector-bytes={vector_bytes}}}"
    stages = [
        *IMPORT,
        "raise",
        *(() if training else EXPAND),
        *REORDER,
        "infer-domains",
        "widen-domains",
        *(DIFFERENTIATE if training else ()),
        *PHASES,
        *LOWER,
        schedule,
        "cut-stages",
        "plan-memory",
    ]
    return ",".join(stages)


def passes_of(specification: str) -> list[ModulePass]:
    """The passes that a specification names, ready to run.

    Raises:
        ValueError: a name that is no pass.
    """
    known = {**get_xdsl_passes(), **get_all_passes()}
    return list(PassPipeline.parse_spec(known, specification).passes)
