"""Cutting into stages: what is stored, when it goes, and what has no form over chunks."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import rows
from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.inter.expand_softmax import ExpandSoftmaxPass
from gnnc.passes.inter.layerwise.bindings import Path, Stage
from gnnc.passes.inter.layerwise.plan import cut_layers
from gnnc.passes.inter.verify_sets import verify_sets

from ..meaning import changed
from ..programs import PROGRAMS

GRAPH = "%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf64>"


def stages_of(text: str) -> list[Stage]:
    (func,) = changed(parse_module(text), ExpandSoftmaxPass()).ops
    assert isinstance(func, FuncOp)
    stages = cut_layers(func, SetEnv.of(func))
    for s in stages:
        s.function.verify()
        verify_sets(s.function)
    return stages


def names(values: list[SSAValue]) -> list[str | None]:
    return [v.name_hint for v in values]


def body(text: str, result: str, arguments: str = GRAPH) -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{text}\n}}"


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("gat", "readout")])
def test_programs_have_stages(name: str) -> None:
    stages = stages_of(PROGRAMS[name])
    made = [m.value for s in stages for m in s.made]
    assert len(made) == len(set(made))
    known: set[SSAValue] = set()
    for s in stages:
        assert {g.value for g in s.given if not hasattr(g.value, "block")} <= known
        known |= {m.value for m in s.made}
        known -= set(s.last)


def test_a_row_that_edges_read_is_stored_and_freed() -> None:
    """Two layers with a skip connection: of the first what the second reads of other nodes, and
    what it reads of its own as it is; no row of edges."""
    stages = stages_of(
        body(
            """
  %s1 = inter.at %g[src], %x : !inter.rows<g, 4xf64>
  %a1 = inter.reduce sum %s1 over %g along dst : !inter.rows<N, 4xf64>
  %r1 = inter.relu %a1 : !inter.rows<N, 4xf64>
  %n1 = inter.neg %r1 : !inter.rows<N, 4xf64>
  %s2 = inter.at %g[src], %r1 : !inter.rows<g, 4xf64>
  %d2 = inter.at %g[dst], %r1 : !inter.rows<g, 4xf64>
  %m2 = inter.mul %s2, %d2 : !inter.rows<g, 4xf64>
  %a2 = inter.reduce sum %m2 over %g along dst : !inter.rows<N, 4xf64>
  %y = inter.add %a2, %n1 : !inter.rows<N, 4xf64>
  func.return %y : !inter.rows<N, 4xf64>""",
            "!inter.rows<N, 4xf64>",
        )
    )
    first, second = stages
    assert names([m.value for m in first.made]) == ["r1"]
    assert [(g.value.name_hint, g.sliced) for g in first.given] == [("x", False)]
    assert {(g.value.name_hint, g.sliced) for g in second.given} == {("r1", True), ("r1", False)}
    assert names(second.last) == ["r1"]
    (chunk,) = [c for c in second.chunks if c.place.key == "dst"]
    assert chunk.maps == (("to_src", Path("src", "N")),)


def test_reductions_of_all_rows_are_merged() -> None:
    (first, second) = stages_of(
        body(
            """
  %m = inter.reduce mean %x over %N along () : !inter.rows<unit, 4xf64>
  %y = inter.sub %x, %m : !inter.rows<N, 4xf64>
  func.return %y, %m : !inter.rows<N, 4xf64>, !inter.rows<unit, 4xf64>""",
            "(!inter.rows<N, 4xf64>, !inter.rows<unit, 4xf64>)",
        )
    )
    assert [m.merge for m in first.made] == ["mean"]
    assert [m.merge for m in second.made] == [None]
    assert "reduce sum" in str(first.function)


def test_rows_of_edges_that_are_read_by_number_are_stored() -> None:
    """What an edge without a value takes through a partial map."""
    stages = stages_of(
        body(
            """
  %s = inter.at %g[src], %x : !inter.rows<g, 4xf64>
  %l = inter.loops %g {remaining}
    : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
  %one = inter.const 1.0 : !inter.rows<unit, 4xf64>
  %w = inter.at %l[old], %s else %one : !inter.rows<l, 4xf64>
  %y = inter.reduce sum %w over %l along dst : !inter.rows<N, 4xf64>
  func.return %y : !inter.rows<N, 4xf64>""",
            "!inter.rows<N, 4xf64>",
        )
    )
    assert [names([m.value for m in s.made]) for s in stages] == [["s"], ["y"]]
    assert rows(stages[0].made[0].value).dom.set == "g"


REFUSED = {
    "%y = inter.reduce last %x over %N along () else %z : !inter.rows<unit, 4xf64>": (
        r"the last of all rows of N does not follow from parts"
    ),
    "%y = inter.dropout %x, %k over %N {p = 0.5, site = 0} : !inter.rows<N, 4xf64>": (
        r"%y = inter.dropout : .*it draws random numbers; call model.eval\(\) first"
    ),
}


def test_groups_that_lie_in_several_chunks() -> None:
    with pytest.raises(PassFailedException, match=r"its groups \(rel, src\) lie in several chunks"):
        stages_of(PROGRAMS["readout"])


def test_dropout_of_edges() -> None:
    with pytest.raises(PassFailedException, match="%q = inter.dropout .*draws random numbers"):
        stages_of(PROGRAMS["gat"])


@pytest.mark.parametrize("op", REFUSED)
def test_what_has_no_form_over_chunks(op: str) -> None:
    t = op.rpartition(" : ")[2]
    text = body(
        f"%z = inter.const 0.0 : !inter.rows<unit, 4xf64>\n{op}\nfunc.return %y : {t}",
        t,
        f"{GRAPH}, %k : !inter.rows<unit, i64>",
    )
    with pytest.raises(PassFailedException, match=REFUSED[op]):
        stages_of(text)
