"""The interpreter against plain Python loops, op by op, and its errors."""

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal, run
from gnnc.dialects.meaning.check import parse_module

SETS = (
    "%N : !inter.set<N>, %R : !inter.set<R>, "
    "%g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>"
)
LOOPS = "!inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>"
SRC, DST, REL = [0, 0, 2, 2, 3, 1], [1, 1, 2, 1, 1, 2], [0, 0, 1, 0, 1, 1]
N, R, G = 5, 3, len(SRC)


def graph(edges=True):
    if not edges:
        empty = np.zeros(0, np.int64)
        return SetVal(N), SetVal(R), SetVal(0, {"src": empty, "dst": empty, "rel": empty})
    maps = {"src": np.array(SRC), "dst": np.array(DST), "rel": np.array(REL)}
    return SetVal(N), SetVal(R), SetVal(G, maps)


def call(signature, body, result, *args, edges=True):
    """The single result of a function on the graph above."""
    body = body.replace("LOOPS", LOOPS)
    text = (
        f"func.func @f({SETS}{', ' + signature if signature else ''}) -> {result} {{\n{body}\n"
        f"func.return %y : {result}\n}}"
    )
    return run(parse_module(text), "f", *graph(edges), *args)[0]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------ reductions

GROUPS = {  # along: (result type, the group of each edge, number of groups)
    "dst": ("N", DST, N),
    "rel": ("R", REL, R),
    "()": ("unit", [0] * G, 1),
    # pairs are numbered by (dst, rel) in lexicographic order
    "(dst, rel)": ("g[dst, rel]", [0, 0, 3, 0, 1, 3], None),
}
FOLD = {
    "sum": sum,
    "mean": lambda xs: sum(xs) / len(xs),
    "max": max,
    "min": min,
    "mul": lambda xs: np.prod(xs),
}


def pair_groups():
    pairs = sorted({(d, r) for d, r in zip(DST, REL, strict=True)})
    return [pairs.index((d, r)) for d, r in zip(DST, REL, strict=True)], len(pairs)


@pytest.mark.parametrize("along", GROUPS)
@pytest.mark.parametrize("kind", FOLD)
def test_reduce(kind, along):
    on, group, n = GROUPS[along]
    if n is None:
        group, n = pair_groups()
    x = numbers(G, 2)
    got = call(
        "%x : !inter.rows<g, 2xf64>",
        f"%y = inter.reduce {kind} %x over %g along {along} : !inter.rows<{on}, 2xf64>",
        f"!inter.rows<{on}, 2xf64>",
        x,
    )
    for i in range(n):
        for c in range(2):
            members = [x[e, c] for e in range(G) if group[e] == i]
            want = FOLD[kind](members) if members else (1.0 if kind == "mul" else 0.0)
            assert got[i, c] == pytest.approx(want)


@pytest.mark.parametrize("kind, empty", [("sum", 0), ("max", 0), ("min", 0), ("mul", 1)])
def test_reduce_of_integers_stays_integer(kind, empty):
    x = np.array([5, -7, 3, 2**60, 2, 4])
    got = call(
        "%x : !inter.rows<g, i64>",
        f"%y = inter.reduce {kind} %x over %g along dst : !inter.rows<N, i64>",
        "!inter.rows<N, i64>",
        x,
    )
    group = [5, -7, 2**60, 2]
    with np.errstate(over="ignore"):
        want = {"sum": sum(group), "max": max(group), "min": min(group), "mul": np.prod(group)}
    assert got.dtype == np.int64
    assert got[1] == want[kind] and got[0] == empty


def test_a_maximum_of_minus_infinity_is_no_empty_group():
    x = np.full(G, -np.inf)
    body = "%y = inter.reduce max %x over %g along dst : !inter.rows<N, f64>"
    got = call("%x : !inter.rows<g, f64>", body, "!inter.rows<N, f64>", x)
    assert got.tolist() == [0, -np.inf, -np.inf, 0, 0]


def test_reduce_last():
    x, z = numbers(G), numbers(N, seed=1)
    got = call(
        "%x : !inter.rows<g, f64>, %z : !inter.rows<N, f64>",
        "%y = inter.reduce last %x over %g along dst else %z : !inter.rows<N, f64>",
        "!inter.rows<N, f64>",
        x,
        z,
    )
    assert got.tolist() == [z[0], x[4], x[5], z[3], z[4]]


def test_reduce_over_stored_rows_counts_each_once():
    """`over` g[src] visits the nodes, `over` g the edges, `over` g[rel, src] the pairs."""
    x = numbers(N)
    for over, times in (("[src]", [1] * 5), ("", [2, 1, 2, 1, 0]), ("[rel, src]", [1, 1, 2, 1, 0])):
        got = call(
            "%x : !inter.rows<N, f64>",
            "%xs = inter.at %g[src], %x : !inter.rows<g[src], f64>\n"
            f"%y = inter.reduce sum %xs over %g{over} along () : !inter.rows<unit, f64>",
            "!inter.rows<unit, f64>",
            x,
        )
        assert got[0] == pytest.approx(np.dot(times, x))


@pytest.mark.parametrize("along", ["dst", "()", "(dst, rel)"])
def test_softmax(along):
    group = pair_groups()[0] if along == "(dst, rel)" else GROUPS[along][1]
    x = numbers(G) * 500  # a softmax without the maximum taken off would overflow
    got = call(
        "%x : !inter.rows<g, f64>",
        f"%y = inter.softmax %x over %g along {along} : !inter.rows<g, f64>",
        "!inter.rows<g, f64>",
        x,
    )
    for e in range(G):
        same = [k for k in range(G) if group[k] == group[e]]
        want = 1 / sum(np.exp(min(x[k] - x[e], 700)) for k in same)
        assert got[e] == pytest.approx(want, rel=1e-9, abs=1e-300)


def test_softmax_on_pairs_counts_parallel_edges():
    """Stored per (rel, src) class, but each edge takes its share of the sum."""
    z = numbers(N)
    signature = "%z : !inter.rows<N, f64>"
    body = """%zs = inter.at %g[src], %z : !inter.rows<g[src], f64>
      %y = inter.softmax %zs over %g along rel : !inter.rows<{0}, f64>"""
    fine = call(signature, body.format("g"), "!inter.rows<g, f64>", z)
    pairs = call(signature, body.format("g[rel, src]"), "!inter.rows<g[rel, src], f64>", z)
    order = sorted({(r, s) for r, s in zip(REL, SRC, strict=True)})
    for e in range(G):
        assert pairs[order.index((REL[e], SRC[e]))] == pytest.approx(fine[e])
    for r in range(2):
        assert sum(fine[e] for e in range(G) if REL[e] == r) == pytest.approx(1)


def test_count():
    body = "%y = inter.count over %g along dst : !inter.rows<N, f32>"
    assert call("", body, "!inter.rows<N, f32>").tolist() == [0, 4, 2, 0, 0]
    body = "%y = inter.count over %g[dst, rel] along dst : !inter.rows<N, i64>"
    got = call("", body, "!inter.rows<N, i64>")
    assert got.tolist() == [0, 2, 1, 0, 0] and got.dtype == np.int64


# ------------------------------------------------------------ reads and sets


def test_reads():
    x = numbers(N, 3)
    got = call(
        "%x : !inter.rows<N, 3xf64>",
        "%y = inter.at %g[src], %x : !inter.rows<g, 3xf64>",
        "!inter.rows<g, 3xf64>",
        x,
    )
    assert np.array_equal(got, x[SRC])
    got = call(
        "%x : !inter.rows<N, 3xf64>",
        "%y = inter.at %g[src], %x : !inter.rows<g[src], 3xf64>",
        "!inter.rows<g[src], 3xf64>",
        x,
    )
    assert np.array_equal(got, x)  # stored once per node


def test_pairs_are_stored_once():
    x, W = numbers(N, 3), numbers(R, 3, 2)
    got = call(
        "%x : !inter.rows<N, 3xf64>, %W : !inter.rows<R, 3x2xf64>",
        """%a = inter.at %g[src], %x : !inter.rows<g[src], 3xf64>
        %b = inter.at %g[rel], %W : !inter.rows<g[rel], 3x2xf64>
        %y = inter.contract "k,kf->f" %a, %b : !inter.rows<g[rel, src], 2xf64>""",
        "!inter.rows<g[rel, src], 2xf64>",
        x,
        W,
    )
    order = sorted({(r, s) for r, s in zip(REL, SRC, strict=True)})
    assert len(got) == len(order) == 5
    for row, (r, s) in zip(got, order, strict=True):
        assert np.allclose(row, x[s] @ W[r])


def test_gcn_normalised_graph():
    """filter, loops with the last old loop, union, stack and part."""
    w = np.arange(1.0, G + 1)
    got = call(
        "%w : !inter.rows<g, f64>",
        """%one = inter.const 10.0 : !inter.rows<unit, f64>
        %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, rel: R, parent: g mono>
        %l = inter.loops %g {remaining} : LOOPS
        %u = inter.union %a, %l : !inter.set<u, src: N onto, dst: N onto, parts a l>
        %wa = inter.at %a[parent], %w : !inter.rows<a, f64>
        %wl = inter.at %l[old], %w else %one : !inter.rows<l, f64>
        %y = inter.stack %u, %wa, %wl : !inter.rows<u, f64>""",
        "!inter.rows<u, f64>",
        w,
    )
    assert got.tolist() == [1, 2, 4, 5, 6, 10, 10, 3, 10, 10]


def test_filter_by_a_mask_keeps_the_order():
    mask = np.array([True, False, True, True, False, False])
    got = call(
        "%m : !inter.rows<g, i1>",
        """%a = inter.filter %g, %m : !inter.set<a, src: N, dst: N, rel: R, parent: g mono>
        %y = inter.index %a[parent] : !inter.rows<a, i64>""",
        "!inter.rows<a, i64>",
        mask,
    )
    assert got.tolist() == [0, 2, 3]


def test_index_iota_size_part_and_tables():
    body = """%l = inter.loops %g {remaining} : LOOPS
    %y = inter.index %l[old] : !inter.rows<l, i64>"""
    assert call("", body, "!inter.rows<l, i64>").tolist() == [-1, -1, 2, -1, -1]
    body = "%y = inter.iota %g : !inter.rows<g, i64>"
    assert call("", body, "!inter.rows<g, i64>").tolist() == list(range(G))
    body = "%y = inter.size %g : !inter.rows<unit, i64>"
    assert call("", body, "!inter.rows<unit, i64>").tolist() == [G]
    body = """%u = inter.union %N, %R : !inter.set<u, parts N R>
    %i = inter.iota %u : !inter.rows<u, i64>
    %y = inter.part 1 of %u, %i : !inter.rows<R, i64>"""
    assert call("", body, "!inter.rows<R, i64>").tolist() == [5, 6, 7]
    body = """%t = inter.table [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] : !inter.rows<unit, 3x2xf64>
    %r = inter.as_rows %R, %t : !inter.rows<R, 2xf64>
    %d = inter.add %r, %r : !inter.rows<R, 2xf64>
    %y = inter.as_unit %R, %d : !inter.rows<unit, 3x2xf64>"""
    got = call("", body, "!inter.rows<unit, 3x2xf64>")
    assert got.tolist() == [[[2, 4], [6, 8], [10, 12]]]


def test_attach_and_sized():
    got = call(
        "%b : !inter.rows<N, i64>",
        """%m = inter.reduce max %b over %N along () : !inter.rows<unit, i64>
        %one = inter.const 1 : !inter.rows<unit, i64>
        %n = inter.add %m, %one : !inter.rows<unit, i64>
        %B = inter.sized %n : !inter.set<B>
        %M = inter.attach %N (batch = %b) : !inter.set<M, batch: B, parent: N mono onto>
        %y = inter.count over %M along batch : !inter.rows<B, f32>""",
        "!inter.rows<B, f32>",
        np.array([0, 3, 3, 0, 1]),
    )
    assert got.tolist() == [2, 1, 0, 2]


# ------------------------------------------------------------ rows


SHAPES = {
    "inter.reshape %x : !inter.rows<N, 3x2xf64>": lambda x: x.reshape(N, 3, 2),
    "inter.broadcast %x : !inter.rows<N, 2x2x3xf64>": lambda x: np.stack([x, x], 1),
    "inter.transpose %x [1, 0] : !inter.rows<N, 3x2xf64>": lambda x: x.transpose(0, 2, 1),
    "inter.slice %x {dim = 1, lo = 0, hi = 3, step = 2} : !inter.rows<N, 2x2xf64>": (
        lambda x: x[:, :, ::2]
    ),
    "inter.concat %x, %x {dim = 0} : !inter.rows<N, 4x3xf64>": lambda x: np.concatenate([x, x], 1),
    "inter.row_reduce sum %x [0] : !inter.rows<N, 3xf64>": lambda x: x.sum(1),
    "inter.row_reduce max %x [0, 1] : !inter.rows<N, f64>": lambda x: x.max((1, 2)),
    "inter.row_reduce min %x [1] : !inter.rows<N, 2xf64>": lambda x: x.min(2),
    'inter.contract "hf,hf->h" %x, %x : !inter.rows<N, 2xf64>': lambda x: (x * x).sum(2),
    "inter.cast %x : !inter.rows<N, 2x3xi64>": lambda x: np.trunc(x),
    "inter.cast %x : !inter.rows<N, 2x3xi1>": lambda x: x != 0,
    "inter.stop %x : !inter.rows<N, 2x3xf64>": lambda x: x,
}


@pytest.mark.parametrize("text", SHAPES)
def test_row_ops(text):
    x = numbers(N, 2, 3) * 3
    x[0] = 0
    result = text.split(" : ")[1]
    got = call("%x : !inter.rows<N, 2x3xf64>", f"%y = {text}", result, x)
    assert np.allclose(got, SHAPES[text](x))


def test_pointwise_aligns_rows_right():
    x, b, s = numbers(N, 2, 3), numbers(1, 3), numbers(N)
    got = call(
        "%x : !inter.rows<N, 2x3xf64>, %b : !inter.rows<unit, 3xf64>, %s : !inter.rows<N, f64>",
        """%t = inter.mul %x, %b : !inter.rows<N, 2x3xf64>
        %u = inter.add %t, %s : !inter.rows<N, 2x3xf64>
        %y = inter.leaky_relu %u {slope = 0.1} : !inter.rows<N, 2x3xf64>""",
        "!inter.rows<N, 2x3xf64>",
        x,
        b,
        s,
    )
    t = x * b + s[:, None, None]
    assert np.allclose(got, np.where(t > 0, t, 0.1 * t))


def test_i32_wraps():
    x = np.array([2**31, -1, 5, 2**32 + 7, 0])
    body = "%y = inter.cast %x : !inter.rows<N, i32>"
    got = call("%x : !inter.rows<N, i64>", body, "!inter.rows<N, i32>", x)
    assert got.tolist() == [-(2**31), -1, 5, 7, 0]


# ------------------------------------------------------------ nothing there, and errors


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "mul"])
def test_no_edges(kind):
    body = f"""%a = inter.at %g[src], %x : !inter.rows<g[src], f64>
    %p = inter.softmax %a over %g along dst : !inter.rows<g, f64>
    %y = inter.reduce {kind} %p over %g along dst : !inter.rows<N, f64>"""
    got = call("%x : !inter.rows<N, f64>", body, "!inter.rows<N, f64>", numbers(N), edges=False)
    assert got.tolist() == [1.0 if kind == "mul" else 0.0] * N


def test_no_edges_through_a_partial_map():
    body = """%l = inter.loops %g {remaining} : LOOPS
    %c = inter.const 4.0 : !inter.rows<unit, f64>
    %y = inter.at %l[old], %w else %c : !inter.rows<l, f64>"""
    got = call("%w : !inter.rows<g, f64>", body, "!inter.rows<l, f64>", np.zeros(0), edges=False)
    assert got.tolist() == [4.0] * N


def test_no_edges_behind_a_partial_map_to_stored_keys():
    """The value is stored per node, though no edge leads to one."""
    body = """%l = inter.loops %g {remaining} : LOOPS
    %c = inter.const 4.0 : !inter.rows<unit, f64>
    %a = inter.at %g[src], %x : !inter.rows<g[src], f64>
    %y = inter.at %l[old], %a else %c : !inter.rows<l, f64>"""
    x = numbers(N)
    for edges, want in ((False, [4, 4, 4, 4, 4]), (True, [4, 4, x[2], 4, 4])):
        got = call("%x : !inter.rows<N, f64>", body, "!inter.rows<l, f64>", x, edges=edges)
        assert got.tolist() == want


COUNT = "%y = inter.count over %g along dst : !inter.rows<N, f32>"


def count_on(*sets):
    text = f"func.func @f({SETS}) -> !inter.rows<N, f32> {{\n{COUNT}\n"
    return run(parse_module(text + "func.return %y : !inter.rows<N, f32>\n}"), "f", *sets)


def test_map_bounds_are_checked():
    n, r, g = graph()
    g.maps["dst"] = np.array([0, 1, 2, 5, 0, 0])
    with pytest.raises(
        IndexError, match="map dst of set g: value 5 at row 3 is out of range, set N has 5 rows"
    ):
        count_on(n, r, g)
    g.maps["dst"] = np.array([0, 1, 2, -1, 0, 0])
    with pytest.raises(IndexError, match="map dst of set g: value -1 at row 3"):
        count_on(n, r, g)
    g.maps["dst"] = np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="map dst of set g has shape .4,., the set has 6 rows"):
        count_on(n, r, g)
    del g.maps["dst"]
    with pytest.raises(ValueError, match="set g was given without its map dst"):
        count_on(n, r, g)
    with pytest.raises(ValueError, match="argument N of @f is a set: give a SetVal, not int"):
        count_on(5, r, g)
    with pytest.raises(ValueError, match="@f takes 3 arguments, got 1"):
        count_on(n)


def test_attached_bounds_are_checked():
    body = """%a = inter.attach %g (k = %i) :
      !inter.set<a, src: N, dst: N, rel: R, k: R, parent: g mono onto>
    %y = inter.index %a[k] : !inter.rows<a, i64>"""
    with pytest.raises(IndexError, match="map k of set a: value 3 at row 1 is out of range, set R"):
        call("%i : !inter.rows<g, i64>", body, "!inter.rows<a, i64>", np.array([0, 3, 0, 0, 0, 0]))


@pytest.mark.parametrize(
    "flags, equation, message",
    [
        ("mono", "", "map k of set a is declared mono, but two rows have the same image"),
        ("onto", "", "map k of set a is declared onto, but misses rows of R"),
        ("", ", eq rel = k", "set a: rel and k differ at row 2"),
    ],
)
def test_claims_of_attach_are_checked(flags, equation, message):
    body = f"""%a = inter.attach %g (k = %i) :
      !inter.set<a, src: N, dst: N, rel: R, k: R {flags}, parent: g mono onto{equation}>
    %y = inter.index %a[k] : !inter.rows<a, i64>"""
    with pytest.raises(ValueError, match=message):
        call("%i : !inter.rows<g, i64>", body, "!inter.rows<a, i64>", np.zeros(G, np.int64))


def test_sizes_must_agree():
    body = "%y = inter.neg %x : !inter.rows<N, f64>"
    signature = "%x : !inter.rows<N, f64>"
    with pytest.raises(ValueError, match="argument x on N has 4 rows, N stores 5"):
        call(signature, body, "!inter.rows<N, f64>", np.zeros(4))
    with pytest.raises(ValueError, match="argument x of @f has shape .5, 1.: a leading row axis"):
        call(signature, body, "!inter.rows<N, f64>", np.zeros((5, 1)))
    body = "%y = inter.as_rows %R, %x : !inter.rows<R, f64>"
    with pytest.raises(ValueError, match="4 rows of numbers for set R, which has 3 rows"):
        call("%x : !inter.rows<unit, 4xf64>", body, "!inter.rows<R, f64>", np.zeros((1, 4)))
