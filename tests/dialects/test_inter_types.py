"""The two types: their text, and the small things that passes do with them."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, f32, f64, i1, i32, i64
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from gnnc.dialects.inter import Inter
from gnnc.dialects.inter.types import (
    ONE,
    Dom,
    Map,
    RowsType,
    SetType,
    is_bool,
    is_float,
    is_integer,
)


def parse(text):
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(Inter)
    return Parser(ctx, text).parse_type()


@pytest.mark.parametrize(
    "text",
    [
        "!inter.set<N>",
        "!inter.set<g, src: N, dst: N>",
        "!inter.set<g, src: N mono onto, old: h partial>",
        "!inter.set<u, src: N, parts a b>",
        "!inter.set<u, parts a b>",
        "!inter.set<g, src: N, rel: R, eq src.tag = rel.st, eq src = rel, pairs (rel, src)>",
        "!inter.set<g, a: N, b: N, c: N, pairs (a, b) (a, b, c)>",
        "!inter.rows<N, f32>",
        "!inter.rows<unit, 8x64xf64>",
        "!inter.rows<g[src], 1xi64>",
        "!inter.rows<g[rel, src.tag], 2xi1>",
    ],
)
def test_text_is_read_back(text):
    assert str(parse(text)) == text


def test_what_is_written_differently_is_the_same():
    one = parse("!inter.set<g, a: N onto mono, b: N, pairs (b, a)>")
    assert str(one) == "!inter.set<g, a: N mono onto, b: N, pairs (a, b)>"
    assert one == SetType.get("g", {"a": ("N", ("onto", "mono")), "b": "N"}, pairs=[("b", "a")])


@pytest.mark.parametrize(
    "text", ["!inter.set<>", "!inter.rows<g>", "!inter.rows<g, ?xf32>", "!inter.set<g, src N>"]
)
def test_bad_text(text):
    with pytest.raises((ParseError, VerifyException)):
        parse(text)


def test_a_label_has_no_dot():
    with pytest.raises(VerifyException, match="a map's name has no dot"):
        SetType.get("g", {"a.b": "N"})


def test_parts_of_a_set_type():
    t = parse(
        "!inter.set<u, src: N onto, rel: R, parts a b, eq src.tag = rel.st, pairs (rel, src)>"
    )
    assert t.label == "u"
    assert t.map_dict() == {"src": Map("N", ("onto",)), "rel": Map("R")}
    assert t.part_names == ("a", "b")
    assert t.equations == (("src.tag", "rel.st"),)
    assert t.pair_keys == (("rel", "src"),)
    assert str(t.renamed({"u": "v", "N": "M", "b": "c", "src": "no"})) == (
        "!inter.set<v, src: M onto, rel: R, parts a c, eq src.tag = rel.st, pairs (rel, src)>"
    )


def test_variants_of_rows():
    t = parse("!inter.rows<g[src], 8x4xf32>")
    assert t.dom == Dom("g", ("src",)) and t.dims == (8, 4) and t.elem == f32
    assert t == RowsType.get(Dom("g", ("src",)), (8, 4), f32)
    assert str(t.on(ONE)) == "!inter.rows<unit, 8x4xf32>"
    assert str(t.renamed({"g": "h"})) == "!inter.rows<h[src], 8x4xf32>"


def test_element_kinds():
    assert [e for e in (f32, f64, i1, i32, i64) if is_float(e)] == [f32, f64]
    assert [e for e in (f32, f64, i1, i32, i64) if is_bool(e)] == [i1]
    assert [e for e in (f32, f64, i1, i32, i64) if is_integer(e)] == [i32, i64]
