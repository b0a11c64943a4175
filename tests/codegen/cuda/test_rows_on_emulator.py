"""Rows of all widths and element types in CUDA: short ones, of which a thread computes one alone,
those that a part of a warp shares, and those of a whole block; odd widths, and no rows at all."""

from __future__ import annotations

import numpy as np
import pytest

from gnnc.dialects.meaning.philox import dropout

from ..compiled import INFER, TRAIN
from ..generate import SPECS, contractions, is_float, layouts, pointwise, reductions, whole_weights
from ..shared import program
from ..test_contractions import SIZES, SMALL
from ..test_contractions import agree as contractions_agree
from ..test_dropout import ENTRIES, WIDTHS
from ..test_dropout import program as dropout_program
from ..test_pointwise import agree as pointwise_agree
from ..test_pointwise import ordinary
from ..test_reductions import agree as reductions_agree
from .emulated import check_orders, emulated, plan

LONG = pytest.mark.long
TYPES = ("f32", "f64", "i32", "i64")


def some(quick: set[tuple[str, ...]], *columns: tuple[str, ...]) -> list[object]:
    """All combinations of names; those that are not `quick` are left to the long tests."""
    rows: list[tuple[str, ...]] = [()]
    for column in columns:
        rows = [(*row, x) for row in rows for x in column]
    return [
        pytest.param(*row, marks=[] if row in quick else [LONG], id="-".join(row)) for row in rows
    ]


# ---------------------------------------------------------------- pointwise


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("elem", "row"),
    some(
        {("f32", "7"), ("f32", "1030"), ("f64", "47"), ("f64", ""), ("i32", "33"), ("i64", "3")},
        TYPES,
        ("", "3", "7", "33", "47", "600", "1030", "3000"),
    ),
)
def test_pointwise(elem: str, row: str) -> None:
    """Every function and cast, flags among them."""
    case = emulated(pointwise(row, elem), "split-phases")
    values = ordinary(case, 0) if is_float(elem) else case.values(0)
    if not is_float(elem):
        values |= {name: values[name] - 4 for name in ("x", "y")}
    pointwise_agree(case, values, elem)


@pytest.mark.parametrize(
    ("row", "other", "elem"),
    [
        ("2x3", "2x1", "f32"),
        ("2x17", "17", "f64"),
        pytest.param("2x3", "3", "i64", marks=LONG),
        pytest.param("4", "", "f32", marks=LONG),
    ],
)
def test_broadcasts(row: str, other: str, elem: str) -> None:
    case = emulated(pointwise(row, elem, other), "split-phases")
    pointwise_agree(case, ordinary(case, 0) if is_float(elem) else case.values(0), elem)


FLAGS = """
  %s = inter.at %g[src], %m : !inter.rows<g, 2x7xi1>
  %t = inter.transpose %s [1, 0] : !inter.rows<g, 7x2xi1>
  %c = inter.concat %t, %e {dim = 0} : !inter.rows<g, 12x2xi1>
  %p = inter.slice %c {dim = 0, lo = 1, hi = 12, step = 3} : !inter.rows<g, 4x2xi1>
  %n = inter.logical_not %p : !inter.rows<g, 4x2xi1>
  %x = inter.cast %c : !inter.rows<g, 12x2xf32>
  %o = inter.reduce sum %x over %g along dst : !inter.rows<N, 12x2xf32>
"""


def test_flags() -> None:
    """Rows of flags that are gathered, moved, and made numbers of: a byte each in memory."""
    text = program(
        "%m : !inter.rows<N, 2x7xi1>, %e : !inter.rows<g, 5x2xi1>",
        "%c : !inter.rows<g, 12x2xi1>; %n : !inter.rows<g, 4x2xi1>; %o : !inter.rows<N, 12x2xf32>",
        FLAGS,
    )
    case = emulated(text, INFER)
    for seed, sizes in ((0, None), (1, {"g": 0}), (2, {"N": 30, "g": 100})):
        check_orders(case, case.values(seed, sizes))


# ---------------------------------------------------------------- reductions


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("elem", "row"),
    some(
        {("f32", "1030"), ("f32", "5"), ("f64", "47"), ("i64", ""), ("f64", "2x5")},
        TYPES,
        ("", "1", "5", "7", "2x5", "33", "47", "600", "1030", "3000"),
    ),
)
def test_reductions(elem: str, row: str) -> None:
    """Of every kind, over edges, pairs, nodes, all rows; no edges, and a node with all of them."""
    reductions_agree(emulated(reductions(row, elem), "unify-sets,split-phases"), elem)


@pytest.mark.parametrize("lanes", [1, pytest.param(4, marks=LONG), 32])
@pytest.mark.parametrize("row", ["5", pytest.param("19", marks=LONG)])
def test_reductions_by_any_number_of_lanes(row: str, lanes: int) -> None:
    text = reductions(row, "f64")
    reductions_agree(emulated(text, "unify-sets,split-phases", schedule=plan(lanes)), "f64")


@pytest.mark.parametrize("width", [47, 1030])
def test_sums_of_rows(width: int) -> None:
    """Lanes share what is summed, of one result and of several."""
    t = f"!inter.rows<N, {width}xf64>"
    text = program(
        f"%x : {t}, %y : {t}, %z : !inter.rows<N, 3x{width}xf64>",
        "%s : !inter.rows<N, f64>; %d : !inter.rows<N, f64>; %m : !inter.rows<N, 3xf64>; "
        f"%n : {t}; %c : {t}",
        f"""%s = inter.row_reduce sum %x [0] : !inter.rows<N, f64>
        %d = inter.contract "k,k->" %x, %y : !inter.rows<N, f64>
        %m = inter.row_reduce max %z [1] : !inter.rows<N, 3xf64>
        %n = inter.row_reduce min %z [0] : {t}
        %c = inter.mul %x, %s : {t}""",
    )
    case = emulated(text, "split-phases")
    check_orders(case, case.values(0, {"N": 23}))


# ---------------------------------------------------------------- products


@pytest.mark.parametrize(
    "size", [pytest.param(s, marks=[] if s in ("ones", "ragged") else [LONG]) for s in SIZES]
)
def test_products(size: str) -> None:
    text = contractions(SIZES[size], "f32", edges=False)
    contractions_agree(emulated(text, "unify-sets,split-phases"), "f32")


@pytest.mark.parametrize("elem", ["f32", pytest.param("f64", marks=LONG)])
def test_whole_weights(elem: str) -> None:
    contractions_agree(emulated(whole_weights(elem), "unify-sets,split-phases"), elem)


@pytest.mark.parametrize(
    ("size", "specs"),
    [
        (SMALL, SPECS[:8]),
        pytest.param(SMALL, SPECS, marks=LONG),
        pytest.param(SIZES["ragged"], SPECS, marks=LONG),
        pytest.param(SIZES["even"], SPECS, marks=LONG),
    ],
    ids=["small", "all-small", "all-ragged", "all-even"],
)
def test_gradients_of_products(size: dict[str, int], specs: tuple[str, ...]) -> None:
    text = contractions(size, "f64", specs, edges=specs is SPECS)
    contractions_agree(emulated(text, TRAIN), "f64")


@pytest.mark.parametrize(
    ("heads", "width", "elem"),
    [
        (4, 33, "f32"),
        *(pytest.param(h, w, e, marks=LONG) for h, w in ((2, 3), (1, 1), (4, 33)) for e in TYPES),
    ],
)
def test_layouts(heads: int, width: int, elem: str) -> None:
    """Transposes, slices, concatenations and folds of rows."""
    contractions_agree(emulated(layouts(heads, width, elem), INFER), elem)


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize("elem", ["f32", pytest.param("f64", marks=LONG)])
def test_every_width_drops_the_same_numbers(elem: str) -> None:
    case = emulated(dropout_program(elem), "split-phases")
    values = case.values(0)
    for key in (3, -(2**40) + 7):
        values["key"] = np.full_like(values["key"], key)
        got = case.run(values)
        for site, w in enumerate(WIDTHS):
            x = values[f"x{w}"].astype(np.float32 if elem == "f32" else np.float64)
            want = dropout(x, key, site, 0.3, range(len(x)))
            np.testing.assert_array_equal(got[f"y{w}"] == 0, want == 0, err_msg=f"width {w}")
            np.testing.assert_allclose(got[f"y{w}"], want, rtol=1e-6)


def test_entries_are_dropped_as_in_the_whole_matrix() -> None:
    case = emulated(ENTRIES.replace("ELEM", "f64"), "split-phases")
    for seed in range(3):
        values = case.values(seed)
        v = values["v"]
        values["i"] = np.arange(len(v)) * 1_000_003 - 7
        values["j"] = np.arange(len(v)) % 11
        want = dropout(v, int(values["key"][0]), 5, 0.3, values["i"], values["j"])
        np.testing.assert_allclose(case.run(values)["y"], want, rtol=1e-12)
