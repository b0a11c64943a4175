"""stack-in-place keeps the meaning, where rows may lie in a stack and where they may not."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from gnnc.dialects.intra.bindings import PartOp
from gnnc.dialects.intra.loops import TraverseOp
from gnnc.dialects.intra.memory import LoadOp, StoreOp
from gnnc.dialects.intra.steps import steps
from gnnc.dialects.meaning.check import same_meaning

from ..lowered import INFER, TRAIN, after, nests, phase
from ..programs import PROGRAMS
from ..small_programs import PROGRAMS as SMALL

STACKED = """
func.func @main(%N : !inter.set<N>, %M : !inter.set<M>, %g : !inter.set<g, src: N, dst: M>,
    %x : !inter.rows<N, 3xf64> {inter.needs_grad}, %y : !inter.rows<M, 3xf64>)
    -> (!inter.rows<M, 3xf64>, !inter.rows<v, 3xf64>) {
  %u = inter.union %N, %M : !inter.set<u, parts N M>
  %v = inter.union %M, %N, %N : !inter.set<v, parts M N N>
  %i = inter.index %g[src] : !inter.rows<g, i64>
  %h = inter.attach %g (at = %i) : !inter.set<h, src: N, dst: M, at: u, parent: g mono onto>
  %a = inter.exp %x : !inter.rows<N, 3xf64>
  %b = inter.tanh %y : !inter.rows<M, 3xf64>
  %s = inter.stack %u, %a, %b : !inter.rows<u, 3xf64>
  %t = inter.stack %v, %b, %a, %a : !inter.rows<v, 3xf64>
  %e = inter.at %h[at], %s : !inter.rows<h, 3xf64>
  %r = inter.reduce sum %e over %h along dst : !inter.rows<M, 3xf64>
  %c = inter.mul %r, %b : !inter.rows<M, 3xf64>
  %w = inter.neg %t : !inter.rows<v, 3xf64>
  func.return %c, %w : !inter.rows<M, 3xf64>, !inter.rows<v, 3xf64>
}
"""
"""Rows that are stacked, stacked again, and read by others."""


def copies(module: ModuleOp) -> int:
    """The nests that copy rows to where they are stacked, and do nothing else."""

    def copied(nest: TraverseOp) -> bool:
        match list(nest.body.block.ops):
            case [LoadOp(), StoreOp() as store]:
                return isinstance(store.buffer.owner, PartOp)
            case _:
                return False

    return sum(copied(nest) for nest in nests(module))


@pytest.mark.parametrize("specification", [TRAIN, INFER], ids=["train", "infer"])
def test_rows_in_two_stacks(specification: str) -> None:
    """They lie in one of them, and are copied to the other."""
    before = after(STACKED, f"{specification},lower-to-intra")
    laid = after(before, "stack-in-place")
    same_meaning(before, laid, seeds=range(3))
    assert copies(before) == 5
    assert copies(laid) == 3
    assert len(steps(phase(laid))) < len(steps(phase(before)))
    joined = after(laid, "fuse-traversals,update-in-place,plan-memory")
    same_meaning(before, joined, seeds=range(3))


@pytest.mark.parametrize("name", ["stack and part", *PROGRAMS])
def test_programs(name: str) -> None:
    before = after({**SMALL, **PROGRAMS}[name], f"{TRAIN},lower-to-intra")
    same_meaning(before, after(before, "stack-in-place"), seeds=range(2))
