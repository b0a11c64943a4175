"""Products of narrow rows are made in the loop over the members of a group: no row of them is
stored, and the numbers are those of the interpreter."""

import re

import pytest

from .compiled import FORMATS, INFER, TRAIN, Case

GRAPH = "%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>"


def layer(k: int, f: int, elem: str, kind: str = "sum") -> str:
    """relu(x_src + e W + b), reduced: e has k numbers an edge, the result f."""
    return f"""
func.func @layer({GRAPH}, %e : !inter.rows<g, {k}x{elem}>,
    %x : !inter.rows<N, {f}x{elem}> {{inter.needs_grad}},
    %W : !inter.rows<unit, {f}x{k}x{elem}> {{inter.needs_grad}},
    %b : !inter.rows<unit, {f}x{elem}> {{inter.needs_grad}}) -> !inter.rows<N, {f}x{elem}> {{
  %p = inter.contract "k,fk->f" %e, %W : !inter.rows<g, {f}x{elem}>
  %q = inter.add %p, %b : !inter.rows<g, {f}x{elem}>
  %xs = inter.at %g[src], %x : !inter.rows<g, {f}x{elem}>
  %z = inter.add %xs, %q : !inter.rows<g, {f}x{elem}>
  %r = inter.relu %z : !inter.rows<g, {f}x{elem}>
  %o = inter.reduce {kind} %r over %g along dst : !inter.rows<N, {f}x{elem}>
  func.return %o : !inter.rows<N, {f}x{elem}>
}}
"""


TWO = f"""
func.func @two({GRAPH}, %e : !inter.rows<g, 3xf64>, %W : !inter.rows<unit, 3x5xf64>,
    %V : !inter.rows<unit, 9x3xf64>) -> (!inter.rows<N, 5xf64>, !inter.rows<N, 9xf64>) {{
  %p = inter.contract "k,kf->f" %e, %W : !inter.rows<g, 5xf64>
  %q = inter.contract "k,fk->f" %e, %V : !inter.rows<g, 9xf64>
  %a = inter.reduce max %p over %g along dst : !inter.rows<N, 5xf64>
  %m = inter.exp %q : !inter.rows<g, 9xf64>
  %b = inter.reduce sum %m over %g along dst : !inter.rows<N, 9xf64>
  func.return %a, %b : !inter.rows<N, 5xf64>, !inter.rows<N, 9xf64>
}}
"""
"""Two widths in one loop over a group."""

SIZES = {"N": 23, "g": 150}


def is_inside(case: Case) -> bool:
    """Whether the C multiplies within a loop over members."""
    return (
        re.search(r"UNROLL\n +for \(int k = 0; k < \d+; \+\+k\) \{", case.program.source)
        is not None
    )


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("k, f", [(2, 3), (3, 7), (8, 50), (16, 130), (2, 300)])
def test_every_width(k: int, f: int, name: str) -> None:
    vector_bytes, march = FORMATS[name]
    text = layer(k, f, "f64")
    case = Case.of(text, INFER, vector_bytes=vector_bytes, march=march, target="openmp")
    assert is_inside(case)
    for seed in range(3):
        case.check(case.values(seed, SIZES))
    case.check(case.values(0, {"N": 4, "g": 0}))


@pytest.mark.parametrize("elem, tolerance", [("f32", 2e-5), ("f64", 1e-9)])
@pytest.mark.parametrize("kind", ["sum", "max", "mean"])
def test_gradients(kind: str, elem: str, tolerance: float) -> None:
    case = Case.of(layer(5, 37, elem, kind), TRAIN, target="openmp")
    assert is_inside(case)
    for seed in range(3):
        case.check(case.values(seed, SIZES), tolerance=tolerance)


@pytest.mark.parametrize("name", FORMATS)
def test_rows_that_are_made_in_the_loop_too(name: str) -> None:
    """What is multiplied lies in no memory there."""
    vector_bytes, march = FORMATS[name]
    made = "%h = inter.tanh %e : !inter.rows<g, 5xf64>\n  %p = inter.contract"
    text = layer(5, 37, "f64").replace("%p = inter.contract", made).replace("%e, %W", "%h, %W")
    case = Case.of(text, INFER, vector_bytes=vector_bytes, march=march, target="openmp")
    for seed in range(3):
        case.check(case.values(seed, SIZES))


def test_widths_that_share_a_loop() -> None:
    case = Case.of(TWO, INFER, target="openmp")
    for seed in range(3):
        case.check(case.values(seed, SIZES))


def test_wide_rows_are_multiplied_once() -> None:
    """In tiles of rows, which share the matrix."""
    assert not is_inside(Case.of(layer(17, 40, "f64"), INFER, target="openmp"))
    assert not is_inside(Case.of(layer(8, 8, "f64"), INFER, target="openmp"))
