"""Every reduction in C: over edges, pairs, nodes and all rows, with empty groups and hubs."""

from __future__ import annotations

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal

from .compiled import COARSE, FINE, Case
from .generate import is_float, reductions
from .shared import program
from .test_pointwise import FORMATS

PHASES = "unify-sets,split-phases"
GRAPHS = (
    (0, None),
    (1, {"g": 0}),
    (2, {"N": 1, "g": 9}),
    (3, {"N": 60, "g": 900, "R": 4}),
)


def agree(case: Case, elem: str) -> None:
    close = 1e-3 if elem == "f32" else 1e-9
    for seed, sizes in GRAPHS:
        values = case.values(seed, sizes)
        if not is_float(elem):  # products of many numbers stay in range
            values = {k: x if isinstance(x, SetVal) else np.sign(x - 3) for k, x in values.items()}
        case.check(values, tolerance=close)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize(
    "row",
    ["", "1", "3", "33", "2x5", *(pytest.param(w, marks=pytest.mark.long) for w in ("100", "602"))],
)
def test_widths(row, elem):
    agree(Case.of(reductions(row, elem), PHASES), elem)


@pytest.mark.parametrize("elem", ["i32", "i64"])
@pytest.mark.parametrize("row", ["", "3"])
def test_integers(row, elem):
    agree(Case.of(reductions(row, elem), PHASES), elem)


@pytest.mark.parametrize(
    ("format_", "schedule"),
    [("sse", FINE), ("avx", FINE), ("native", FINE), ("native", COARSE)],
    ids=["sse", "avx", "native", "coarse"],
)
def test_formats(format_, schedule):
    vector_bytes, march = FORMATS[format_]
    text = reductions("19", "f32")
    case = Case.of(text, PHASES, schedule=schedule, vector_bytes=vector_bytes, march=march)
    agree(case, "f32")


def test_sums_of_two_element_types_share_a_loop():
    """Rows of f32 and of f64 over one group: neither may be put into the other's registers."""
    text = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %a : !inter.rows<g, 9xf32>, %b : !inter.rows<g, 9xf64>)
    -> (!inter.rows<N, 9xf32>, !inter.rows<N, 9xf64>) {
  %x = inter.reduce sum %a over %g along dst : !inter.rows<N, 9xf32>
  %y = inter.reduce sum %b over %g along dst : !inter.rows<N, 9xf64>
  func.return %x, %y : !inter.rows<N, 9xf32>, !inter.rows<N, 9xf64>
}
"""
    case = Case.of(text, PHASES)
    case.check(case.values(3, {"N": 20, "g": 100}), tolerance=1e-5)


def test_nan_goes_through_a_maximum():
    case = Case.of(reductions("3", "f64"), PHASES)
    values = case.values(3, {"N": 20, "g": 100})
    values["e"][::7] = np.nan
    values["e"][1::9] = np.inf
    values["e"][2::9] = -np.inf
    case.check(values)


@pytest.mark.parametrize("width", [4096, 5003])
def test_sums_of_long_rows_are_loops(width):
    """A row of more vectors than straight code is made for: the C stays short, the sums right."""
    text = program(
        f"%x : !inter.rows<N, {width}xf32>, %y : !inter.rows<N, {width}xf32>, "
        f"%z : !inter.rows<N, 2x{width}xf32>",
        "%s : !inter.rows<N, f32>; %d : !inter.rows<N, f32>; %m : !inter.rows<N, 2xf32>",
        """
%s = inter.row_reduce sum %x [0] : !inter.rows<N, f32>
%d = inter.contract "k,k->" %x, %y : !inter.rows<N, f32>
%m = inter.row_reduce max %z [1] : !inter.rows<N, 2xf32>
""",
    )
    vector_bytes, march = FORMATS["sse"]
    case = Case.of(text, PHASES, vector_bytes=vector_bytes, march=march)
    assert len(case.program.source.splitlines()) < 2000
    case.check(case.values(0), tolerance=1e-3)
