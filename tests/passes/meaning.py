"""Runs passes on a program's text and checks that its meaning stays."""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.expand_softmax import ExpandSoftmaxPass
from gnnc.passes.inter.infer_domains import InferDomainsPass
from gnnc.passes.inter.raise_ import RaisePass
from gnnc.passes.inter.reorder_linear import ReorderLinearPass
from gnnc.passes.inter.verify_sets import VerifySetsPass

SEEDS = range(3)

CLEAN: tuple[ModulePass, ...] = (CommonSubexpressionElimination(), DeadCodeElimination())
FORWARD: tuple[ModulePass, ...] = (RaisePass(), ReorderLinearPass(), *CLEAN, InferDomainsPass())
JOINT: tuple[ModulePass, ...] = (
    AutodiffPass(),
    ExpandSoftmaxPass(),
    ReorderLinearPass(),
    *CLEAN,
)


def changed(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    """A copy of `module` that the passes were run on, verified after each."""
    module = module.clone()
    for p in passes:
        p.apply(Context(), module)
        module.verify()
        VerifySetsPass().apply(Context(), module)
    return module


def unchanged(text: str | ModuleOp, *passes: ModulePass, seeds: Sequence[int] = SEEDS) -> ModuleOp:
    """Checks each pass against the interpreter; returns the last module."""
    module = parse_module(text) if isinstance(text, str) else text
    for p in passes:
        new = changed(module, p)
        same_meaning(module, new, seeds=seeds)
        module = new
    return module


def joint(text: str) -> ModuleOp:
    """A program with its gradients, after the passes that come before plan-saves."""
    return changed(parse_module(text), *FORWARD, *JOINT)
