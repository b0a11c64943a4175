"""seed-loss: the meaning stays, and the backward half only scales."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from gnnc.dialects.inter.reduce import ReduceOp
from gnnc.passes.inter.plan_saves import PlanSavesPass
from gnnc.passes.inter.seed_loss import SeedLossPass
from gnnc.passes.inter.split_phases import SplitPhasesPass

from ..meaning import changed, joint, unchanged
from ..programs import PROGRAMS

LOSS = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %x : !inter.rows<N, 3xf64> {inter.needs_grad},
    %W : !inter.rows<unit, 3x2xf64> {inter.needs_grad})
    -> (!inter.rows<unit, 1xf64>) {
  %m = inter.at %g[src], %x : !inter.rows<g, 3xf64>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 3xf64>
  %h = inter.contract "k,kf->f" %a, %W : !inter.rows<N, 2xf64>
  %t = inter.tanh %h : !inter.rows<N, 2xf64>
  %s = inter.row_reduce sum %t [0] : !inter.rows<N, f64>
  %l = inter.reduce sum %s over %N along () : !inter.rows<unit, f64>
  %r = inter.reshape %l : !inter.rows<unit, 1xf64>
  func.return %r : !inter.rows<unit, 1xf64>
}
"""


def of_name(module: ModuleOp, name: str) -> FuncOp:
    (found,) = [
        f for f in module.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == name
    ]
    return found


@pytest.mark.parametrize("text", [LOSS, *PROGRAMS.values()], ids=["loss", *PROGRAMS])
def test_keeps_values(text: str) -> None:
    unchanged(joint(text), SeedLossPass(), PlanSavesPass(), SplitPhasesPass())


def test_the_backward_half_of_a_loss_only_scales() -> None:
    module = joint(LOSS)
    plain = changed(module, PlanSavesPass(), SplitPhasesPass())
    seeded = changed(module, SeedLossPass(), PlanSavesPass(), SplitPhasesPass())
    assert any(isinstance(op, ReduceOp) for op in of_name(plain, "backward").walk())
    assert not any(isinstance(op, ReduceOp) for op in of_name(seeded, "backward").walk())
