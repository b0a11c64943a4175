"""unify-sets: what it merges, what it must not, and that values stay what they were."""

import pytest

from gnnc.dialects.inter.types import SetType
from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.passes.inter.unify_sets import unify_sets
from gnnc.passes.inter.verify_sets import verify_sets

from ..gradients import parse
from ..programs import PROGRAMS

HEAD = """func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %h : !inter.set<h, src: N, dst: N>, %x : !inter.rows<N, 3xf64>, %w : !inter.rows<g, f64>)"""

TWO_GRAPHS = (
    HEAD
    + """ -> (!inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>) {
  %c = inter.const 0.0 : !inter.rows<unit, f64>
  %m1 = inter.gt %w, %c : !inter.rows<g, i1>
  %a1 = inter.filter %g, %m1 : !inter.set<a1, src: N, dst: N, parent: g mono>
  %a2 = inter.loops %a1 {remaining}
    : !inter.set<a2, src: N mono onto, dst: N mono onto, old: a1 partial>
  %a = inter.union %a1, %a2 : !inter.set<a, src: N onto, dst: N onto, parts a1 a2>
  %s = inter.at %a[src], %x : !inter.rows<a[src], 3xf64>
  %o = inter.reduce sum %s over %a along dst : !inter.rows<N, 3xf64>
  %c2 = inter.const 0.0 : !inter.rows<unit, f64>
  %m2 = inter.gt %w, %c2 : !inter.rows<g, i1>
  %b1 = inter.filter %g, %m2 : !inter.set<b1, src: N, dst: N, parent: g mono>
  %b2 = inter.loops %b1 {remaining}
    : !inter.set<b2, src: N mono onto, dst: N mono onto, old: b1 partial>
  %b = inter.union %b1, %b2 : !inter.set<b, src: N onto, dst: N onto, parts b1 b2>
  %t = inter.at %b[src], %o : !inter.rows<b[src], 3xf64>
  %p = inter.reduce sum %t over %b along dst : !inter.rows<N, 3xf64>
  func.return %o, %p : !inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>
}
"""
)


def sets(func) -> list[str]:
    """The names that the body gives birth to."""
    types = [r.type for op in func.body.block.ops for r in op.results]
    return [t.label for t in types if isinstance(t, SetType)]


@pytest.mark.parametrize("name", [*PROGRAMS, "two graphs"])
def test_meaning(name):
    text = TWO_GRAPHS if name == "two graphs" else PROGRAMS[name]
    before, after = parse_module(text), parse_module(text)
    unify_sets(after.body.block.first_op)
    after.verify()
    verify_sets(after.body.block.first_op)
    same_meaning(before, after)


def test_equal_masks_make_equal_sets_and_so_on_up():
    _, func = parse(TWO_GRAPHS)
    assert unify_sets(func) == 3
    assert sets(func) == ["a1", "a2", "a"]
    assert unify_sets(func) == 0


@pytest.mark.parametrize(
    "one,two",
    [
        (
            "filter %g {no_loops} : !inter.set<NAME, src: N, dst: N, parent: g mono>",
            "filter %h {no_loops} : !inter.set<NAME, src: N, dst: N, parent: h mono>",
        ),
        (
            "loops %g : !inter.set<NAME, src: N mono onto, dst: N mono onto>",
            "loops %g {remaining} : !inter.set<NAME, src: N mono onto, dst: N mono onto, "
            "old: g partial>",
        ),
        (
            "union %g, %h : !inter.set<NAME, src: N, dst: N, parts g h>",
            "union %h, %g : !inter.set<NAME, src: N, dst: N, parts h g>",
        ),
        ("range 3 : !inter.set<NAME>", "range 4 : !inter.set<NAME>"),
    ],
    ids=["operands", "properties", "order", "size"],
)
def test_different_sets_stay(one, two):
    text = (
        HEAD
        + " {\n"
        + "".join(
            f"  %{name} = inter.{op.replace('NAME', name)}\n"
            for name, op in (("a", one), ("b", two), ("c", one))
        )
    )
    _, func = parse(text + "  func.return\n}")
    assert unify_sets(func) == 1
    assert sets(func) == ["a", "b"]


def test_signature_follows():
    _, func = parse("""
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %y : !inter.rows<b, f64>,
    %z : !inter.rows<b[src], f64>, %h : !inter.set<h, to: b>) -> !inter.rows<b, f64> {
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, parent: g mono>
  %b = inter.filter %g {no_loops} : !inter.set<b, src: N, dst: N, parent: g mono>
  func.return %y : !inter.rows<b, f64>
}""")
    unify_sets(func)
    verify_sets(func)
    assert "b" not in str(func.function_type).replace("unit", "").split("inter.set<N>")[1]


def test_ten_layers_share_one_graph():
    layer = """
  %l{i} = inter.loops %g : !inter.set<l{i}, src: N mono onto, dst: N mono onto>
  %u{i} = inter.union %g, %l{i} : !inter.set<u{i}, src: N onto, dst: N onto, parts g l{i}>
  %s{i} = inter.at %u{i}[src], %y{i} : !inter.rows<u{i}[src], 3xf64>
  %y{j} = inter.reduce sum %s{i} over %u{i} along dst : !inter.rows<N, 3xf64>"""
    body = "".join(layer.format(i=i, j=i + 1) for i in range(10))
    text = (
        HEAD.replace("%x", "%y0")
        + f"""-> !inter.rows<N, 3xf64> {{{body}
  func.return %y10 : !inter.rows<N, 3xf64>
}}"""
    )
    before, (after, func) = parse_module(text), parse(text)
    assert unify_sets(func) == 18
    same_meaning(before, after, seeds=range(2))
