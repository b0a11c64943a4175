"""widen-domains keeps values, wherever it is told to widen, and widens where sizes say so."""

import pytest

from gnnc.dialects.inter.types import rows
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.analysis.costs import note_sizes, note_subsets
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.expand_softmax import ExpandSoftmaxPass
from gnnc.passes.inter.infer_domains import infer_domains
from gnnc.passes.inter.plan_saves import PlanSavesPass
from gnnc.passes.inter.reorder_linear import ReorderLinearPass
from gnnc.passes.inter.split_phases import SplitPhasesPass
from gnnc.passes.inter.widen_domains import WidenDomainsPass, widen_domains

from ..gradients import parse
from ..meaning import CLEAN, FORWARD, changed, unchanged
from ..programs import PROGRAMS
from ..random_programs import Drawer

EVERYWHERE = WidenDomainsPass(few=0.0)
"""Takes every set for one of few rows."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name):
    unchanged(PROGRAMS[name], *FORWARD, EVERYWHERE)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    """The gradients of what was widened, and all that follows."""
    plain = Drawer(seed).module()
    wide = changed(plain, *FORWARD, EVERYWHERE, AutodiffPass())
    same_meaning(changed(plain, AutodiffPass()), wide, seeds=(0, 1), tolerance=1e-7)
    rest = (ExpandSoftmaxPass(), ReorderLinearPass(), *CLEAN, PlanSavesPass(), SplitPhasesPass())
    same_meaning(wide, changed(wide, *rest), seeds=(0, 1), tolerance=1e-7)


READOUT = """
func.func @main(%B : !inter.set<B>, %N : !inter.set<N, batch: B>,
    %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>) -> !inter.rows<B, 5xf32> {
  %m = inter.at %g[src], %x : !inter.rows<g, 5xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 5xf32>
  %o = inter.reduce sum %h over %N along batch : !inter.rows<B, 5xf32>
  func.return %o : !inter.rows<B, 5xf32>
}
"""


@pytest.mark.parametrize(
    ("counts", "stats"),
    [
        ({"B": 32, "N": 1000, "g": 4000}, {"B": 1562}),  # graphs of nodes; four edges are usual
        ({"B": 900, "N": 1000, "g": 60_000}, {"g": 6_400_000}),
        ({"B": 900, "N": 1000, "g": 300}, {"g": 25_000}),  # fewer than nodes: in powers of 2
        ({"B": 0, "N": 1000, "g": 0}, None),
    ],
)
def test_an_unusual_shape_is_noted(counts, stats):
    _, func = parse(READOUT)
    note_sizes(func, counts)
    found = func.attributes.get("inter.stats")
    assert (found and {k: v.value.data for k, v in found.data.items()}) == stats


LINEAR = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>,
    %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %m = inter.at %g[src], %h : !inter.rows<g, 4xf32>
  %o = inter.reduce max %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}
"""


@pytest.mark.parametrize(
    ("nodes", "edges", "domain"),
    [
        (100_000, 800_000, "N"),
        (100_000, 80_000, "N"),
        (100_000, 60_000, "g"),
        (100_000, 9_000, "g"),
        (100, 9, "g"),  # the shape counts
        (100, 0, "N"),  # empty today
        (0, 0, "N"),
    ],
)
def test_by_the_sizes_of_a_graph(nodes, edges, domain):
    _, func = parse(LINEAR)
    infer_domains(func)
    note_sizes(func, {"N": nodes, "g": edges})
    widen_domains(func)
    (product,) = [op for op in func.body.block.ops if op.name == "inter.contract"]
    assert str(rows(product.results[0]).dom) == domain


SAMPLED = """
func.func @main(%A : !inter.set<A>, %N : !inter.set<N, id: A>,
    %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<A, 5xf32>,
    %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32> {
  %y = inter.at %N[id], %x : !inter.rows<N, 5xf32>
  %h = inter.contract "k,kf->f" %y, %W : !inter.rows<N, 4xf32>
  %t = inter.tanh %h : !inter.rows<N, 4xf32>
  %m = inter.at %g[src], %t : !inter.rows<g, 4xf32>
  %o = inter.reduce max %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}
"""


@pytest.mark.parametrize(
    ("share", "product", "message"), [(0.9, "N[id]", "g[src.id]"), (0.4, "N", "g[src]")]
)
def test_edges_read_what_is_computed_at_sampled_nodes(share, product, message):
    """The nodes of a batch, of all nodes: what is read of them by edges follows."""
    module, func = parse(SAMPLED)
    note_subsets(func, {"N": share})
    infer_domains(func)
    widen_domains(func)
    (contract,) = [op for op in func.body.block.ops if op.name == "inter.contract"]
    (read,) = [op for op in func.body.block.ops if op.results and "%m" in str(op).split(" =")[0]]
    assert str(rows(contract.results[0]).dom) == product
    assert str(rows(read.results[0]).dom) == message
    same_meaning(parse(SAMPLED)[0], module, seeds=(0, 1, 2), tolerance=1e-9)
