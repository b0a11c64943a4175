"""Single numbers of several members in one vector: the same numbers as one member at a time, with
groups of all sizes, hubs that are reduced in pieces, and lanes that nobody has.
"""

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.utils.exceptions import PassFailedException

from gnnc.codegen.openmp.printer import print_module
from gnnc.dialects.intra.rows import SegmentOp
from gnnc.dialects.intra.strips import strip_of
from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.intra import schedule

from .compiled import FINE, INFER, TRAIN, Case, after
from .random_rows import random_program
from .shared import LAYERS, program
from .test_pointwise import FORMATS

GRAPHS = (
    (0, None),
    (1, {"g": 0}),
    (2, {"N": 1, "g": 37}),
    (3, {"N": 40, "g": 900}),
    (4, {"N": 300, "g": 400}),
)


@pytest.fixture
def all_in_strips(monkeypatch):
    """Whatever fits into a vector for several members is computed so, worth it or not."""
    monkeypatch.setattr(schedule, "pays_in_strips", lambda op, n: strip_of(op, n) is not None)


def attention(heads, width, elem):
    """Scores with a comparison, softmax, and weighted rows; sums and extremes of the scores."""
    rows = lambda dom, *dims: f"!inter.rows<{dom}, {'x'.join([*map(str, dims), elem])}>"  # noqa: E731
    h = [heads] if heads > 1 else []
    one = [heads, 1] if heads > 1 else [1]
    return program(
        ", ".join(
            f"%{name} : {t} {{inter.needs_grad}}"
            for name, t in {
                "x": rows("N", *h, width),
                "a": rows("N", *h),
                "b": rows("N", *h),
                "e": rows("g", *h),
            }.items()
        ),
        f"%o : {rows('N', *h, width)}; %t : {rows('N', *h)}; %w : {rows('N', *h)}",
        f"""
%as = inter.at %g[src], %a : {rows("g", *h)}
%bd = inter.at %g[dst], %b : {rows("g", *h)}
%xs = inter.at %g[src], %x : {rows("g", *h, width)}
%s = inter.add %as, %bd : {rows("g", *h)}
%s2 = inter.mul %s, %e : {rows("g", *h)}
%l = inter.leaky_relu %s2 {{slope = 0.2}} : {rows("g", *h)}
%p = inter.softmax %l over %g along dst : {rows("g", *h)}
%pc = inter.reshape %p : {rows("g", *one)}
%m = inter.mul %pc, %xs : {rows("g", *h, width)}
%o = inter.reduce sum %m over %g along dst : {rows("N", *h, width)}
%q = inter.tanh %l : {rows("g", *h)}
%t = inter.reduce max %q over %g along dst : {rows("N", *h)}
%w = inter.reduce min %q over %g along src : {rows("N", *h)}
""",
    )


def has_strips(text, vector_bytes, phases=TRAIN):
    plan = FINE.format(bytes=vector_bytes)
    module = after(text, f"{phases},lower-to-intra,fuse-traversals,{plan}")
    return any(isinstance(op, SegmentOp) and op.in_strips is not None for op in module.walk())


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("all_in_strips")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("heads", "width", "elem"), [(1, 5, "f32"), (1, 40, "f64"), (1, 150, "f32"), (4, 3, "f32")]
)
def test_attention(heads, width, elem, format_):
    vector_bytes, march = FORMATS[format_]
    text = attention(heads, width, elem)
    assert has_strips(text, vector_bytes) == (heads == 1)
    case = Case.of(text, TRAIN, vector_bytes=vector_bytes, march=march)
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes), tolerance=2e-3 if elem == "f32" else 1e-9)


@pytest.mark.usefixtures("all_in_strips")
@pytest.mark.parametrize(
    "name", [n if "at" in n else pytest.param(n, marks=pytest.mark.long) for n in LAYERS]
)
def test_layers(name):
    case = Case.of(LAYERS[name])
    for seed in range(2):
        case.check(case.values(seed), tolerance=1e-8)


@pytest.mark.usefixtures("all_in_strips")
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.long) for s in range(4, 150))]
)
def test_random_programs(seed):
    elem = "f32" if seed % 2 else "f64"
    vector_bytes, march = FORMATS[("native", "avx", "sse")[seed % 3]]
    case = Case.of(random_program(seed, elem), TRAIN, vector_bytes=vector_bytes, march=march)
    for graph, sizes in GRAPHS[:3]:
        close = 1e-2 if elem == "f32" else 1e-6
        case.check(case.values(graph, sizes), tolerance=close)


@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.usefixtures("all_in_strips")
def test_dropout(format_, elem):
    """Each edge is dropped as it is one at a time: by its number, not by its place in a group."""
    text = program(
        f"%e : !inter.rows<g, {elem}>, %x : !inter.rows<N, 3x{elem}>, "
        "%key : !inter.rows<unit, i64>",
        f"%t : !inter.rows<N, {elem}>; %y : !inter.rows<N, 3x{elem}>",
        f"""
%q = inter.tanh %e : !inter.rows<g, {elem}>
%d = inter.dropout %q, %key over %g {{p = 0.3, site = 7}} : !inter.rows<g, {elem}>
%t = inter.reduce sum %d over %g along src : !inter.rows<N, {elem}>
%xs = inter.at %g[src], %x : !inter.rows<g, 3x{elem}>
%dc = inter.reshape %d : !inter.rows<g, 1x{elem}>
%m = inter.mul %dc, %xs : !inter.rows<g, 3x{elem}>
%y = inter.reduce sum %m over %g along dst : !inter.rows<N, 3x{elem}>
""",
    )
    vector_bytes, march = FORMATS[format_]
    case = Case.of(text, INFER, vector_bytes=vector_bytes, march=march)
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes), tolerance=1e-4 if elem == "f32" else 1e-11)


def test_the_largest_of_an_all_nan_lane_is_nan():
    """Lanes that no member has never hide NaN, and never bring it in."""
    text = program(
        "%e : !inter.rows<g, f32>",
        "%t : !inter.rows<N, f32>",
        """
%q = inter.tanh %e : !inter.rows<g, f32>
%t = inter.reduce max %q over %g along dst : !inter.rows<N, f32>
""",
    )
    assert has_strips(text, 64, INFER)
    case = Case.of(text, INFER)
    values = case.values(3, {"N": 9, "g": 60})
    values["e"] = values["e"].copy()
    values["e"][::7] = np.nan
    got = case.run(values)["t"]
    dst = values["g"].maps["dst"]
    for i in range(9):
        mine = values["e"][dst == i]
        want = np.nan if np.isnan(mine).any() else (np.tanh(mine).max() if len(mine) else 0.0)
        np.testing.assert_allclose(got[i], want, rtol=1e-5)


def test_a_strip_that_does_not_fit_is_refused():
    """What `in_strips` is said of has single numbers."""
    module = parse_module(
        """
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x40xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x40xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %in[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %b = intra.load %x[%j] : vector<40xf32>
      %c = intra.apply %b {fn = "exp"} : vector<40xf32>
      intra.yield %c
    } : vector<40xf32>
    intra.store %s, %y[%i]
  }
  func.return
}
"""
    )
    module = after(module, "schedule,cut-stages,plan-memory")
    (segment,) = (op for op in module.walk() if isinstance(op, SegmentOp))
    assert segment.in_strips is None
    segment.in_strips = UnitAttr()
    with pytest.raises(PassFailedException, match="no numbers for lanes"):
        print_module(module)
