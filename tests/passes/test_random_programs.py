"""All passes of the inter level on random programs: values and gradients stay."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.dce_sets import DceSetsPass
from gnnc.passes.inter.expand_softmax import ExpandSoftmaxPass
from gnnc.passes.inter.hoist_invariants import HoistInvariantsPass
from gnnc.passes.inter.infer_domains import InferDomainsPass
from gnnc.passes.inter.plan_saves import PlanSavesPass
from gnnc.passes.inter.raise_ import RaisePass
from gnnc.passes.inter.reorder_linear import ReorderLinearPass
from gnnc.passes.inter.split_phases import SplitPhasesPass

from .meaning import CLEAN, changed
from .random_programs import Drawer

FORWARD = (RaisePass(), ReorderLinearPass(), *CLEAN, InferDomainsPass())
BACKWARD = (
    AutodiffPass(),
    *CLEAN,
    ExpandSoftmaxPass(),
    ReorderLinearPass(),
    *CLEAN,
    DceSetsPass(),
)
TOLERANCE = 1e-7


def check(seed: int) -> None:
    """Raises where a pass changes a value of the program that `seed` draws."""
    plain = Drawer(seed).module()
    plain.verify()
    module = plain
    for p in FORWARD:
        module = kept(module, p)
    # the gradients of the new order are those of the plain program
    joint = changed(module, AutodiffPass())
    same_meaning(changed(plain, AutodiffPass()), joint, seeds=(0, 1), tolerance=TOLERANCE)
    for p in BACKWARD[1:]:
        joint = kept(joint, p)
    for p in (PlanSavesPass(), HoistInvariantsPass(), SplitPhasesPass()):
        joint = kept(joint, p)


def kept(module: ModuleOp, p: object) -> ModuleOp:
    new = changed(module, p)  # type: ignore[arg-type]
    same_meaning(module, new, seeds=(0, 1), tolerance=TOLERANCE)
    return new


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int) -> None:
    check(seed)


@pytest.mark.long
def test_many_random_programs() -> None:
    for seed in range(25, 1000):
        check(seed)
