"""Large sums of outer products: where those of chunks would take much beside what a step needs,
they are kept once, and shared among threads by their columns after each round of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gnnc.runtime.cpu import threads
from gnnc.runtime.program import PhaseOnGraph
from gnnc.runtime.reserves import BEHIND, KIND
from gnnc.runtime.sets.tables import Tables

from .compiled import COARSE, FINE, Case, call_together
from .test_pointwise import FORMATS

MANY = "schedule{{target=openmp vector-bytes={bytes} grain=64}}"
"""Many chunks of long blocks."""
PHASES = "unify-sets,autodiff,canonicalize,cse,dce,split-phases"


def text(weight: str, spec: str, row: str, out: str, elem: str) -> str:
    """Rows through a matrix, summed by destination, with a bias and a tanh: the gradient of the
    matrix is added up where that of its rows is summed over a group and multiplied.
    """
    return f"""
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %x : !inter.rows<N, {row}x{elem}> {{inter.needs_grad}},
    %W : !inter.rows<unit, {weight}x{elem}> {{inter.needs_grad}},
    %b : !inter.rows<unit, {out}x{elem}> {{inter.needs_grad}}) -> !inter.rows<N, {out}x{elem}> {{
  %h = inter.contract "{spec}" %x, %W : !inter.rows<N, {out}x{elem}>
  %hs = inter.at %g[src], %h : !inter.rows<g[src], {out}x{elem}>
  %s = inter.reduce sum %hs over %g along dst : !inter.rows<N, {out}x{elem}>
  %c = inter.add %s, %b : !inter.rows<N, {out}x{elem}>
  %o = inter.tanh %c : !inter.rows<N, {out}x{elem}>
  func.return %o : !inter.rows<N, {out}x{elem}>
}}
"""


SHAPES = {
    "plain": ("300x90", "k,kf->f", "300", "90"),
    "transposed": ("110x300", "k,fk->f", "300", "110"),
    "heads": ("3x140x70", "bk,bkf->bf", "3x140", "3x70"),
    "rows": ("260x110", "lk,kf->lf", "2x260", "2x110"),
    "tall": ("600x64", "k,kf->f", "600", "64"),
}
"""Sums of several parts and a rest, in both orders."""
GRAPHS = (
    {"N": 0, "g": 0},
    {"N": 1, "g": 3},
    {"N": 80, "g": 400},  # one round of blocks of 5 rows, then more of them
    {"N": 81, "g": 400},
    {"N": 400, "g": 900},
)


ROUNDS, CHUNKS = {"N": 80, "g": 400}, {"N": 2000, "g": 9000}
"""Where rows of the shape of that name take either."""


def rounds(case: Case) -> bool:
    """Whether threads of some nest share the columns of sums."""
    return "nowait" in case.program.source


def taken(case: Case, sizes: dict[str, int]) -> list[tuple[int, int]]:
    """For how many sums of chunks, and rows of rounds, backward has memory."""
    found: list[tuple[int, int]] = []

    def call(phase: PhaseOnGraph, tables: Tables, arrays: Mapping[int, Any]) -> None:
        lengths = {b["of"]: k for k, b in enumerate(phase.phase.buffers) if b["kind"] == KIND}
        if {"sums", "rows"} <= lengths.keys():
            found.append((phase.lengths[lengths["sums"]], phase.lengths[lengths["rows"]]))
        call_together(phase, tables, arrays)

    case.run(case.values(0, sizes), call=call)
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", list(SHAPES)[:-1])
def test_values_and_gradients(shape: str) -> None:
    case = Case.of(text(*SHAPES[shape], "f64"), PHASES)
    assert rounds(case)
    for seed, sizes in enumerate(GRAPHS):
        case.check(case.values(seed, sizes), tolerance=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("format_", FORMATS)
def test_formats(format_: str) -> None:
    vector_bytes, march = FORMATS[format_]
    program = text(*SHAPES["transposed"], "f32")
    case = Case.of(program, PHASES, vector_bytes=vector_bytes, march=march)
    for seed, sizes in enumerate(GRAPHS):
        case.check(case.values(seed, sizes), tolerance=2e-3)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", (ROUNDS, CHUNKS), ids=("rounds", "chunks"))
def test_sizes_choose_rounds_or_chunks(sizes: dict[str, int]) -> None:
    """The sums of 6 chunks take 1.5 MB: more than all that a step on 80 nodes needs."""
    case = Case.of(text(*SHAPES["rows"], "f64"), PHASES)
    expected = [(6, 0)] if sizes is CHUNKS else [(0, sizes["N"] + BEHIND)]
    assert taken(case, sizes) == expected
    case.check(case.values(1, sizes), tolerance=1e-9)


@pytest.mark.parametrize(
    ("shape", "schedule", "sizes", "in_chunks"),
    [
        ("tall", FINE, CHUNKS, False),
        ("tall", MANY, CHUNKS, False),
        ("tall", COARSE, CHUNKS, True),
        ("rows", FINE, CHUNKS, True),
    ],
    ids=("fine", "coarse", "coarse chunks", "fine chunks"),
)
def test_numbers_do_not_depend_on_the_number_of_threads(
    shape: str, schedule: str, sizes: dict[str, int], in_chunks: bool
) -> None:
    case = Case.of(text(*SHAPES[shape], "f32"), PHASES, schedule=schedule)
    ((sums, _),) = taken(case, sizes)
    assert (sums > 0) == in_chunks
    values = case.values(0, sizes)
    found: list[dict[str, np.ndarray]] = []
    try:
        for count in (1, 2, 4):
            threads.set_num_threads(count)
            found.append(case.run(values))
    finally:
        threads.set_num_threads(None)
    for name, x in found[0].items():
        for other in found[1:]:
            np.testing.assert_array_equal(x, other[name], err_msg=name)


def test_scratch_memory_does_not_grow_with_the_rows() -> None:
    """Of each sum there is the output alone, and no more rows of two rounds than of these."""
    case = Case.of(text(*SHAPES["tall"], "f32"), PHASES)
    few, some, many = (taken(case, {"N": n, "g": n})[0] for n in (40, 1000, 2000))
    assert few == (0, 40 + BEHIND) and some == many
    assert some[0] == 0 and BEHIND < some[1] <= 2 * 600
