"""The passes of gnnc, one a file, by the names that gnn-opt gives them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

_CLASSES = {
    "canonicalize": ("canonicalize", "CanonicalizePass"),
    "cse": ("cse", "CsePass"),
    "verify-sets": ("inter.verify_sets", "VerifySetsPass"),
    "unify-sets": ("inter.unify_sets", "UnifySetsPass"),
    "dce-sets": ("inter.dce_sets", "DceSetsPass"),
    "drop-stops": ("inter.drop_stops", "DropStopsPass"),
    "raise": ("inter.raise_", "RaisePass"),
    "partition": ("inter.partition", "PartitionPass"),
    "global-rows": ("inter.global_rows", "GlobalRowsPass"),
    "restrict-rows": ("inter.restrict_rows", "RestrictRowsPass"),
    "join-parts": ("inter.join_parts", "JoinPartsPass"),
    "reorder-linear": ("inter.reorder_linear", "ReorderLinearPass"),
    "infer-domains": ("inter.infer_domains", "InferDomainsPass"),
    "widen-domains": ("inter.widen_domains", "WidenDomainsPass"),
    "autodiff": ("inter.autodiff", "AutodiffPass"),
    "update-parameters": ("inter.update_parameters", "UpdateParametersPass"),
    "seed-loss": ("inter.seed_loss", "SeedLossPass"),
    "expand-softmax": ("inter.expand_softmax", "ExpandSoftmaxPass"),
    "split-unions": ("inter.split_unions", "SplitUnionsPass"),
    "insert-all-reduce": ("inter.insert_all_reduce", "InsertAllReducePass"),
    "verify-ranks": ("inter.verify_ranks", "VerifyRanksPass"),
    "plan-saves": ("inter.plan_saves", "PlanSavesPass"),
    "hoist-invariants": ("inter.hoist_invariants", "HoistInvariantsPass"),
    "split-phases": ("inter.split_phases", "SplitPhasesPass"),
    "lower-to-intra": ("lowering.lower_to_intra", "LowerToIntraPass"),
    "stack-in-place": ("intra.stack_in_place", "StackInPlacePass"),
    "publish-rows": ("intra.publish_rows", "PublishRowsPass"),
    "overlap-exchanges": ("intra.overlap_exchanges", "OverlapExchangesPass"),
    "publish-totals": ("intra.publish_totals", "PublishTotalsPass"),
    "fuse-traversals": ("intra.fuse_traversals", "FuseTraversalsPass"),
    "pack-members": ("intra.pack_members", "PackMembersPass"),
    "split-long-rows": ("intra.split_long_rows", "SplitLongRowsPass"),
    "update-in-place": ("intra.update_in_place", "UpdateInPlacePass"),
    "build-pipeline": ("intra.build_pipeline", "BuildPipelinePass"),
    "schedule": ("intra.schedule", "SchedulePass"),
    "schedule-grid": ("intra.schedule_grid", "ScheduleGridPass"),
    "gang-small": ("intra.gang_small", "GangSmallPass"),
    "cut-stages": ("intra.cut_stages", "CutStagesPass"),
    "interleave-rows": ("intra.interleave_rows", "InterleaveRowsPass"),
    "plan-memory": ("intra.plan_memory", "PlanMemoryPass"),
}


def _load(module: str, class_name: str) -> type[ModulePass]:
    loaded = getattr(import_module(f".{module}", __name__), class_name)
    if not (isinstance(loaded, type) and issubclass(loaded, ModulePass)):
        raise TypeError(f"{module}.{class_name} is no pass")
    return loaded


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass by name, loaded when asked for."""
    return {name: partial(_load, *where) for name, where in _CLASSES.items()}
