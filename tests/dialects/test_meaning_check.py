"""same_meaning sees what a wrong pass does, and accepts what a right one may do."""

import pytest
from xdsl.utils.exceptions import InterpretationError

from gnnc.dialects.meaning.check import (
    MeaningChanged,
    functions,
    parse_module,
    result_attributes,
    same,
    same_meaning,
)

GOOD = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf64>)
    -> !inter.rows<N, 2xf64> {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 2xf64>
  %o = inter.reduce sum %xs over %g along dst : !inter.rows<N, 2xf64>
  func.return %o : !inter.rows<N, 2xf64>
}"""


def changed(old, new):
    return parse_module(GOOD.replace(old, new))


def test_equal_programs():
    same_meaning(parse_module(GOOD), parse_module(GOOD))
    same_meaning(parse_module(GOOD), changed("g[src], 2xf64>", "g, 2xf64>"))  # other storage


@pytest.mark.parametrize(
    "old, new", [("sum", "mean"), ("along dst", "along src"), ("g[src], %x", "g[dst], %x")]
)
def test_mutants_are_caught(old, new):
    if "dst], %x" in new:
        mutant = parse_module(GOOD.replace(old, new).replace("rows<g[src]", "rows<g[dst]"))
    else:
        mutant = changed(old, new)
    with pytest.raises(MeaningChanged, match=r"@f on the graph of seed .: result 0 differs"):
        same_meaning(parse_module(GOOD), mutant)


def test_the_message_shows_the_graph():
    with pytest.raises(MeaningChanged, match=r"g: \d+ rows, src=\[\d"):
        same_meaning(parse_module(GOOD), changed("sum", "mean"))


def test_a_crash_after_the_pass_is_a_change():
    broken = changed(
        "%o = inter", "%b = inter.as_unit %N, %x : !inter.rows<unit, 99x2xf64>\n%o = inter"
    )
    with pytest.raises(MeaningChanged, match="set N has . rows, the program needs 99"):
        same_meaning(parse_module(GOOD), broken, sizes={"N": 3})


def test_more_results_may_be_added_and_none_taken_away():
    two = parse_module(
        GOOD.replace(
            "-> !inter.rows<N, 2xf64>", "-> (!inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>)"
        )
        .replace("return %o", "return %o, %x")
        .replace("2xf64>\n}", "2xf64>, !inter.rows<N, 2xf64>\n}")
    )
    same_meaning(parse_module(GOOD), two)
    with pytest.raises(MeaningChanged, match="gave 2 results and gives 1 now"):
        same_meaning(two, parse_module(GOOD))


PHASES = """
func.func @prepare(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>)
    -> (!inter.rows<N, f64> {inter.name = "deg"}) {
  %d = inter.count over %g along dst : !inter.rows<N, f64>
  func.return %d : !inter.rows<N, f64>
}
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, f64>, %deg : !inter.rows<N, f64>)
    -> (!inter.rows<N, f64> {inter.name = "y"},
        !inter.rows<N, f64> {inter.name = "s", inter.saved}) {
  %y = inter.mul %x, %deg : !inter.rows<N, f64>
  func.return %y, %deg : !inter.rows<N, f64>, !inter.rows<N, f64>
}
func.func @backward(%N : !inter.set<N>, %s : !inter.rows<N, f64>, %d_y : !inter.rows<N, f64>)
    -> (!inter.rows<N, f64> {inter.name = "dx", inter.grad = "x"}) {
  %dx = inter.mul %s, %d_y : !inter.rows<N, f64>
  func.return %dx : !inter.rows<N, f64>
}
"""
WHOLE = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f64>,
    %d_y : !inter.rows<N, f64>)
    -> (!inter.rows<N, f64> {inter.grad = "x"}, !inter.rows<N, f64>) {
  %d = inter.count over %g along dst : !inter.rows<N, f64>
  %y = inter.mul %x, %d : !inter.rows<N, f64>
  %dx = inter.mul %d, %d_y : !inter.rows<N, f64>
  func.return %dx, %y : !inter.rows<N, f64>, !inter.rows<N, f64>
}
"""


def test_phases_are_one_program():
    """Gradients come last from the phases, wherever they stood before."""
    same_meaning(parse_module(WHOLE), parse_module(PHASES))
    wrong = parse_module(PHASES.replace("mul %s, %d_y", "add %s, %d_y"))
    with pytest.raises(MeaningChanged, match="result 0 differs"):
        same_meaning(parse_module(WHOLE), wrong)


def test_phases_themselves_can_be_checked():
    same_meaning(parse_module(PHASES), parse_module(PHASES))
    with pytest.raises(MeaningChanged, match="@backward"):
        same_meaning(
            parse_module(PHASES), parse_module(PHASES.replace("mul %s, %d_y", "add %s, %d_y"))
        )


def test_what_cannot_be_run_is_said():
    text = """
    func.func @f(%N : !inter.set<N>, %x : !inter.rows<unit, 3xf64>) -> !inter.rows<N, f64> {
      %a = inter.as_rows %N, %x : !inter.rows<N, f64>
      func.return %a : !inter.rows<N, f64>
    }"""
    same_meaning(parse_module(text), parse_module(text))  # N is given its 3 rows
    with pytest.raises(InterpretationError, match="@f: no random arguments suit the program"):
        same_meaning(parse_module(text), parse_module(text), sizes={"N": 4})


def test_same():
    assert same([1.0, float("nan")], [1.0 + 1e-12, float("nan")])
    assert not same([1.0], [1.001])
    assert not same([1, 2], [1, 3]) and not same([1.0], [1.0, 2.0])


def test_result_attributes():
    forward = functions(parse_module(PHASES))["forward"]
    assert ["inter.saved" in a for a in result_attributes(forward)] == [False, True]


def test_functions_without_a_body_are_left_out():
    text = GOOD + "\nfunc.func private @outside(!inter.set<N>) -> ()"
    same_meaning(parse_module(text), parse_module(text))
