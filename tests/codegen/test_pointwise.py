"""Every pointwise function and cast in C: numbers, registers, tiles, arrays; every type."""

from __future__ import annotations

import numpy as np
import pytest

from gnnc.dialects.meaning.lowered import results_by_name

from .compiled import FORMATS, Case
from .generate import is_float, pointwise, rows
from .shared import program

PHASES = "split-phases"
WIDE = ("16", "33", "100", "602")
"""All functions of rows of so many numbers are a nest that takes the C compiler up to a minute."""


def agree(case: Case, values, elem: str) -> None:
    """C gives what the interpreter gives, rounded to the result's type."""
    with np.errstate(all="ignore"):
        want = results_by_name(case.split, values)
    got = case.run(values)
    for name, expected in want.items():
        close = 1e-5 if elem == "f32" or name.endswith("f32") else 1e-9
        np.testing.assert_allclose(
            got[name].astype(expected.dtype), expected, rtol=close, atol=close, err_msg=name
        )


def ordinary(case: Case, seed: int):
    """Random operands; %p is positive."""
    values = case.values(seed)
    if "p" in values:
        values["p"] = np.abs(values["p"]) + 0.3
    return values


@pytest.mark.one_in(4)
@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize(
    "row",
    ["", "1", "3", "17", *(pytest.param(w, marks=pytest.mark.long) for w in WIDE)],
)
def test_widths(row, elem):
    case = Case.of(pointwise(row, elem), PHASES)
    for seed in range(2):
        agree(case, ordinary(case, seed), elem)


@pytest.mark.parametrize("format_", ["sse", "avx"])
@pytest.mark.parametrize("elem", ["f32", "f64"])
def test_formats(elem, format_):
    vector_bytes, march = FORMATS[format_]
    case = Case.of(pointwise("11", elem), PHASES, vector_bytes=vector_bytes, march=march)
    for seed in range(2):
        agree(case, ordinary(case, seed), elem)


@pytest.mark.parametrize("elem", ["i32", "i64"])
@pytest.mark.parametrize("row", ["", "3", "33"])
def test_integers(row, elem):
    case = Case.of(pointwise(row, elem), PHASES)
    for seed in range(2):
        values = case.values(seed)
        for name in ("x", "y"):
            values[name] = values[name] - 4
        agree(case, values, elem)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("elem", ["f32", "f64", "i64"])
@pytest.mark.parametrize(
    ("row", "other"),
    [
        ("2x3", "2x1"),
        ("2x3", "3"),
        ("2x9", "9"),
        ("4", ""),
        pytest.param("2x17", "17", marks=pytest.mark.long),
    ],
)
def test_broadcasts(row, other, elem):
    """Rows whose numbers are not those of one place: loops over memory instead of registers."""
    case = Case.of(pointwise(row, elem, other), PHASES)
    agree(case, ordinary(case, 0) if is_float(elem) else case.values(0), elem)


@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize("row", ["", "3", "33", "2x3"])
def test_products_and_sums_are_rounded_one_by_one(row, elem):
    """A chain gives the bits of its steps, wherever it is computed (again)."""
    t = rows("N", row, elem)
    text = program(
        f"%a : {t}, %b : {t}, %c : {t}",
        f"%more : {t}; %less : {t}",
        f"""%ab = inter.mul %a, %b : {t}
        %more = inter.add %ab, %c : {t}
        %less = inter.sub %c, %ab : {t}""",
    )
    case = Case.of(text, PHASES)
    values = case.values(0, {"N": 500})
    got = case.run(values)
    a, b, c = (values[name].astype(got["more"].dtype) for name in "abc")
    np.testing.assert_array_equal(got["more"], a * b + c)
    np.testing.assert_array_equal(got["less"], c - a * b)


SPECIAL = {
    "f32": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-3, 9.0, -9.0],
    "f64": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-3, 30.0, -30.0, 800.0],
    "i64": [0, 1, -1, 2, -2, 3, -3, 7, -7, 2**63 - 1, -(2**63)],
    "i32": [0, 1, -1, 2, -2, 3, -3, 7, -7],
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("elem", SPECIAL)
@pytest.mark.parametrize(
    ("row", "other"),
    [("", ""), ("9", "9"), ("2x3", "2x1"), pytest.param("20", "20", marks=pytest.mark.long)],
)
def test_special_numbers(row, other, elem):
    """nan goes through, infinities and signed zeros count, integers divided by zero give 0."""
    case = Case.of(pointwise(row, elem, other), PHASES)
    a, b = np.meshgrid(np.array(SPECIAL[elem]), np.array(SPECIAL[elem]))
    values = case.values(0, {"N": a.size})
    for name, x in (("x", a), ("y", b), ("p", a)):
        if name in values:
            shape = values[name].shape
            column = x.reshape(-1, *[1] * (len(shape) - 1))
            values[name] = np.broadcast_to(column, shape)
    with np.errstate(all="ignore"):
        want = results_by_name(case.split, values)
        got = case.run(values)
    for name, expected in want.items():
        close = 1e-5 if elem == "f32" or name.endswith("f32") else 1e-9
        defined = np.isfinite(values["x"]) if name in ("to_i32", "to_i64") else np.ones(1, bool)
        if name == "to_i32":
            defined = defined & (np.abs(values["x"].astype(float)) < 2**31)
        defined = np.broadcast_to(defined, expected.shape)
        np.testing.assert_allclose(
            got[name].astype(expected.dtype)[defined],
            expected[defined],
            rtol=close,
            atol=1e-9,
            err_msg=name,
        )
