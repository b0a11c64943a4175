"""restrict-rows keeps values and gradients, and restricts where sizes say so."""

import pytest

from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.passes.analysis.costs import note_subsets
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.expand_softmax import ExpandSoftmaxPass
from gnnc.passes.inter.plan_saves import PlanSavesPass
from gnnc.passes.inter.restrict_rows import RestrictRowsPass, restrict_rows
from gnnc.passes.inter.split_phases import SplitPhasesPass
from gnnc.passes.inter.widen_domains import WidenDomainsPass

from ..gradients import parse
from ..meaning import CLEAN, FORWARD, changed, unchanged
from ..programs import GRAPH, PROGRAMS, TYPED
from ..random_programs import Drawer

ALWAYS = RestrictRowsPass(share=2.0)
"""Restricts whatever is read at some rows only."""
MASK = "%k : !inter.rows<N, i1>"


def on_rows(program: str, subset: str = "%f = inter.filter %N, %k") -> str:
    """A program of `programs.py` that gives a sum of its last result at some rows."""
    head, last = program.rstrip().rstrip("}").rstrip().rsplit("\n", 1)
    value, kind = last.split("func.return ")[1].split(" : ")
    row = kind.removeprefix("!inter.rows<N, ").removesuffix(">")
    head = head.replace("%x : ", f"{MASK}, %x : ", 1)
    start, _, body = head.partition("->")
    return f"""{start}-> !inter.rows<unit, {row}> {{{body.split("{", 1)[1]}
  %cf0 = inter.const 0 : !inter.rows<unit, i64>
  %cf1 = inter.const 3 : !inter.rows<unit, i64>
  %cf2 = inter.const -2 : !inter.rows<unit, i64>
  %cf3 = inter.const 1 : !inter.rows<unit, i64>
  {subset} : !inter.set<f, parent: N mono>
  %last = inter.at %f[parent], {value} : !inter.rows<f, {row}>
  %square = inter.mul %last, %last : !inter.rows<f, {row}>
  %total = inter.reduce sum %square over %f along () : !inter.rows<unit, {row}>
  func.return %total : !inter.rows<unit, {row}>
}}
"""


LAYERS = ("gcn", "learned_weights", "rgat", "sage", "gat")
SUBSETS = {
    "mask": "%f = inter.filter %N, %k",
    "interval": "%f = inter.interval %N, %cf0, %cf1",
    "none": "%f = inter.interval %N, %cf0, %cf0",
    "first": "%f = inter.interval %N, %cf0, %cf2",
    "later": "%f = inter.interval %N, %cf3, %cf1",
    "all": "%f = inter.interval %N, %cf0, %size",
}


def layer(name: str, subset: str = "mask") -> str:
    text = on_rows(PROGRAMS[name], SUBSETS[subset])
    size = "%size = inter.size %N : !inter.rows<unit, i64>\n  "
    return text.replace("%cf0 =", size + "%cf0 =") if subset == "all" else text


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name):
    unchanged(PROGRAMS[name], ALWAYS)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, subset):
    text = layer(name, subset)
    new = unchanged(text, ALWAYS)
    assert str(new) != str(parse_module(text))
    (func,) = new.body.block.ops
    (last,) = [op for op in func.body.block.ops if op.results and op.results[0].name_hint == "last"]
    assert last.name != "inter.at", "the last layer is computed at the rows of the subset"
    check_training(parse_module(text), new)


def check_training(plain, new):
    """The gradients, and all passes that follow."""
    rest = (ExpandSoftmaxPass(), *FORWARD[1:], WidenDomainsPass(few=1.0))
    late = (PlanSavesPass(), SplitPhasesPass())
    wanted = changed(plain, AutodiffPass())
    same_meaning(wanted, changed(new, AutodiffPass()), seeds=(0, 1), tolerance=1e-7)
    whole = changed(new, *FORWARD, WidenDomainsPass(few=1.0), AutodiffPass(), *rest, *CLEAN, *late)
    same_meaning(wanted, whole, seeds=(0, 1), tolerance=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    plain = Drawer(seed).module()
    new = changed(plain, ALWAYS)
    same_meaning(plain, new, seeds=(0, 1), tolerance=1e-7)
    same_meaning(changed(plain, AutodiffPass()), changed(new, AutodiffPass()), seeds=(0, 1))


# two layers of everything that is grouped by nodes, with users of one value in several places
MIXED = f"""
func.func @main({TYPED}, %S : !inter.set<S>, %q : !inter.set<q, to: N, of: S>,
    {MASK}, %x : !inter.rows<N, 4xf64> {{inter.needs_grad}},
    %W : !inter.rows<R, 4x4xf64> {{inter.needs_grad}}, %key : !inter.rows<unit, i64>,
    %e : !inter.rows<g, f64> {{inter.needs_grad}}, %y : !inter.rows<S, 4xf64>)
    -> (!inter.rows<unit, 4xf64>, !inter.rows<S, 4xf64>) {{
  %one = inter.const 1.0 : !inter.rows<unit, f64>
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf64>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 4x4xf64>
  %m = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf64>
  %a = inter.reduce max %m over %g along dst {{zero_ties}} : !inter.rows<N, 4xf64>
  %n = inter.reduce sum %one over %g along dst : !inter.rows<N, f64>
  %nr = inter.reshape %n : !inter.rows<N, 1xf64>
  %an = inter.mul %a, %nr : !inter.rows<N, 4xf64>
  %s = inter.add %an, %x : !inter.rows<N, 4xf64>
  %d = inter.dropout %s, %key over %N {{p = 0.4, site = 3}} : !inter.rows<N, 4xf64>
  %t = inter.tanh %d : !inter.rows<N, 4xf64>
  %ts = inter.at %g[src], %t : !inter.rows<g, 4xf64>
  %td = inter.at %g[dst], %t : !inter.rows<g, 4xf64>
  %tt = inter.contract "k,k->" %ts, %td : !inter.rows<g, f64>
  %z = inter.mul %tt, %e : !inter.rows<g, f64>
  %p = inter.softmax %z over %g along dst : !inter.rows<g, f64>
  %dp = inter.dropout %p, %key over %g {{p = 0.3, site = 0}} : !inter.rows<g, f64>
  %pr = inter.reshape %dp : !inter.rows<g, 1xf64>
  %w = inter.mul %pr, %ts : !inter.rows<g, 4xf64>
  %u0 = inter.reduce mean %w over %g along dst : !inter.rows<N, 4xf64>
  %u1 = inter.reduce last %w over %g along dst else %t : !inter.rows<N, 4xf64>
  %u2 = inter.add %u0, %u1 : !inter.rows<N, 4xf64>
  %i = inter.iota %N : !inter.rows<N, i64>
  %ic = inter.cast %i : !inter.rows<N, f64>
  %ir = inter.reshape %ic : !inter.rows<N, 1xf64>
  %v = inter.add %u2, %ir : !inter.rows<N, 4xf64>
  %b = inter.gt %v, %x : !inter.rows<N, 4xi1>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %vf = inter.at %f[parent], %v : !inter.rows<f, 4xf64>
  %bf = inter.at %f[parent], %b : !inter.rows<f, 4xi1>
  %bc = inter.cast %bf : !inter.rows<f, 4xf64>
  %o = inter.mul %vf, %bc : !inter.rows<f, 4xf64>
  %r0 = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf64>
  %vq = inter.at %q[to], %v : !inter.rows<q, 4xf64>
  %bq = inter.at %q[to], %b : !inter.rows<q, 4xi1>
  %yq = inter.at %q[of], %y : !inter.rows<q, 4xf64>
  %oq = inter.where %bq, %vq, %yq : !inter.rows<q, 4xf64>
  %r1 = inter.reduce sum %oq over %q along of : !inter.rows<S, 4xf64>
  func.return %r0, %r1 : !inter.rows<unit, 4xf64>, !inter.rows<S, 4xf64>
}}
"""


@pytest.mark.parametrize("reads", ["both", "mask", "index"])
def test_mixed(reads):
    text = MIXED
    if reads != "both":
        keep = "%r0" if reads == "mask" else "%r1"
        of = f"!inter.rows<{'unit' if reads == 'mask' else 'S'}, 4xf64>"
        text = text.replace("(!inter.rows<unit, 4xf64>, !inter.rows<S, 4xf64>) {", of + " {")
        text = text[: text.index("  func.return")] + f"  func.return {keep} : {of}\n}}\n"
        names = ("vq", "bq", "yq", "oq", "r1") if reads == "mask" else ("vf", "bf", "bc", "o", "r0")
        lines = [x for x in text.split("\n") if not x.startswith(tuple(f"  %{n} =" for n in names))]
        text = "\n".join(lines)
    new = unchanged(text, ALWAYS, seeds=range(6))
    assert str(new) != str(parse_module(text))
    check_training(parse_module(text), new)


@pytest.mark.parametrize(
    ("share", "size", "restricted"),
    [(0.05, 6250, 2), (0.26, 25_000, 2), (0.7, 50_000, 0), (0.9, None, 0), (0.0, None, 0)],
)
def test_by_the_rows_of_a_mask(share, size, restricted):
    module, func = parse(f"""
func.func @f({GRAPH}, {MASK}, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, 4xf32> {{
  %s = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %s over %g along dst : !inter.rows<N, 4xf32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %h : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}}""")
    note_subsets(func, {"f": share})
    stats = func.attributes.get("inter.stats")
    assert (stats and stats.data["f"].value.data) == size
    before = str(module)
    assert restrict_rows(func) == restricted
    assert restricted or str(module) == before


def test_parts_are_sized_by_what_they_are_of():
    """An interval of sampled nodes, which have a map into a far larger set: the interval has the
    map, too."""
    _, func = parse("""
func.func @f(%A : !inter.set<A>, %N : !inter.set<N, id: A>, %x : !inter.rows<A, 4xf32>,
    %hi : !inter.rows<unit, i64>) -> !inter.rows<unit, 4xf32> {
  %lo = inter.const 0 : !inter.rows<unit, i64>
  %h = inter.at %N[id], %x : !inter.rows<N, 4xf32>
  %f = inter.interval %N, %lo, %hi : !inter.set<f, id: A, parent: N mono>
  %o = inter.at %f[parent], %h : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}""")
    note_subsets(func, {"N": 0.13, "f": 0.25})
    stats = func.attributes["inter.stats"].data
    assert {k: v.value.data for k, v in stats.items()} == {"N": 12_500, "f": 3125}


CHOICE = f"""
func.func @f({GRAPH}, {MASK}, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<N, 4xf32>)
    -> (!inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>) {{{{
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %m = inter.reshape %k : !inter.rows<N, 1xi1>
  %s = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %s over %g along dst : !inter.rows<N, 4xf32>
  %o = {{choice}} : !inter.rows<N, 4xf32>
  %t = inter.at %g[src], %o : !inter.rows<g, 4xf32>
  %i = inter.reduce sum %t over %g along dst : !inter.rows<N, 4xf32>
  %j = inter.add %i, %y : !inter.rows<N, 4xf32>
  %p = inter.where %m, %j, %zero {{{{inter.kept = 0.0625 : f64}}}} : !inter.rows<N, 4xf32>
  %l = inter.reduce sum %p over %N along () : !inter.rows<unit, 4xf32>
  func.return %l, {{second}} : !inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>
}}}}"""
"""Two layers with a choice behind each; of the first one the whole may be wanted."""
KEPT = "{inter.kept = 0.125 : f64}"


@pytest.mark.parametrize("second", ["%o", "%h", "%y"])
@pytest.mark.parametrize(
    "choice", [f"inter.where %m, %h, %zero {KEPT}", f"inter.where %m, %zero, %h {KEPT}"]
)
def test_choices(choice, second):
    """Also where a choice reads another one, and where the rows of one are wanted all the same."""
    text = CHOICE.format(choice=choice, second=second)
    module = unchanged(text, RestrictRowsPass())
    assert "inter.kept" not in str(module)
    subsets = str(module).count("inter.filter %N")
    assert subsets >= (2 if "%zero, %h" in choice and second != "%h" else 1)
