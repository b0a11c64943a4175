"""Random graphs obey their types, and are nasty enough."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import SetType
from gnnc.dialects.meaning import run
from gnnc.dialects.meaning.check import functions, parse_module
from gnnc.dialects.meaning.graphs import (
    NoArguments,
    argument_names,
    draw_map,
    made_sets,
    random_arguments,
)
from gnnc.dialects.meaning.inter import check_arguments, check_equations
from gnnc.dialects.meaning.strategies import arguments
from gnnc.dialects.meaning.world import World

PLAIN = """func.func @f(%N : !inter.set<N>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %x : !inter.rows<N, 2xf32>,
    %p : !inter.rows<g[rel, src], f32>, %m : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  func.return
}"""
HARD = """func.func @f(%T : !inter.set<T>, %N : !inter.set<N, tag: T>, %R : !inter.set<R, st: T>,
    %g : !inter.set<g, src: N, dst: N onto, rel: R, eq src.tag = rel.st>,
    %f : !inter.set<f, src: N, dst: N, rel: R, parent: g mono, eq parent.src = src,
                    eq parent.dst = dst, eq parent.rel = rel>,
    %l : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial, eq src = dst>,
    %u : !inter.set<u, src: N onto, dst: N onto, parts f l>, %h : !inter.set<h, rev: h partial>,
    %w : !inter.rows<u, f32>) {
  func.return
}"""


def function(text):
    return next(iter(functions(parse_module(text)).values()))


@pytest.mark.parametrize("text", [PLAIN, HARD])
@pytest.mark.parametrize("seed", range(40))
def test_types_are_obeyed(text, seed):
    func = function(text)
    args = random_arguments(func, np.random.default_rng(seed))
    check_arguments(func, args)  # bounds, sizes, parts
    env = SetEnv.of(func)
    sets = {
        a.type.label: x
        for a, x in zip(func.body.block.args, args, strict=True)
        if isinstance(a.type, SetType)
    }
    world = World(env, sets.__getitem__)
    for name, info in env.sets.items():
        check_equations(world, info.type)
        for label, m in info.maps.items():
            index = sets[name].maps[label]
            images = index[index >= 0]
            if "mono" in m.flags:
                assert len(np.unique(images)) == len(images)
            if "onto" in m.flags:
                assert len(np.unique(images)) == sets[m.codomain].n
        if info.type.part_names:
            for label in info.maps:
                parts = [sets[p].maps[label] for p in info.type.part_names]
                assert np.array_equal(sets[name].maps[label], np.concatenate(parts))


def test_graphs_are_nasty():
    func = function(PLAIN)
    seen = set()
    for seed in range(100):
        n, r, g, *_ = random_arguments(func, np.random.default_rng(seed))
        edges = list(zip(*(g.maps[k].tolist() for k in ("src", "dst", "rel")), strict=True))
        seen |= {"no edges"} if not edges else set()
        seen |= {"parallel"} if len(set(edges)) < len(edges) else set()
        seen |= {"loop"} if any(s == d for s, d, _ in edges) else set()
        seen |= {"isolated"} if len({d for _, d, _ in edges}) < n.n else set()
        seen |= {"empty relation"} if edges and len({q for *_, q in edges}) < r.n else set()
        degrees = np.bincount(g.maps["dst"], minlength=1)
        seen |= {"hub"} if len(edges) > 8 and degrees.max() > 0.5 * len(edges) else set()
    assert seen == {"no edges", "parallel", "loop", "isolated", "empty relation", "hub"}


def test_sizes_and_values():
    func = function(PLAIN)
    x = np.ones((4, 2))
    args = random_arguments(func, np.random.default_rng(0), sizes={"N": 4, "g": 9}, values={"x": x})
    assert args[0].n == 4 and args[2].n == 9 and args[3] is x
    assert random_arguments(func, np.random.default_rng(0), {"N": 0})[2].n == 0


def test_integers_fit_the_maps_that_they_become():
    module = parse_module(
        """func.func @f(%E : !inter.set<E>, %N : !inter.set<N>, %ei : !inter.rows<E, 2xi64>,
          %key : !inter.rows<unit, i64>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
      %a = inter.slice %ei {dim = 0, lo = 0, hi = 1} : !inter.rows<E, 1xi64>
      %b = inter.slice %ei {dim = 0, lo = 1, hi = 2} : !inter.rows<E, 1xi64>
      %s = inter.reshape %a : !inter.rows<E, i64>
      %d = inter.reshape %b : !inter.rows<E, i64>
      %g = inter.attach %E (src = %s, dst = %d) : !inter.set<g, src: N, dst: N, parent: E mono onto>
      %xd = inter.dropout %x, %key over %N {p = 0.5, site = 0} : !inter.rows<N, f32>
      %xs = inter.at %g[src], %xd : !inter.rows<g, f32>
      %o = inter.reduce sum %xs over %g along dst : !inter.rows<N, f32>
      func.return %o : !inter.rows<N, f32>
    }"""
    )
    func = functions(module)["f"]
    for seed in range(20):
        run(module, "f", *random_arguments(func, np.random.default_rng(seed)))


def test_rows_of_sets_that_the_body_makes():
    """Cotangents of values on a filtered graph: their number is known once the filter has run."""
    module = parse_module(
        """func.func @f(%g : !inter.set<g, src: N>, %N : !inter.set<N>, %m : !inter.rows<g, i1>,
          %d : !inter.rows<f[src], f32>, %e : !inter.rows<f, f32>) -> !inter.rows<f, f32> {
      %f = inter.filter %g, %m : !inter.set<f, src: N, parent: g mono>
      %y = inter.add %d, %e : !inter.rows<f, f32>
      func.return %y : !inter.rows<f, f32>
    }"""
    )
    func = functions(module)["f"]
    for seed in range(20):
        args = random_arguments(func, np.random.default_rng(seed))
        assert len(run(module, "f", *args)[0]) == args[2].sum() == len(args[4])
        known = dict(zip(func.body.block.args[:3], args, strict=False))
        assert set(made_sets(func, known)) == {"g", "N", "f"}


def test_what_cannot_be_had_is_said():
    text = (
        "func.func @f(%A : !inter.set<A>, %B : !inter.set<B>,"
        " %g : !inter.set<g, a: A mono, b: B onto>) { func.return }"
    )
    with pytest.raises(NoArguments, match="set g would be mono into 2 and onto 5 rows"):
        random_arguments(function(text), np.random.default_rng(0), {"A": 2, "B": 5})
    text = "func.func @f(%a : !inter.set<a, m: b>, %b : !inter.set<b, m: a>) { func.return }"
    with pytest.raises(NoArguments, match="sets a, b need each other"):
        random_arguments(function(text), np.random.default_rng(0))


def test_names_of_arguments():
    func = function(
        'func.func @f(%N : !inter.set<N> {inter.name = "nodes"}, %x : !inter.rows<N, f32>)'
        " { func.return }"
    )
    func.body.block.args[1].name_hint = None
    assert argument_names(func) == ["nodes", "arg1"]


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_mono_maps(n, size, seed):
    index = draw_map(np.random.default_rng(seed), n, size, frozenset({"mono", "partial"}))
    assert index.shape == (n,)
    images = index[index >= 0]
    assert len(np.unique(images)) == len(images) and np.all(images < size)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_strategy(data):
    func = function(HARD)
    check_arguments(func, data.draw(arguments(func)))
