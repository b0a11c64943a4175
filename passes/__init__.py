"""The passes of gnnc, one a file, by the names that gnn-opt gives them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

_CLASSES = {
    "verify-sets": ("verify_sets", "VerifySetsPass"),
    "unify-sets": ("unify_sets", "UnifySetsPass"),
    "dce-sets": ("dce_sets", "DceSetsPass"),
    "raise": ("raise_", "RaisePass"),
    "reorder-linear": ("reorder_linear", "ReorderLinearPass"),
    "infer-domains": ("infer_domains", "InferDomainsPass"),
    "widen-domains": ("widen_domains", "WidenDomainsPass"),
    "autodiff": ("autodiff", "AutodiffPass"),
    "update-parameters": ("update_parameters", "UpdateParametersPass"),
    "seed-loss": ("seed_loss", "SeedLossPass"),
    "expand-softmax": ("expand_softmax", "ExpandSoftmaxPass"),
    "plan-saves": ("plan_saves", "PlanSavesPass"),
    "hoist-invariants": ("hoist_invariants", "HoistInvariantsPass"),
    "split-phases": ("split_phases", "SplitPhasesPass"),
    "lower-to-intra": ("lower_to_intra", "LowerToIntraPass"),
    "fuse-traversals": ("fuse_traversals", "FuseTraversalsPass"),
    "spread-rows": ("spread_rows", "SpreadRowsPass"),
    "update-in-place": ("update_in_place", "UpdateInPlacePass"),
    "schedule": ("schedule", "SchedulePass"),
    "plan-memory": ("plan_memory", "PlanMemoryPass"),
}


def _load(module: str, class_name: str) -> type[ModulePass]:
    loaded = getattr(import_module(f".{module}", __name__), class_name)
    if not (isinstance(loaded, type) and issubclass(loaded, ModulePass)):
        raise TypeError(f"{module}.{class_name} is no pass")
    return loaded


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass by name, loaded when asked for."""
    return {name: partial(_load, *where) for name, where in _CLASSES.items()}
