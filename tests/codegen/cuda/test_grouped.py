"""Results [H] of rows [H, D] stay in the lanes that have the tiles: inner products, and softmax's
sums beside those of messages."""

import re

import pytest

from ..compiled import INFER, TRAIN, Case

CUDA = "cuda-emulated"
GRAPHS = ((0, None), (1, {"g": 0}), (2, {"N": 1, "g": 9}), (3, {"N": 40, "g": 400}))

SCORES = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %q : !inter.rows<N, HxDxELEM> {inter.needs_grad}, %k : !inter.rows<N, HxDxELEM>,
    %w : !inter.rows<unit, HxDxELEM> {inter.needs_grad})
    -> (!inter.rows<g, HxELEM> {inter.name = "s"}, !inter.rows<g, HxELEM> {inter.name = "t"},
        !inter.rows<g, HxDxELEM> {inter.name = "y"}) {
  %a = inter.at %g[dst], %q : !inter.rows<g, HxDxELEM>
  %b = inter.at %g[src], %k : !inter.rows<g, HxDxELEM>
  %s = inter.contract "hd,hd->h" %a, %b : !inter.rows<g, HxELEM>
  %c = inter.add %a, %b : !inter.rows<g, HxDxELEM>
  %d = inter.relu %c : !inter.rows<g, HxDxELEM>
  %u = inter.contract "hd,hd->h" %d, %w : !inter.rows<g, HxELEM>
  %t = inter.relu %u : !inter.rows<g, HxELEM>
  %y = inter.contract "h,hd->hd" %u, %b : !inter.rows<g, HxDxELEM>
  func.return %s, %t, %y : !inter.rows<g, HxELEM>, !inter.rows<g, HxELEM>, !inter.rows<g, HxDxELEM>
}"""

ATTENTION = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %e : !inter.rows<g, HxELEM> {inter.needs_grad},
    %x : !inter.rows<N, HxDxELEM> {inter.needs_grad})
    -> (!inter.rows<N, HxDxELEM> {inter.name = "y"}, !inter.rows<N, HxELEM> {inter.name = "n"}) {
  %m = inter.reduce max %e over %g along dst : !inter.rows<N, HxELEM>
  %md = inter.at %g[dst], %m : !inter.rows<g, HxELEM>
  %f = inter.sub %e, %md : !inter.rows<g, HxELEM>
  %p = inter.exp %f : !inter.rows<g, HxELEM>
  %xs = inter.at %g[src], %x : !inter.rows<g, HxDxELEM>
  %z = inter.contract "h,hd->hd" %p, %xs : !inter.rows<g, HxDxELEM>
  %y = inter.reduce sum %z over %g along dst : !inter.rows<N, HxDxELEM>
  %s = inter.reduce sum %p over %g along dst : !inter.rows<N, HxELEM>
  %n = inter.sqrt %s : !inter.rows<N, HxELEM>
  func.return %y, %n : !inter.rows<N, HxDxELEM>, !inter.rows<N, HxELEM>
}"""


def case_of(text: str, heads: int, width: int, elem: str, plan: str, phases: str = INFER) -> Case:
    for old, new in (("Hx", f"{heads}x"), ("Dx", f"{width}x"), ("ELEM", elem)):
        text = text.replace(old, new)
    return Case.of(text, phases, schedule=plan, target=CUDA)


def kernels(case: Case) -> str:
    device: str = case.program.data["device"]
    return device[device.index('extern "C"') :]


FINE = "schedule-grid{{{{threads=64 lanes={lanes} grain=16 chunks=5 piece=3}}}}"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("heads", "width"), [(4, 16), (2, 40), (5, 6)])
@pytest.mark.parametrize("lanes", [0, 4])
@pytest.mark.parametrize("text", [SCORES, ATTENTION])
def test_equal_the_interpreter(text, lanes, heads, width):
    case = case_of(text, heads, width, "f64", FINE.format(lanes=lanes), TRAIN)
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes))


@pytest.mark.parametrize(("heads", "width", "shuffles"), [(4, 16, 2), (2, 64, 1), (8, 8, 1)])
def test_inner_products_need_no_memory(heads, width, shuffles):
    """Lanes load vectors, and combine by shuffles."""
    case = case_of(SCORES, heads, width, "f32", "schedule-grid")
    text = kernels(case)
    assert "team_memory" not in text and "__syncwarp" not in text
    assert len(re.findall(r"__shfl_xor_sync", text)) >= shuffles
    assert "tiles::Pack<float, 4> q" in text
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes), tolerance=1e-4)


def test_denominators_are_summed_beside_messages():
    """One exponential an edge and thread, no memory of the team."""
    case = case_of(ATTENTION, 4, 16, "f32", "schedule-grid")
    text = kernels(case)
    assert text.count("exp_f32(") == 1
    assert "team_memory" not in text
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes), tolerance=1e-4)


def test_rows_that_cut_a_tile_are_laid_in_memory():
    """Heads of 6 numbers, tiles of 4: the sums lie in memory as before."""
    case = case_of(ATTENTION, 4, 6, "f32", "schedule-grid{{{{lanes=1}}}}".format())
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes), tolerance=1e-4)
