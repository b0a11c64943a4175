"""update-in-place keeps the meaning, where it writes over arguments and where it must not."""

import pytest

from gnnc.dialects.intra.bindings import InputOp
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.inter.optimizers import RULES
from gnnc.passes.targets.openmp import OPENMP

from ..inter.test_update_parameters import program
from ..lowered import after

BEFORE, AFTER = pipeline(True, OPENMP).split(",update-in-place")

RUNNING = """
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, 3xf64>, %g : !inter.set<g, src: N, dst: N>,
    %mean : !inter.rows<unit, 3xf64>, %seen : !inter.rows<N, 3xf64>)
    -> (!inter.rows<N, 3xf64>, !inter.rows<unit, 3xf64> {inter.update = "mean"},
        !inter.rows<N, 3xf64> {inter.update = "seen"}) {
  %s = inter.reduce sum %x over %N along () : !inter.rows<unit, 3xf64>
  %m = inter.add %s, %mean : !inter.rows<unit, 3xf64>
  %y = inter.sub %x, %mean : !inter.rows<N, 3xf64>
  %e = inter.at %g[src], %seen : !inter.rows<g, 3xf64>
  %a = inter.reduce sum %e over %g along dst : !inter.rows<N, 3xf64>
  %n = inter.add %a, %seen : !inter.rows<N, 3xf64>
  func.return %y, %m, %n : !inter.rows<N, 3xf64>, !inter.rows<unit, 3xf64>, !inter.rows<N, 3xf64>
}
"""
"""A statistic that all rows read, and rows that their neighbours read."""


SUMMED = """
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, 4xf64>)
    -> (!inter.rows<unit, 4xf64>, !inter.rows<N, 4xf64> {inter.update = "x"}) {
  %half = inter.const 0.5 : !inter.rows<unit, f64>
  %new = inter.mul %x, %half : !inter.rows<N, 4xf64>
  %s = inter.reduce sum %new over %N along () : !inter.rows<unit, 4xf64>
  func.return %s, %new : !inter.rows<unit, 4xf64>, !inter.rows<N, 4xf64>
}
"""
"""A product that a total adds factor by factor."""


def in_place(module: object) -> set[str]:
    ops = module.walk()  # type: ignore[attr-defined]
    return {op.gives.data for op in ops if isinstance(op, InputOp) and op.gives is not None}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dims", ["3", "40x32x16"])
def test_steps_of_optimizers(rule: str, dims: str) -> None:
    before = after(program(rule, dims), BEFORE)
    shared = after(before, f"update-in-place{AFTER}")
    same_meaning(before, shared, seeds=range(2))
    state = [f"new_{name}" for name in RULES[rule].state]
    assert in_place(shared) == {"new_W", *state}


def test_arguments_that_others_read() -> None:
    before = after(RUNNING, pipeline(False, OPENMP).split(",update-in-place")[0])
    shared = after(before, "update-in-place")
    same_meaning(before, shared, seeds=range(4))
    assert in_place(shared) == {"m"}


def test_products_that_are_summed_later() -> None:
    before = after(SUMMED, pipeline(False, OPENMP).split(",update-in-place")[0])
    shared = after(before, "update-in-place")
    same_meaning(before, shared, seeds=range(4))
    assert in_place(shared) == set()


def test_sharing_twice_changes_nothing() -> None:
    once = after(program("adam"), f"{BEFORE},update-in-place")
    assert str(after(once, "update-in-place")) == str(once)
