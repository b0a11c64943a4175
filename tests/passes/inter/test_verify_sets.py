"""verify-sets changes nothing, and its errors name the function and the op."""

import pytest
from xdsl.context import Context
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.meaning.check import functions, parse_module
from gnnc.passes.inter.verify_sets import VerifySetsPass, verify_sets

GOOD = """
func.func @first(%N : !inter.set<N>) {
  func.return
}
func.func @second(%N : !inter.set<N>, %g : !inter.set<g, src: N>, %x : !inter.rows<N, f32>)
    -> !inter.rows<g[src], f32> {
  %y = inter.at %g[src], %x : !inter.rows<g[src], f32>
  func.return %y : !inter.rows<g[src], f32>
}
func.func private @outside(!inter.set<N>) -> ()
"""


def test_nothing_changes():
    module = parse_module(GOOD)
    before = str(module)
    VerifySetsPass().apply(Context(), module)
    assert str(module) == before


def test_it_returns_the_sets():
    env = verify_sets(functions(parse_module(GOOD))["second"])
    assert list(env.sets) == ["N", "g"]
    assert env.codomain("g", "src") == "N"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("%N : !inter.set<N>, %g", "%g", "@second: func.func: map src of set g goes to N"),
        ("rows<N, f32>)", "rows<g, f32>)", "@second: inter.at: map src of g goes to N, but"),
        ("@first(%N : !inter.set<N>)", "@first(%x : !inter.rows<N, f32>)", "@first: func.func"),
    ],
)
def test_errors_name_the_function_and_the_op(old, new, message):
    module = parse_module(GOOD.replace(old, new))
    with pytest.raises(PassFailedException, match=message):
        VerifySetsPass().apply(Context(), module)
