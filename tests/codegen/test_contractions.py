"""Contractions in C: products in tiles, sums of outer products, and loops for what is left."""

from __future__ import annotations

import pytest

from .compiled import COARSE, FINE, TRAIN, Case
from .generate import SPECS, contractions, layouts, whole_weights
from .shared import program
from .test_pointwise import FORMATS

INFER = "unify-sets,split-phases"
SMALL = {"a": 3, "b": 4, "h": 2, "l": 3, "k": 5, "f": 6}
TALL = SMALL | {"k": 32, "f": 5}
"""Sums of outer products that take fewer vectors with their operands exchanged."""
SLABS = SMALL | {"k": 37, "f": 38}
"""Left operands of whole slabs and a rest, with several panels of columns."""
PAGES = {"a": 2, "b": 1, "h": 1, "l": 1, "k": 7, "f": 1024}
"""Rows that are pages long, which lie apart in blocks and in sums."""
SIZES = {
    "small": SMALL,
    "tall": TALL,
    "ones": dict.fromkeys("abhlkf", 1),
    "ragged": {"a": 2, "b": 9, "h": 2, "l": 3, "k": 33, "f": 17},
    "even": {"a": 3, "b": 16, "h": 4, "l": 3, "k": 16, "f": 32},
    "wide": {"a": 2, "b": 3, "h": 3, "l": 2, "k": 3, "f": 100},
    "long": {"a": 2, "b": 3, "h": 2, "l": 2, "k": 602, "f": 3},
    "pages": PAGES,
    "deep": {"a": 2, "b": 1, "h": 1, "l": 2, "k": 2100, "f": 70},
}
GRAPHS = ((0, None), (1, {"N": 1}), (2, {"N": 60, "g": 200}))


def agree(case: Case, elem: str) -> None:
    for seed, sizes in GRAPHS:
        close = 2e-3 if elem == "f32" else 1e-8
        case.check(case.values(seed, sizes), tolerance=close)


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    agree(Case.of(contractions(SIZES[size], "f32", edges=False), INFER), "f32")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("format_", FORMATS)
def test_formats(format_):
    vector_bytes, march = FORMATS[format_]
    text = contractions(SIZES["ragged"], "f64", SPECS[:12], edges=False)
    agree(Case.of(text, INFER, vector_bytes=vector_bytes, march=march), "f64")


@pytest.mark.parametrize("elem", ["f32", "f64"])
def test_whole_weights(elem):
    """Weights of relations as sums of bases, and the gradients of both: one row, shared loops."""
    agree(Case.of(whole_weights(elem), INFER), elem)


def test_one_row_forms_no_team_within_a_team():
    """Loops within it are shared among threads, and each of these would be a new one."""
    source = Case.of(whole_weights("f32"), INFER, target="openmp").program.source
    nests = [n for n in source.split("\nstatic void ")[1:] if "_rows(" in n.partition("\n")[0]]
    shared = [n for n in nests if "#pragma omp parallel num_threads(threads)\n" in n]
    assert shared
    assert not any("parallel num_threads(threads) if" in n for n in nests)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "size", [SMALL, TALL, SLABS, PAGES], ids=["small", "tall", "slabs", "pages"]
)
def test_gradients(size):
    """Products with transposed matrices, and sums of outer products with partial sums a chunk."""
    agree(Case.of(contractions(size, "f64", SPECS[:8], edges=False), TRAIN), "f64")


def test_small_products_between_vectors():
    """GCC 12 took other halves of a vector for the rows of a small product, at -O3 with AVX-512."""
    x, weight = "!inter.rows<unit, 3x4xf64>", "!inter.rows<unit, 4x4xf64>"
    text = program(
        f"%x : {x}, %w : {weight}, %b : !inter.rows<unit, 4xf64>, %v : !inter.rows<unit, 2x4xf64>, "
        "%c : !inter.rows<unit, 2xf64>",
        "%o : !inter.rows<unit, 3x2xf64>",
        f"""
%h = inter.contract "ay,zy->az" %x, %w : {x}
%hb = inter.add %b, %h : {x}
%r = inter.relu %hb : {x}
%s = inter.add %x, %r : {x}
%p = inter.contract "ay,zy->az" %s, %v : !inter.rows<unit, 3x2xf64>
%o = inter.add %c, %p : !inter.rows<unit, 3x2xf64>
""",
    )
    agree(Case.of(text, INFER), "f64")


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "format_", "schedule"),
    [
        *((size, "native", FINE) for size in SIZES),
        ("ragged", "avx", FINE),
        ("ragged", "sse", FINE),
        ("ragged", "native", COARSE),
    ],
    ids=[*SIZES, "avx", "sse", "coarse"],
)
def test_all_gradients(size, format_, schedule):
    vector_bytes, march = FORMATS[format_]
    text = contractions(SIZES[size], "f32")
    case = Case.of(text, TRAIN, schedule=schedule, vector_bytes=vector_bytes, march=march)
    agree(case, "f32")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("elem", ["f32", "f64", "i64"])
@pytest.mark.parametrize(("heads", "width"), [(2, 3), (1, 1), (4, 33)])
def test_layouts(heads, width, elem):
    """Transposes, slices, concatenations and folds of rows."""
    agree(Case.of(layouts(heads, width, elem), INFER), elem)
