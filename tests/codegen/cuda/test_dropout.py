"""Dropout in CUDA C++: the numbers of philox.py, and one block of words for four columns."""

import re

import numpy as np
import pytest

from gnnc.dialects.meaning.philox import dropout

from ..compiled import Case
from ..test_dropout import WIDTHS, program

CUDA = "cuda-emulated"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize("lanes", [1, 4, 0])
def test_every_width_drops_the_same_numbers(lanes, elem):
    plan = f"schedule-grid{{{{threads=64 lanes={lanes}}}}}"
    case = Case.of(program(elem), "split-phases", schedule=plan, target=CUDA)
    values = case.values(0)
    for key in (3, -(2**40) + 7):
        values["key"] = np.full_like(values["key"], key)
        got = case.run(values)
        for site, w in enumerate(WIDTHS):
            x = values[f"x{w}"].astype(np.float32 if elem == "f32" else np.float64)
            want = dropout(x, key, site, 0.3, range(len(x)))
            np.testing.assert_array_equal(got[f"y{w}"] == 0, want == 0, err_msg=f"width {w}")
            np.testing.assert_allclose(got[f"y{w}"], want, rtol=1e-6)


ONE = """
func.func @main(%N : !inter.set<N>, %key : !inter.rows<unit, i64>, %x : !inter.rows<N, WxELEM>)
    -> (!inter.rows<N, WxELEM> {inter.name = "y"}) {
  %y = inter.dropout %x, %key over %N {p = 0.3, site = 1} : !inter.rows<N, WxELEM>
  func.return %y : !inter.rows<N, WxELEM>
}"""


@pytest.mark.parametrize(
    ("width", "elem", "blocks", "single"), [(64, "f32", 1, 0), (64, "f64", 1, 0), (5, "f32", 0, 1)]
)
def test_a_tile_makes_its_words_once(width, elem, blocks, single):
    text = ONE.replace("W", str(width)).replace("ELEM", elem)
    case = Case.of(text, "split-phases", schedule="schedule-grid", target=CUDA)
    device = case.program.data["device"]
    body = device[device.index('extern "C"') :]
    assert body.count("philox_words(") == blocks
    assert len(re.findall(r"dropoutf?\(", body)) == single
