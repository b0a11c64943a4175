"""A program over the rows of ranks gives what the program on the whole graph gives, forward and
backward, however nodes lie on ranks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.inter.types import rows, set_type
from gnnc.dialects.inter.values import StackOp
from gnnc.dialects.meaning import SetVal, run
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.graphs import random_arguments
from gnnc.dialects.signature import arguments, results
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.global_rows import GlobalRowsPass
from gnnc.passes.inter.partition import PartitionPass
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import Exchanges

from ..meaning import changed
from ..programs import PROGRAMS
from ..random_programs import Drawer
from ..ranked import APART, CUT, IN_CHUNKS, OPTIMIZED, Ranked
from ..small_programs import PROGRAMS as SMALL

KINDS = ("sum", "mean", "max", "min", "mul")
REFUSED = {
    "may be on several ranks": (
        "readout",
        "else of pairs",
        *(f"reduce {k} over seen nodes" for k in KINDS),
    ),
    "the caller knows": (
        "along in another order",
        "counts",
        "softmax of pairs",
        *(f"reduce {k} over pairs" for k in KINDS),
        *(f"reduce {k} into pairs" for k in KINDS),
    ),
    "no order across ranks": ("last",),
}
"""Programs that have no form over parts, by what is said of them."""
MADE = ("else", "else of one row", "stack and part")
"""Programs with results on sets that they make."""
ALL = {**PROGRAMS, **SMALL}


def function(module: ModuleOp) -> FuncOp:
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    return func


def names_of(func: FuncOp) -> list[str]:
    return [n for n, _, _ in arguments(func)]


def together(cut: ModuleOp, graph: Ranked, values: Sequence[Any]) -> Sequence[Any]:
    """What a program gives over the rows of all ranks together."""
    return run(cut, function(cut).sym_name.data, *values)


def apart(cut: ModuleOp, graph: Ranked, values: Sequence[Any]) -> Sequence[Any]:
    """The same where each rank runs it for its own rows."""
    func = function(cut)

    def on_rank(c: Communicator) -> dict[str, Any]:
        mine = graph.of_rank(func, values, c.rank)
        carrier = Exchanges(c, graph.peers(c.rank))
        found = run(cut, func.sym_name.data, *mine, carrier=carrier)
        return dict(zip(names, found, strict=True))

    names = [n for n, _, _ in results(func)]
    return list(graph.joined(func, virtual.run(graph.ranks, on_rank), names).values())


def assert_same(
    plain: ModuleOp,
    whole: ModuleOp,
    cut: ModuleOp,
    seed: int,
    ranks: int,
    run_cut: Callable[[ModuleOp, Ranked, Sequence[Any]], Sequence[Any]] = together,
    chunks: int = 1,
) -> None:
    """`whole` and `cut` are made of `plain`; `cut` is partitioned, and run by `run_cut`."""
    before, after, rng = function(whole), function(cut), np.random.default_rng(seed)
    named = dict(zip(names_of(before), random_arguments(before, rng), strict=True))
    sets = {n: x for n, x in named.items() if isinstance(x, SetVal)}
    owner = {n: rng.integers(0, ranks, s.n) for n, s in sets.items()}
    graph = Ranked(function(plain), ranks, sets, owner, chunks)
    plain_results = run(whole, before.sym_name.data, *named.values())
    wanted = dict(zip([n for n, _, _ in results(before)], plain_results, strict=True))
    got = run_cut(cut, graph, graph.arguments(after, named))
    for name, x in graph.results(after, got).items():
        np.testing.assert_allclose(x, wanted.pop(name), rtol=1e-8, atol=1e-8, err_msg=name)
    assert not wanted


def check(plain: ModuleOp, seed: int) -> None:
    cut = changed(plain, *CUT)
    whole = changed(plain, AutodiffPass())
    for ranks in (1, 3):
        assert_same(plain, plain, cut, seed, ranks)
        assert_same(plain, whole, changed(cut, AutodiffPass()), seed, ranks)
    optimized = changed(cut, *OPTIMIZED)
    assert_same(plain, whole, optimized, seed, 4)
    for_one = changed(optimized, *APART)
    for run_cut in (together, apart):
        assert_same(plain, whole, for_one, seed, 4, run_cut)


def names() -> list[str]:
    others = {n for names in REFUSED.values() for n in names} | {*MADE}
    return [n for n in ALL if n not in others]


@pytest.mark.parametrize("name", names())
def test_programs(name: str) -> None:
    check(parse_module(ALL[name]), 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", names())
def test_rows_cross_in_chunks(name: str) -> None:
    plain = parse_module(ALL[name])
    cut, whole = changed(plain, *IN_CHUNKS), changed(plain, AutodiffPass())
    assert_same(plain, plain, cut, 0, 3, chunks=3)
    for_one = changed(cut, *OPTIMIZED, *APART)
    assert_same(plain, whole, for_one, 0, 3, apart, chunks=3)


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_programs_on_more_graphs(name: str) -> None:
    for seed in range(1, 12):
        check(parse_module(ALL[name]), seed)


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    for name in REFUSED[what]:
        with pytest.raises(PassFailedException, match=f"partition: .*{what}"):
            changed(parse_module(ALL[name]), *CUT)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("chunks", [1, 2])
def test_results_on_made_sets(name: str, chunks: int) -> None:
    """Each row is there, on one of the ranks."""
    plain = parse_module(ALL[name])
    before, rng = function(plain), np.random.default_rng(4)
    given = random_arguments(before, rng)
    named = dict(zip(names_of(before), given, strict=True))
    sets = {n: x for n, x in named.items() if isinstance(x, SetVal)}
    owner = {n: rng.integers(0, 3, s.n) for n, s in sets.items()}
    graph = Ranked(before, 3, sets, owner, chunks)
    cut = changed(plain, PartitionPass(chunks=chunks), GlobalRowsPass())
    found = together(cut, graph, graph.arguments(function(cut), named))
    wanted = run(plain, before.sym_name.data, *given)
    for (_, v, _), x, y in zip(results(function(cut)), found, wanted, strict=True):
        made = rows(v).dom.set not in graph.sets
        a, b = (np.sort(z, axis=0) if made else z for z in (x, y))
        assert a.shape == b.shape and (made or rows(v).dom.set == "N_own")
        np.testing.assert_allclose(a, b if made else b[graph.rows["N_own"]], rtol=1e-8)
    assert any(rows(v).dom.set not in graph.sets for _, v, _ in results(function(cut)))


FAR = """
func.func @far(%R : !inter.set<R>, %N : !inter.set<N, kind: R>,
    %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf64> {inter.needs_grad},
    %e : !inter.rows<g, 2xf64> {inter.needs_grad}, %c : !inter.rows<g, i64>)
    -> (!inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>, !inter.rows<g, 2xf64>, !inter.rows<N, i64>,
        !inter.rows<R, 2xf64>) {
  %xs = inter.at %g[src], %x : !inter.rows<g, 2xf64>
  %m = inter.reduce mul %e over %g along src : !inter.rows<N, 2xf64>
  %t = inter.reduce max %xs over %g along src : !inter.rows<N, 2xf64>
  %r = inter.relu %e : !inter.rows<g, 2xf64>
  %z = inter.reduce max %r over %g along src {zero_ties} : !inter.rows<N, 2xf64>
  %y = inter.add %t, %z : !inter.rows<N, 2xf64>
  %s = inter.softmax %e over %g along src : !inter.rows<g, 2xf64>
  %i = inter.reduce min %c over %g along src : !inter.rows<N, i64>
  %k = inter.reduce min %e over %g along src.kind : !inter.rows<R, 2xf64>
  func.return %m, %y, %s, %i, %k : !inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>,
    !inter.rows<g, 2xf64>, !inter.rows<N, i64>, !inter.rows<R, 2xf64>
}"""


def test_groups_that_several_ranks_have_rows_of() -> None:
    """By the other end of edges: values that are equal, and groups without rows, with gradients."""
    plain = parse_module(FAR)
    cut, whole = changed(plain, *CUT), changed(plain, AutodiffPass())
    assert_same(plain, whole, changed(cut, AutodiffPass()), 2, 3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_such_groups_on_more_graphs(seed: int) -> None:
    check(parse_module(FAR), seed)
    plain = parse_module(FAR)
    cut, whole = changed(plain, *IN_CHUNKS), changed(plain, AutodiffPass())
    for_one = changed(cut, *OPTIMIZED, *APART)
    assert_same(plain, whole, for_one, seed, 3, apart, chunks=3)


def test_rows_by_their_places_are_refused() -> None:
    text = """
    func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f64>)
        -> !inter.rows<unit, f64> {
      %lo = inter.const 0 : !inter.rows<unit, i64>
      %hi = inter.const 1 : !inter.rows<unit, i64>
      %i = inter.interval %N, %lo, %hi : !inter.set<i, parent: N mono>
      %y = inter.at %i[parent], %x : !inter.rows<i, f64>
      %s = inter.reduce sum %y over %i along () : !inter.rows<unit, f64>
      func.return %s : !inter.rows<unit, f64>
    }"""
    with pytest.raises(PassFailedException, match="rows of N are taken by their places"):
        changed(parse_module(text), *CUT)


PARENTS = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %m : !inter.rows<g, i1>,
    %x : !inter.rows<N, 2xf64> {inter.needs_grad}, %e : !inter.rows<g, 2xf64> {inter.needs_grad})
    -> (!inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>) {
  %f = inter.filter %g, %m : !inter.set<f, src: N, dst: N, parent: g mono>
  %xs = inter.at %f[src], %x : !inter.rows<f, 2xf64>
  %es = inter.at %f[parent], %e : !inter.rows<f, 2xf64>
  %v = inter.mul %xs, %es : !inter.rows<f, 2xf64>
  %s = inter.reduce sum %v over %f along parent : !inter.rows<g, 2xf64>
  %t = inter.reduce mean %v over %f along parent : !inter.rows<g, 2xf64>
  %k = inter.count over %f along parent : !inter.rows<g, f64>
  %b = inter.reduce max %v over %f along parent : !inter.rows<g, 2xf64>
  %p = inter.softmax %v over %f along parent : !inter.rows<f, 2xf64>
  %q = inter.reduce sum %p over %f along dst : !inter.rows<N, 2xf64>
  %st = inter.mul %s, %t : !inter.rows<g, 2xf64>
  %bk = inter.mul %b, %k : !inter.rows<g, 2xf64>
  %a = inter.add %st, %bk : !inter.rows<g, 2xf64>
  %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 2xf64>
  func.return %o, %q : !inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>
}"""


def test_groups_that_are_edges() -> None:
    """What a filter keeps, by the edges that it was: each lies with its own."""
    check(parse_module(PARENTS), 1)


ORDERED = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %m : !inter.rows<g, i1>)
    -> !inter.rows<u, i64> {
  %f = inter.filter %g, %m : !inter.set<f, src: N, dst: N, parent: g mono>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %f, %l : !inter.set<u, src: N onto, dst: N onto, parts f l>
  %h = inter.union %u, %g : !inter.set<h, src: N onto, dst: N onto, parts u g>
  %i = inter.index %h[dst] : !inter.rows<h, i64>
  %p = inter.part 0 of %h, %i : !inter.rows<u, i64>
  func.return %p : !inter.rows<u, i64>
}"""


def test_the_order_of_results_on_made_sets() -> None:
    """That of the parts of a union, local rows of each first."""
    cut = function(changed(parse_module(ORDERED), PartitionPass(chunks=2)))
    (v,) = (v for _, v, _ in results(cut))
    (joined,) = (op for op in cut.body.walk() if isinstance(op, StackOp) and op.results[0] == v)
    names = set_type(joined.set).part_names
    assert names == ("f_local", "f_remote", "f_remote2", "l_local")


def joined(path: str = "dst", before: str = "%n") -> str:
    """Attention over the edges of two relations at once, to rows of both kinds of nodes."""
    return f"""
    func.func @f(%N : !inter.set<N>, %M : !inter.set<M>, %g : !inter.set<g, src: N, dst: M>,
        %h : !inter.set<h, src: M, dst: N>, %x : !inter.rows<N, f64> {{inter.needs_grad}},
        %y : !inter.rows<M, f64> {{inter.needs_grad}}) -> !inter.rows<M, f64> {{
      %u = inter.union %N, %M : !inter.set<u, parts N M>
      %n = inter.size %N : !inter.rows<unit, i64>
      %m = inter.size %M : !inter.rows<unit, i64>
      %gd = inter.index %g[{path}] : !inter.rows<g, i64>
      %gu = inter.add %gd, {before} : !inter.rows<g, i64>
      %hu = inter.index %h[dst] : !inter.rows<h, i64>
      %g1 = inter.attach %g (at = %gu)
          : !inter.set<g1, src: N, dst: M, at: u, parent: g mono onto>
      %h1 = inter.attach %h (at = %hu)
          : !inter.set<h1, src: M, dst: N, at: u, parent: h mono onto>
      %e = inter.union %g1, %h1 : !inter.set<e, at: u, parts g1 h1>
      %xs = inter.at %g1[src], %x : !inter.rows<g1, f64>
      %ys = inter.at %h1[src], %y : !inter.rows<h1, f64>
      %v = inter.stack %e, %xs, %ys : !inter.rows<e, f64>
      %a = inter.softmax %v over %e along at : !inter.rows<e, f64>
      %w = inter.mul %a, %v : !inter.rows<e, f64>
      %s = inter.reduce sum %w over %e along at : !inter.rows<u, f64>
      %r = inter.part 1 of %u, %s : !inter.rows<M, f64>
      func.return %r : !inter.rows<M, f64>
    }}"""


def test_rows_of_a_union_of_nodes() -> None:
    for seed in range(6):
        check(parse_module(joined()), seed)


@pytest.mark.parametrize(("path", "before"), [("dst", "%m"), ("src", "%n")])
def test_numbers_that_are_no_places_in_a_union(path: str, before: str) -> None:
    with pytest.raises(PassFailedException, match="the map at of g1 is computed and leads to"):
        changed(parse_module(joined(path, before)), PartitionPass())


def lookup(op: str = "") -> str:
    """Nodes read rows of a table by an index, edges the rows that their ends read, some nodes alone
    theirs; and there are edges from the table."""
    return f"""
    func.func @f(%R : !inter.set<R>, %T : !inter.set<T, kind: R>,
        %N : !inter.set<N, word: T, next: N>,
        %g : !inter.set<g, src: N, dst: N>, %h : !inter.set<h, src: T, dst: N>,
        %x : !inter.rows<T, 3xf64> {{inter.needs_grad}}, %r : !inter.rows<R, 3xf64>
        {{inter.needs_grad}}, %y : !inter.rows<N, f64>, %l : !inter.rows<unit, f64>,
        %m : !inter.rows<N, i1>)
        -> (!inter.rows<N, 3xf64>, !inter.rows<unit, 3xf64>) {{
      {op}
      %k = inter.mul %x, %x : !inter.rows<T, 3xf64>
      %a = inter.at %N[word], %k : !inter.rows<N, 3xf64>
      %b = inter.at %g[src.word], %x : !inter.rows<g, 3xf64>
      %c = inter.reduce sum %b over %g along dst : !inter.rows<N, 3xf64>
      %d = inter.at %h[src], %x : !inter.rows<h, 3xf64>
      %e = inter.reduce max %d over %h along dst : !inter.rows<N, 3xf64>
      %i = inter.at %N[next.word.kind], %r : !inter.rows<N, 3xf64>
      %o = inter.index %N[word] : !inter.rows<N, i64>
      %p = inter.index %N[next.word] : !inter.rows<N, i64>
      %q = inter.lt %o, %p : !inter.rows<N, i1>
      %j = inter.where %q, %y, %l : !inter.rows<N, f64>
      %z = inter.reshape %j : !inter.rows<N, 1xf64>
      %n = inter.mul %z, %i : !inter.rows<N, 3xf64>
      %s = inter.mul %a, %c : !inter.rows<N, 3xf64>
      %t = inter.add %s, %e : !inter.rows<N, 3xf64>
      %u = inter.mul %t, %n : !inter.rows<N, 3xf64>
      %f = inter.filter %N, %m : !inter.set<f, word: T, next: N, parent: N mono>
      %v = inter.at %f[word], %x : !inter.rows<f, 3xf64>
      %w = inter.reduce sum %v over %f along () : !inter.rows<unit, 3xf64>
      func.return %u, %w : !inter.rows<N, 3xf64>, !inter.rows<unit, 3xf64>
    }}"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(3))
def test_tables_that_nodes_read_by_an_index(seed: int) -> None:
    check(parse_module(lookup()), seed)
    plain = parse_module(lookup())
    cut, whole = changed(plain, *IN_CHUNKS), changed(plain, AutodiffPass())
    assert_same(plain, plain, cut, seed, 3, chunks=3)
    for_one = changed(cut, *OPTIMIZED, *APART)
    assert_same(plain, whole, for_one, seed, 3, apart, chunks=3)


def check_random(seeds: range) -> int:
    """How many of the programs that are drawn have a form over parts, and the same meaning."""
    done = 0
    for seed in seeds:
        plain = Drawer(seed).module()
        try:
            changed(plain, *CUT)
        except PassFailedException as error:
            assert "may be on several ranks" in str(error)
            continue
        check(plain, seed)
        done += 1
    return done


def test_random_programs() -> None:
    assert check_random(range(8)) >= 4


@pytest.mark.long
def test_many_random_programs() -> None:
    assert check_random(range(8, 300)) >= 150


def test_messages_that_nobody_waits_for() -> None:
    text = """
    func.func @f(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>,
        %S : !inter.set<S, rank: K, peer: P>, %H : !inter.set<H, rank: K, peer: P>,
        %x : !inter.rows<S, f64>) -> !inter.rows<H, f64> {
      %y = inter.move %x from %S to %H : !inter.rows<H, f64>
      func.return %y : !inter.rows<H, f64>
    }"""
    module, ranks = parse_module(text), SetVal(2, {"peer": np.arange(2)})
    ab, ba = np.array([0, 1, 0]), np.array([1, 0, 1])
    sent = SetVal(3, {"rank": ab, "peer": ba})
    x = np.array([[1.0], [2.0], [3.0]])[:, 0]
    waiting = SetVal(3, {"rank": np.array([0, 1, 1]), "peer": np.array([1, 0, 0])})
    (y,) = run(module, "f", SetVal(2), ranks, sent, waiting, x)
    np.testing.assert_array_equal(y, [2.0, 1.0, 3.0])
    wrong = SetVal(3, {"rank": ba, "peer": ba})
    with pytest.raises(ValueError, match="the messages of S are not those that H waits for"):
        run(module, "f", SetVal(2), ranks, sent, wrong, x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f64>) -> !inter.rows<N, f64> {\n"
            "  func.return %x : !inter.rows<N, f64>\n}",
            "says what nodes are: name them by `sets`",
        ),
        (
            "func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N, via: N>) {\n"
            "  func.return\n}",
            "the maps src, dst, via of g lead to cut sets",
        ),
        (
            "func.func @f(%N : !inter.set<N>, %h : !inter.set<h, of: g>,"
            " %g : !inter.set<g, src: N, dst: N>) {\n  func.return\n}",
            "the map of of h leads to rows of g that may be of another rank",
        ),
        (
            lookup("%bad = inter.reduce sum %y over %N along word : !inter.rows<T, f64>"),
            "inter.reduce of the map word of N, which leads to rows of T that may be of another",
        ),
        (
            lookup("%bad = inter.count over %g along src.word : !inter.rows<T, f64>"),
            "inter.count of the map word of N, which leads to rows of T that may be of another",
        ),
        (
            "func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,"
            " %i : !inter.rows<g, i64>, %x : !inter.rows<N, f64>) -> !inter.rows<unit, f64> {\n"
            "  %h = inter.attach %g (next = %i)"
            " : !inter.set<h, src: N, dst: N, next: N, parent: g mono onto>\n"
            "  %y = inter.at %h[next], %x : !inter.rows<h, f64>\n"
            "  %s = inter.reduce sum %y over %h along () : !inter.rows<unit, f64>\n"
            "  func.return %s : !inter.rows<unit, f64>\n}",
            "the map next of h is computed and leads to the cut set N",
        ),
    ],
)
def test_what_is_not_cut(text: str, message: str) -> None:
    with pytest.raises(PassFailedException, match=message):
        changed(parse_module(text), PartitionPass())
