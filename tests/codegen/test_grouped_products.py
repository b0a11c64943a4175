"""Products with a matrix for each group of rows, and sums of outer products for each group: in C
as by the interpreter, wherever chunks and blocks of rows cut the groups.
"""

from __future__ import annotations

import numpy as np
import pytest

from gnnc.dialects.intra.products import MatmulOp, OuterOp
from gnnc.runtime.cpu import threads

from .compiled import COARSE, FINE, Case
from .separate import call_separately
from .test_pointwise import FORMATS

SETS = """%N : !inter.set<N>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (dst, rel) (rel, src)>"""


def text(weight: str, spec: str, row: str, out: str, on: str, elem: str) -> str:
    """Messages x[src] . W[rel] on `on` (edges, or pairs of relation and source), summed by
    destination.
    """
    return f"""
func.func @main({SETS}, %x : !inter.rows<N, {row}x{elem}> {{inter.needs_grad}},
    %W : !inter.rows<R, {weight}x{elem}> {{inter.needs_grad}}) -> !inter.rows<N, {out}x{elem}> {{
  %xs = inter.at %g[src], %x : !inter.rows<g[src], {row}x{elem}>
  %Wr = inter.at %g[rel], %W : !inter.rows<g[rel], {weight}x{elem}>
  %h = inter.contract "{spec}" %xs, %Wr : !inter.rows<{on}, {out}x{elem}>
  %t = inter.tanh %h : !inter.rows<{on}, {out}x{elem}>
  %o = inter.reduce sum %t over %g along dst : !inter.rows<N, {out}x{elem}>
  func.return %o : !inter.rows<N, {out}x{elem}>
}}
"""


PHASES = "unify-sets,autodiff,canonicalize,cse,dce,split-phases"
SHAPES = {
    "plain": ("17x19", "k,kf->f", "17", "19"),
    "transposed": ("33x16", "k,fk->f", "16", "33"),
    "heads": ("3x9x10", "bk,bkf->bf", "3x9", "3x10"),
}
GRAPHS = (
    {"N": 20, "R": 5, "g": 150},
    {"N": 20, "R": 1, "g": 150},  # a group that all chunks share
    {"N": 9, "R": 60, "g": 40},  # groups of one row, and empty ones
    {"N": 3, "R": 2, "g": 1},
    {"N": 5, "R": 3, "g": 0},
)


@pytest.mark.parametrize("on", ("g", "g[rel, src]"))
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: str, on: str):
    case = Case.of(text(*SHAPES[shape], on, "f64"), PHASES)
    kinds = [op for op in case.lowered.walk() if isinstance(op, MatmulOp | OuterOp)]
    assert any(isinstance(op, MatmulOp) and op.index is not None for op in kinds)
    assert any(isinstance(op, OuterOp) and op.index is not None for op in kinds)
    for seed, sizes in enumerate(GRAPHS):
        case.check(case.values(seed, sizes), tolerance=1e-9, call=call_separately)


@pytest.mark.parametrize("format_", FORMATS)
def test_formats(format_: str):
    vector_bytes, march = FORMATS[format_]
    program = text(*SHAPES["plain"], "g", "f32")
    case = Case.of(program, PHASES, vector_bytes=vector_bytes, march=march)
    for seed, sizes in enumerate(GRAPHS):
        case.check(case.values(seed, sizes), tolerance=1e-3)


@pytest.mark.parametrize("schedule", (FINE, COARSE), ids=("fine", "coarse"))
def test_numbers_do_not_depend_on_the_number_of_threads(schedule: str):
    case = Case.of(text(*SHAPES["plain"], "g[rel, src]", "f32"), PHASES, schedule=schedule)
    values = case.values(0, {"N": 50, "R": 7, "g": 20_000})
    try:
        threads.set_num_threads(1)
        one = case.run(values)
        threads.set_num_threads(3)
        three = case.run(values)
    finally:
        threads.set_num_threads(None)
    for name, x in one.items():
        np.testing.assert_array_equal(x, three[name], err_msg=name)


def test_a_matrix_for_every_row_is_no_group():
    """Where rows do not share their matrices there is nothing to pack."""
    program = """
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, 6xf64>, %W : !inter.rows<N, 6x5xf64>)
    -> !inter.rows<N, 5xf64> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 5xf64>
  func.return %h : !inter.rows<N, 5xf64>
}
"""
    case = Case.of(program, "unify-sets,split-phases")
    assert not any(isinstance(op, MatmulOp) for op in case.lowered.walk())
    case.check(case.values(0))
