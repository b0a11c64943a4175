"""Dropout in C drops the numbers that dialects/meaning/philox.py drops, on every machine."""

import numpy as np
import pytest

from gnnc.dialects.meaning.philox import dropout

from .compiled import FORMATS, Case

WIDTHS = (1, 5, 16, 32, 33, 64, 65, 128, 300)
"""Less than a vector of words, and whole groups of vectors with and without a rest."""


def program(elem: str) -> str:
    """Dropout of rows of each width at a site of its own."""
    arguments = [f"%x{w} : !inter.rows<N, {w}x{elem}>" for w in WIDTHS]
    head = f"%N : !inter.set<N>, %key : !inter.rows<unit, i64>, {', '.join(arguments)}"
    results = [f'!inter.rows<N, {w}x{elem}> {{inter.name = "y{w}"}}' for w in WIDTHS]
    lines = [f"func.func @main({head}) -> ({', '.join(results)}) {{"]
    for site, w in enumerate(WIDTHS):
        t = f"!inter.rows<N, {w}x{elem}>"
        lines.append(
            f"  %y{w} = inter.dropout %x{w}, %key over %N {{p = 0.3, site = {site}}} : {t}"
        )
    types = ", ".join(f"!inter.rows<N, {w}x{elem}>" for w in WIDTHS)
    return "\n".join(
        [*lines, f"  func.return {', '.join(f'%y{w}' for w in WIDTHS)} : {types}", "}"]
    )


@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize("format_", FORMATS)
def test_every_width_drops_the_same_numbers(format_, elem):
    vector_bytes, march = FORMATS[format_]
    case = Case.of(program(elem), "split-phases", vector_bytes=vector_bytes, march=march)
    values = case.values(0)
    for key in (3, -(2**40) + 7):
        values["key"] = np.full_like(values["key"], key)
        got = case.run(values)
        for site, w in enumerate(WIDTHS):
            x = values[f"x{w}"].astype(np.float32 if elem == "f32" else np.float64)
            want = dropout(x, key, site, 0.3, range(len(x)))
            assert 0.5 < (want != 0).mean() < 0.9
            np.testing.assert_array_equal(got[f"y{w}"] == 0, want == 0, err_msg=f"width {w}")
            np.testing.assert_allclose(got[f"y{w}"], want, rtol=1e-6)


ENTRIES = """
func.func @main(%z : !inter.set<z>, %v : !inter.rows<z, ELEM>, %key : !inter.rows<unit, i64>,
    %i : !inter.rows<z, i64>, %j : !inter.rows<z, i64>)
    -> (!inter.rows<z, ELEM> {inter.name = "y"}) {
  %y = inter.dropout %v, %key over %z as %i at %j {p = 0.3, site = 5} : !inter.rows<z, ELEM>
  func.return %y : !inter.rows<z, ELEM>
}"""


@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize("format_", FORMATS)
def test_entries_are_dropped_as_in_the_whole_matrix(format_, elem):
    vector_bytes, march = FORMATS[format_]
    program = ENTRIES.replace("ELEM", elem)
    case = Case.of(program, "split-phases", vector_bytes=vector_bytes, march=march)
    kept: list[float] = []
    for seed in range(4):
        values = case.values(seed)
        v = values["v"]
        values["i"] = np.arange(len(v)) * 1_000_003 - 7
        values["j"] = np.arange(len(v)) % 11
        want = dropout(v, int(values["key"][0]), 5, 0.3, values["i"], values["j"])
        np.testing.assert_allclose(case.run(values)["y"], want, rtol=1e-6)
        kept += list(want != 0)
    assert 0.4 < np.mean(kept) < 1
