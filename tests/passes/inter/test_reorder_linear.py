"""reorder-linear: values and gradients stay, and the work gets less."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal, run
from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.inter.infer_domains import InferDomainsPass
from gnnc.passes.inter.raise_ import RaisePass, raise_patterns
from gnnc.passes.inter.reorder_linear import ReorderLinearPass, reorder_linear

from ..gradients import GRAPHS, agree, slopes
from ..meaning import FORWARD, JOINT, changed, joint, unchanged
from ..programs import PROGRAMS

FILES = Path(__file__).parents[3] / "filecheck" / "passes" / "inter"
PARTS = {
    f"{path.stem} {i}": part
    for path in sorted(FILES.glob("reorder_linear_*.mlir"))
    for i, part in enumerate(path.read_text().split("// -----"))
}


@pytest.mark.parametrize("part", PARTS)
def test_each_rule_keeps_values(part: str) -> None:
    unchanged(PARTS[part], ReorderLinearPass(), InferDomainsPass())
    unchanged(PARTS[part], InferDomainsPass(), ReorderLinearPass())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_values(name: str) -> None:
    unchanged(PROGRAMS[name], RaisePass(), ReorderLinearPass(), InferDomainsPass())


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_backward_half_keeps_values(name: str) -> None:
    unchanged(joint(PROGRAMS[name]), ReorderLinearPass())
    module = changed(parse_module(PROGRAMS[name]), *FORWARD, JOINT[0])
    unchanged(module, ReorderLinearPass())


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_the_new_order(name: str, graph: str) -> None:
    assert agree(slopes(PROGRAMS[name], graph, 1, [raise_patterns, reorder_linear]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_settles(name: str) -> None:
    once = changed(parse_module(PROGRAMS[name]), ReorderLinearPass())
    assert str(changed(once, ReorderLinearPass())) == str(once)


AGGREGATED = """
func.func @aggregated(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %x : !inter.rows<N, KxF> {A}, %w : !inter.rows<g, F> {B}, %d : !inter.rows<N, F> {C},
    %W : !inter.rows<unit, 3xKxF> {D}) -> !inter.rows<N, 3xF> {
  %xs = inter.at %g[src], %x : !inter.rows<g, KxF>
  %m = inter.mul %w, %xs : !inter.rows<g, KxF>
  %s = inter.reduce sum %m over %g along dst : !inter.rows<N, KxF>
  %t = inter.mul %d, %s : !inter.rows<N, KxF>
  %o = inter.contract "y,zy->z" %t, %W : !inter.rows<N, 3xF>
  func.return %o : !inter.rows<N, 3xF>
}
"""


@pytest.mark.parametrize("width", [3, 4, 6])
@pytest.mark.parametrize("degree", [2.5, 4.0])
def test_both_orders_have_one_cost(width: int, degree: float) -> None:
    """Whatever takes a gradient, the one that is chosen is not what the other one is left for."""
    for learnt in product([False, True], repeat=4):
        text = AGGREGATED.replace("K", str(width)).replace("F", "f32")
        for letter, needs in zip("ABCD", learnt, strict=True):
            text = text.replace(f"{{{letter}}}", "{inter.needs_grad}" if needs else "{}")
        once = changed(parse_module(text), ReorderLinearPass(degree))
        assert str(changed(once, ReorderLinearPass(degree))) == str(once)


# 1 / degree is infinite at a node without in-edges, which no edge reads: a factor that left its
# sum, or was multiplied with the rows before they are read, would give nan (backward: 0 * inf)
UNGUARDED = """
func.func @unguarded(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %x : !inter.rows<N, 3xf64> {inter.needs_grad}) -> !inter.rows<N, 3xf64> {
  %one = inter.const 1.0 : !inter.rows<unit, f64>
  %in = inter.count over %g along dst : !inter.rows<N, f64>
  %out = inter.count over %g along src : !inter.rows<N, f64>
  %a = inter.div %one, %in : !inter.rows<N, f64>
  %b = inter.div %one, %out : !inter.rows<N, f64>
  %ad = inter.at %g[dst], %a : !inter.rows<g, f64>
  %bs = inter.at %g[src], %b : !inter.rows<g, f64>
  %n = inter.mul %ad, %bs : !inter.rows<g, f64>
  %nc = inter.reshape %n : !inter.rows<g, 1xf64>
  %xs = inter.at %g[src], %x : !inter.rows<g, 3xf64>
  %m = inter.mul %nc, %xs : !inter.rows<g, 3xf64>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 3xf64>
  func.return %o : !inter.rows<N, 3xf64>
}
"""


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_infinities_that_nothing_reads() -> None:
    module = changed(parse_module(UNGUARDED), *FORWARD, *JOINT)
    g = SetVal(2, {"src": np.array([0, 1]), "dst": np.array([1, 2])})
    out, grad = run(module, "unguarded", SetVal(4, {}), g, np.ones((4, 3)), np.ones((4, 3)))
    assert np.isfinite(out).all()
    assert np.isfinite(grad).all()


def test_gcn_has_no_number_per_edge() -> None:
    text = PROGRAMS["gcn"].replace("%norm = inter.reshape %n1", "%norm = inter.reshape %n2")
    text = text.replace("%n1 = inter.mul %n0, %dd", "%n2 = inter.mul %ds, %dd")
    module = changed(parse_module(text), *FORWARD)
    per_edge = [
        str(r.type)
        for op in module.walk()
        for r in op.results
        if "rows<u, " in str(r.type) and "xf64" in str(r.type)
    ]
    assert per_edge == []
