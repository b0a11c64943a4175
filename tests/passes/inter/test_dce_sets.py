"""dce-sets: what nobody needs goes, sets that types name stay."""

import pytest

from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.passes.inter.autodiff import autodiff
from gnnc.passes.inter.dce_sets import dce_sets
from gnnc.passes.inter.verify_sets import verify_sets

from ..gradients import parse
from ..programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name):
    before, (after, func) = parse_module(PROGRAMS[name]), parse(PROGRAMS[name])
    autodiff(func)
    dce_sets(func)
    verify_sets(func)
    assert dce_sets(func) == 0
    same_meaning(before, after, seeds=range(2))


def test_sets_that_only_types_name_stay():
    text = """
func.func @f(%N : !inter.set<N>, %batch : !inter.rows<N, i64>, %n : !inter.rows<unit, i64>,
    %x : !inter.rows<A, f64>) -> !inter.rows<B, f64> {
  %B = inter.sized %n : !inter.set<B>
  %C = inter.sized %n : !inter.set<C>
  %dead = inter.iota %C : !inter.rows<C, i64>
  %A = inter.attach %N (batch = %batch) : !inter.set<A, batch: B, parent: N mono onto>
  %o = inter.reduce sum %x over %A along batch : !inter.rows<B, f64>
  func.return %o : !inter.rows<B, f64>
}"""
    _, func = parse(text)
    assert dce_sets(func) == 2
    names = [op.results[0].name_hint for op in func.body.block.ops if op.results]
    assert names == ["B", "A", "o"]
    verify_sets(func)
