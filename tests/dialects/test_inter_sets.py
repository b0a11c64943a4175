"""SetEnv: normal forms of keys, the order of domains, joins; and that storage agrees with them."""

import itertools

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from gnnc.dialects.inter.builder import Builder
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import ONE, Dom
from gnnc.dialects.meaning.check import functions, parse_module
from gnnc.dialects.meaning.graphs import random_arguments
from gnnc.dialects.meaning.world import World

SIGNATURE = """
func.func @f(%T : !inter.set<T>, %N : !inter.set<N, tag: T>, %R : !inter.set<R, st: T>,
    %g : !inter.set<g, src: N, dst: N onto, rel: R, eq src.tag = rel.st,
                    pairs (rel, src) (dst, rel) (dst.tag, rel.st)>,
    %p : !inter.set<p, edge: g mono, node: N, hole: N partial>) {
  func.return
}
"""


def function(text=SIGNATURE):
    module = parse_module(text)
    return next(iter(functions(module).values()))


def environment(text=SIGNATURE) -> SetEnv:
    env = SetEnv.of(function(text))
    env.verify_names()
    return env


@pytest.mark.parametrize(
    "name, keys, want",
    [
        ("g", [], ONE),
        ("g", ["src"], Dom("g", ("src",))),
        ("g", ["src", "rel"], Dom("g", ("rel", "src"))),
        ("g", ["src", "dst"], Dom("g")),  # no such pair is declared
        ("g", ["src", "dst", "rel"], Dom("g")),
        ("g", ["src", "src.tag"], Dom("g", ("src",))),  # a prefix determines it
        ("g", ["src.tag"], Dom("g", ("rel.st",))),  # the same class, written in one way
        ("g", ["rel", "src.tag"], Dom("g", ("rel",))),  # through the equation
        ("g", ["src", "rel.st"], Dom("g", ("src",))),  # and the other way round
        ("g", ["dst.tag", "src.tag"], Dom("g", ("dst.tag", "rel.st"))),
        ("p", ["edge"], Dom("p")),  # mono: as fine as the set
        ("p", ["edge", "node"], Dom("p")),
        ("p", ["edge.src"], Dom("p", ("edge.src",))),
        ("p", ["edge.src.tag"], Dom("p", ("edge.rel.st",))),  # equations of g hold behind a map
        ("p", ["hole"], Dom("p")),  # rows without a value have no key
    ],
)
def test_normal_forms(name, keys, want):
    assert environment().norm(name, keys) == want


def domains(env, name, labels):
    """Every normal form with up to two of these paths, the whole set and unit."""
    keys = [k for n in range(3) for k in itertools.combinations(labels, n)]
    return sorted({Dom(name), ONE, *(env.norm(name, k) for k in keys)})


LABELS = {
    "g": ["src", "dst", "rel", "src.tag", "dst.tag", "rel.st"],
    "p": ["edge", "node", "edge.src", "edge.rel", "edge.dst", "node.tag"],
}


@pytest.mark.parametrize("name", LABELS)
def test_le_is_a_partial_order_and_join_an_upper_bound(name):
    env = environment()
    doms = domains(env, name, LABELS[name])
    for a, b in itertools.product(doms, doms):
        assert env.le(a, a) and env.le(ONE, a) and env.le(a, Dom(name))
        if env.le(a, b) and env.le(b, a):
            assert a == b
        up = env.join([a, b])
        assert up == env.join([b, a])
        assert env.le(a, up) and env.le(b, up)
        if env.le(a, b):
            assert up == b
    for a, b, c in itertools.product(doms, doms, doms):
        if env.le(a, b) and env.le(b, c):
            assert env.le(a, c)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", LABELS)
def test_what_le_allows_can_be_read(name, seed):
    """A coarse row seen from a fine row is the one that every set row behind it sees."""
    func = function()
    env = SetEnv.of(func)
    args = random_arguments(func, np.random.default_rng(seed))
    sets = {a.type.label: x for a, x in zip(func.body.block.args, args, strict=True)}
    world = World(env, sets.__getitem__)
    doms = domains(env, name, LABELS[name])
    for fine, coarse in itertools.product(doms, doms):
        if env.le(coarse, fine):
            index = world.index(fine, coarse)
            assert len(index) == world.count(fine)
            assert np.all((0 <= index) & (index < world.count(coarse)))
            if fine != ONE and coarse != ONE:
                assert np.array_equal(index[world.stored(fine)[0]], world.stored(coarse)[0])


def test_a_tuple_cannot_be_read_where_it_may_not_occur():
    """g[a] stores every row of N, and a node that no edge reads has no (a.x, a.y) tuple."""
    env = environment(
        "func.func @f(%X : !inter.set<X>, %N : !inter.set<N, x: X, y: X>,"
        " %g : !inter.set<g, a: N, pairs (a.x, a.y)>, %h : !inter.set<h, a: N onto,"
        " pairs (a.x, a.y)>) { func.return }"
    )
    assert not env.le(Dom("g", ("a.x", "a.y")), Dom("g", ("a",)))
    assert env.join([Dom("g", ("a.x", "a.y")), Dom("g", ("a",))]) == Dom("g")
    assert env.le(Dom("h", ("a.x", "a.y")), Dom("h", ("a",)))


def test_two_sets_do_not_join():
    with pytest.raises(VerifyException, match="live on different sets, N and g: cross with"):
        environment().join([Dom("N"), Dom("g")])


def test_structure_ops_imply_equations():
    func = function()
    func.body.block.last_op.detach()
    env = SetEnv.of(func)
    b = Builder(env, func.body.block)
    f = b.filter("g", no_loops=True, name="f")
    assert env.norm("f", ["parent.src"]) == Dom("f", ("src",))
    assert env.norm("f", ["parent"]) == Dom("f")
    assert ("parent.src", "src") in env.full_type("f").equations
    assert ("parent.src", "src") not in f.type.equations
    loops = b.loops("g", name="l")
    assert env.norm("l", ["src"]) == Dom("l")
    assert loops.type.map_dict()["src"].flags == ("mono", "onto")


def test_names():
    env = environment()
    assert env.fresh("g") == "g_1" and env.fresh("new") == "new"
    assert env.codomain("g", "src.tag") == "T"
    assert env.is_partial("p", "hole") and not env.is_partial("p", "node")
    with pytest.raises(VerifyException, match="set g has no map 'rell'; it has src, dst, rel"):
        env.codomain("g", "rell")
    with pytest.raises(VerifyException, match="set q is not born in this function"):
        env.info("q")
    with pytest.raises(VerifyException, match="set N is born twice"):
        env.add(env.value("N"))
    assert env.norm("p", ["edge"]) == Dom("p")


def test_equations_in_a_circle_end():
    env = environment(
        "func.func @f(%N : !inter.set<N, next: N, eq next = next.next>) { func.return }"
    )
    assert env.norm("N", ["next.next.next"]) == Dom("N", ("next",))
