"""What is known of the numbers of a value."""

import pytest
from xdsl.dialects.func import FuncOp

from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.analysis.value_facts import Facts

PROGRAM = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>,
    %l : !inter.rows<g, f32>, %m : !inter.rows<N, i1>) -> !inter.rows<N, 4xf32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %most = inter.row_reduce max %x [0] : !inter.rows<N, f32>
  %column = inter.reshape %most : !inter.rows<N, 1xf32>
  %less = inter.sub %x, %column : !inter.rows<N, 4xf32>
  %e = inter.exp %less : !inter.rows<N, 4xf32>
  %sum = inter.row_reduce sum %e [0] : !inter.rows<N, f32>
  %log = inter.log %sum : !inter.rows<N, f32>
  %loose = inter.exp %x : !inter.rows<N, 4xf32>
  %loose_sum = inter.row_reduce sum %loose [0] : !inter.rows<N, f32>
  %loose_log = inter.log %loose_sum : !inter.rows<N, f32>
  %top = inter.reduce max %l over %g along dst : !inter.rows<N, f32>
  %at_dst = inter.at %g[dst], %top : !inter.rows<g, f32>
  %at_src = inter.at %g[src], %top : !inter.rows<g, f32>
  %own = inter.sub %l, %at_dst : !inter.rows<g, f32>
  %own_exp = inter.exp %own : !inter.rows<g, f32>
  %other = inter.sub %l, %at_src : !inter.rows<g, f32>
  %other_exp = inter.exp %other : !inter.rows<g, f32>
  %ones = inter.cast %m : !inter.rows<N, i64>
  %many = inter.reduce sum %ones over %N along () : !inter.rows<unit, i64>
  %count = inter.cast %many : !inter.rows<unit, f32>
  %share = inter.div %one, %count : !inter.rows<unit, f32>
  %guarded = inter.where %m, %share, %one : !inter.rows<N, f32>
  %unguarded = inter.where %m, %one, %share : !inter.rows<N, f32>
  %below = inter.lt %x, %one : !inter.rows<N, 4xi1>
  %clamped = inter.where %below, %one, %x : !inter.rows<N, 4xf32>
  %unclamped = inter.where %below, %x, %one : !inter.rows<N, 4xf32>
  %power = inter.pow %clamped, %x : !inter.rows<N, 4xf32>
  %loose_power = inter.pow %unclamped, %x : !inter.rows<N, 4xf32>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %above = inter.gt %x, %zero : !inter.rows<N, 4xi1>
  %above_other = inter.gt %less, %zero : !inter.rows<N, 4xi1>
  %multiple = inter.mul %less, %loose : !inter.rows<N, 4xf32>
  %square = inter.mul %multiple, %loose : !inter.rows<N, 4xf32>
  %elu_slope = inter.where %above, %x, %multiple : !inter.rows<N, 4xf32>
  %low_square = inter.where %above, %x, %square : !inter.rows<N, 4xf32>
  %high_exp = inter.where %above, %multiple, %x : !inter.rows<N, 4xf32>
  %wrong_slope = inter.where %above_other, %x, %multiple : !inter.rows<N, 4xf32>
  %above_row = inter.gt %x, %column : !inter.rows<N, 4xi1>
  %no_bound = inter.where %above_row, %x, %multiple : !inter.rows<N, 4xf32>
  func.return %e : !inter.rows<N, 4xf32>
}
"""


@pytest.mark.parametrize(
    ("name", "finite"),
    [
        ("e", True),
        ("log", True),
        ("loose", False),
        ("loose_log", False),
        ("own_exp", True),
        ("other_exp", False),
        ("share", False),
        ("guarded", True),
        ("unguarded", False),
        ("power", True),
        ("loose_power", False),
        ("elu_slope", True),
        ("low_square", True),
        ("high_exp", False),
        ("wrong_slope", False),
        ("no_bound", False),
    ],
)
def test_finite(name: str, finite: bool) -> None:
    """exp is, of what is not above 0; log, of a sum with exp(0) in it; a quotient by how many rows
    count, on the rows that count; a power of what is at least 1; multiples of exp(x), taken where x
    is at most a constant."""
    (func,) = parse_module(PROGRAM).body.block.ops
    assert isinstance(func, FuncOp)
    (value,) = [r for op in func.body.block.ops for r in op.results if r.name_hint == name]
    assert Facts().finite(value) is finite
