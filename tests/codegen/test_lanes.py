"""Maxima that are one instruction, and numbers of heads that stand for several features: the same
numbers as lane by lane, for every instruction set."""

import itertools

import numpy as np
import pytest

from gnnc.dialects.meaning.lowered import results_by_name

from .compiled import FORMATS, TRAIN, Case
from .shared import program
from .test_pointwise import PHASES, SPECIAL

SLOPES = (0.2, 1.0, 0.0, 1.5, -0.1)
SHAPES = [
    (2, 8),
    (3, 5),
    (4, 2),
    (4, 4),
    (4, 8),
    (5, 3),
    (8, 8),
    (8, 20),
    (16, 2),
    (2, 40),
    (8, 47),
    (3, 266),
]
"""Heads, and features of each."""


@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize("format_", FORMATS)
def test_maxima_of_special_numbers(format_, elem):
    """NaN goes through from either side, zeros keep their signs, infinities stay what they are."""
    row = f"!inter.rows<N, 23x{elem}>"
    names = ["greater", "smaller", "positive", *(f"leaky{k}" for k in range(len(SLOPES)))]
    leaky = "\n".join(
        f"%leaky{k} = inter.leaky_relu %x {{slope = {slope}}} : {row}"
        for k, slope in enumerate(SLOPES)
    )
    text = program(
        f"%x : {row}, %y : {row}",
        "; ".join(f"%{name} : {row}" for name in names),
        f"""
%greater = inter.maximum %x, %y : {row}
%smaller = inter.minimum %x, %y : {row}
%positive = inter.relu %x : {row}
{leaky}
""",
    )
    vector_bytes, march = FORMATS[format_]
    case = Case.of(text, PHASES, vector_bytes=vector_bytes, march=march)
    pairs = np.array(list(itertools.product(SPECIAL[elem], SPECIAL[elem])))
    values = case.values(0, {"N": len(pairs)})
    for name, column in zip("xy", pairs.T, strict=True):
        values[name] = np.broadcast_to(column[:, None], values[name].shape)
    with np.errstate(all="ignore"):
        want = results_by_name(case.split, values)
        got = case.run(values)
    x, y = values["x"], values["y"]
    zeros = {"greater": (x == 0) & (y == 0), "positive": x == 0}  # of either sign
    zeros["smaller"] = zeros["greater"]
    for name, expected in want.items():
        found = got[name].astype(expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)
        signed = ~np.isnan(expected) & ~zeros.get(name, np.zeros(1, bool))
        np.testing.assert_array_equal(
            np.signbit(found)[signed], np.signbit(expected)[signed], err_msg=name
        )


def of_heads(heads, width, elem):
    """Sums of products with a number a head, of edges, of nodes, and of both."""
    few, one = f"{heads}x{elem}", f"{heads}x1x{elem}"
    many = f"{heads}x{width}x{elem}"
    return program(
        f"%x : !inter.rows<N, {many}> {{inter.needs_grad}}, "
        f"%a : !inter.rows<g, {few}> {{inter.needs_grad}}, "
        f"%b : !inter.rows<N, {few}> {{inter.needs_grad}}",
        f"%o : !inter.rows<N, {many}>; %w : !inter.rows<N, {many}>",
        f"""
%e = inter.exp %a : !inter.rows<g, {few}>
%ec = inter.reshape %e : !inter.rows<g, {one}>
%xs = inter.at %g[src], %x : !inter.rows<g, {many}>
%m = inter.mul %ec, %xs : !inter.rows<g, {many}>
%o = inter.reduce sum %m over %g along dst : !inter.rows<N, {many}>
%bc = inter.reshape %b : !inter.rows<N, {one}>
%w = inter.mul %o, %bc : !inter.rows<N, {many}>
""",
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_of_heads(shape, format_):
    vector_bytes, march = FORMATS[format_]
    elem = "f64" if sum(shape) % 3 == 0 else "f32"
    case = Case.of(of_heads(*shape, elem), TRAIN, vector_bytes=vector_bytes, march=march)
    for seed, sizes in ((0, None), (1, {"N": 30, "g": 200}), (2, {"g": 0})):
        case.check(case.values(seed, sizes), tolerance=1e-4 if elem == "f32" else 1e-9)
