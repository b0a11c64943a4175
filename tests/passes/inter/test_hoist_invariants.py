"""hoist-invariants: marks change nothing, and mark what depends on the graph only."""

import pytest
from xdsl.dialects.func import FuncOp

from gnnc.dialects.attributes import PREPARE
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.signature import body_ops
from gnnc.passes.analysis.dependence import closure, invariant_arguments
from gnnc.passes.inter.hoist_invariants import HoistInvariantsPass
from gnnc.passes.inter.split_phases import SplitPhasesPass

from ..meaning import changed, joint, unchanged
from ..programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_keeps_values(name: str) -> None:
    unchanged(joint(PROGRAMS[name]), HoistInvariantsPass(), SplitPhasesPass())


@pytest.mark.parametrize("name", PROGRAMS)
def test_marks_only_what_needs_no_float(name: str) -> None:
    module = changed(joint(PROGRAMS[name]), HoistInvariantsPass())
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    ops = body_ops(func)
    known = closure(ops, invariant_arguments(func, inputs=False, units=False))
    for op in ops:
        assert PREPARE not in op.attributes or op.results[0] in known


def test_inputs() -> None:
    text = """
    func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
        %x : !inter.rows<N, 3xf64> {inter.constant}, %y : !inter.rows<N, 3xf64>)
        -> !inter.rows<N, 3xf64> {
      %xs = inter.at %g[src], %x : !inter.rows<g[src], 3xf64>
      %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 3xf64>
      %o = inter.mul %a, %y : !inter.rows<N, 3xf64>
      func.return %o : !inter.rows<N, 3xf64>
    }"""
    module = parse_module(text)
    marked = changed(module, HoistInvariantsPass())
    assert "inter.prepare" in str(marked)
    no_room = changed(parse_module(text), HoistInvariantsPass(room=0.5))
    assert "inter.prepare" not in str(no_room)
    unchanged(marked, SplitPhasesPass())
