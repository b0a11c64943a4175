"""The parts of a cut graph draw the masks, numbers and means of the whole, forward and backward,
interpreted and as C."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.dialects.meaning import SetVal

from .compiled import TRAIN, Case

PROGRAM = """
func.func @main(%M : !inter.set<M>, %N : !inter.set<N>, %g : !inter.set<g, src: M, dst: N>,
    %M_rows : !inter.rows<M, i64> {inter.global_rows},
    %N_rows : !inter.rows<N, i64> {inter.global_rows},
    %g_rows : !inter.rows<g, i64> {inter.global_rows},
    %nodes : !inter.rows<unit, i64> {inter.global_count = ["N"]},
    %degree : !inter.rows<M, i64> {inter.global_count = ["g", "src"]},
    %x : !inter.rows<M, 3xf64> {inter.needs_grad}, %key : !inter.rows<unit, i64>)
    -> (!inter.rows<g, 3xf64> {inter.name = "messages"}, !inter.rows<M, f64> {inter.name = "deg"},
      !inter.rows<N, 3xf64> {inter.name = "y"}, !inter.rows<M, 3xf64> {inter.name = "back"},
      !inter.rows<unit, 3xf64> {inter.name = "total"}) {
  %h = inter.dropout %x, %key over %M {p = 0.3, site = 0} : !inter.rows<M, 3xf64>
  %hs = inter.at %g[src], %h : !inter.rows<g, 3xf64>
  %src = inter.index %g[src] : !inter.rows<g, i64>
  %dst = inter.index %g[dst] : !inter.rows<g, i64>
  %product = inter.mul %src, %dst : !inter.rows<g, i64>
  %five = inter.const 5 : !inter.rows<unit, i64>
  %rest = inter.mod %product, %five : !inter.rows<g, i64>
  %weight = inter.cast %rest : !inter.rows<g, f64>
  %w = inter.reshape %weight : !inter.rows<g, 1xf64>
  %e = inter.mul %w, %hs : !inter.rows<g, 3xf64>
  %messages = inter.dropout %e, %key over %g {p = 0.3, site = 1} : !inter.rows<g, 3xf64>
  %mean = inter.reduce mean %messages over %g along dst : !inter.rows<N, 3xf64>
  %iota = inter.iota %N : !inter.rows<N, i64>
  %size = inter.size %N : !inter.rows<unit, i64>
  %number = inter.cast %iota : !inter.rows<N, f64>
  %all = inter.cast %size : !inter.rows<unit, f64>
  %place = inter.div %number, %all : !inter.rows<N, f64>
  %p = inter.reshape %place : !inter.rows<N, 1xf64>
  %z = inter.add %mean, %p : !inter.rows<N, 3xf64>
  %y = inter.dropout %z, %key over %N {p = 0.3, site = 2} : !inter.rows<N, 3xf64>
  %deg = inter.count over %g along src : !inter.rows<M, f64>
  %back = inter.reduce mean %messages over %g along src : !inter.rows<M, 3xf64>
  %total = inter.reduce mean %y over %N along () : !inter.rows<unit, 3xf64>
  func.return %messages, %deg, %y, %back, %total : !inter.rows<g, 3xf64>, !inter.rows<M, f64>,
    !inter.rows<N, 3xf64>, !inter.rows<M, 3xf64>, !inter.rows<unit, 3xf64>
}
"""
WHOLE = Case.of(PROGRAM, TRAIN)
"""Asks nobody: the rows that it has are all."""
PART = Case.of(PROGRAM, f"global-rows,{TRAIN}")

SET_OF = {"messages": "g", "deg": "M", "y": "N", "back": "M", "x": "M"}
SUMS = ("back", "total", "d_x")
"""What is a sum over all rows: the parts have a share each."""

Values = dict[str, Any]
Rows = dict[str, np.ndarray]


def whole(rng: np.random.Generator, sizes: dict[str, int]) -> Values:
    """Arguments and cotangents on a random graph."""
    m, n, g = sizes.values()
    src, dst = rng.integers(0, m, g), rng.integers(0, n, g)
    values: Values = {"M": SetVal(m), "N": SetVal(n), "g": SetVal(g, {"src": src, "dst": dst})}
    values |= {f"{s}_rows": np.arange(k) for s, k in sizes.items()}
    values |= {"nodes": np.array([n]), "degree": np.bincount(src, minlength=m)}
    values |= {"x": rng.standard_normal((m, 3)), "key": rng.integers(-(2**62), 2**62, 1)}
    values |= {
        f"d_{k}": rng.standard_normal((sizes[SET_OF[k]], 3)) for k in ("messages", "y", "back")
    }
    return values | {"d_deg": rng.standard_normal(m), "d_total": rng.standard_normal((1, 3))}


def part(rng: np.random.Generator, values: Values, nodes: np.ndarray) -> tuple[Values, Rows]:
    """The same for some nodes of N, with the edges to them and the nodes of M at the other end and
    some more, each in a random order; and the rows that these are."""
    src, dst = values["g"].maps["src"], values["g"].maps["dst"]
    edges = rng.permutation(np.flatnonzero(np.isin(dst, nodes)))
    more = np.flatnonzero(rng.random(values["M"].n) < 0.3)
    rows = {"M": rng.permutation(np.union1d(src[edges], more)), "N": nodes, "g": edges}
    local = {s: np.zeros(values[s].n, np.int64) for s in rows}
    for s, r in rows.items():
        local[s][r] = np.arange(len(r))
    maps = {"src": local["M"][src[edges]], "dst": local["N"][dst[edges]]}
    out = {**values, "M": SetVal(len(rows["M"])), "N": SetVal(len(nodes))}
    out |= {"g": SetVal(len(edges), maps), "degree": values["degree"][rows["M"]]}
    out |= {f"{s}_rows": r for s, r in rows.items()}
    on = {"x": "M", **{f"d_{k}": s for k, s in SET_OF.items() if k != "x"}}
    return out | {k: values[k][rows[s]] for k, s in on.items()}, rows


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    m=st.sampled_from([1, 5, 40]),
    n=st.sampled_from([1, 4, 30]),
    g=st.sampled_from([0, 1, 12, 200]),
    parts=st.integers(1, 3),
)
def test_parts_are_as_the_whole(seed: int, m: int, n: int, g: int, parts: int):
    rng = np.random.default_rng(seed)
    values = whole(rng, {"M": m, "N": n, "g": g})
    want = WHOLE.check(values)
    sums = {k: np.zeros_like(want[k]) for k in SUMS}
    home = rng.integers(0, parts, n)
    for i in range(parts):
        given_part, rows = part(rng, values, rng.permutation(np.flatnonzero(home == i)))
        got = PART.check(given_part)
        for k in ("messages", "deg", "y"):
            np.testing.assert_allclose(got[k], want[k][rows[SET_OF[k]]], 1e-12, 1e-12, err_msg=k)
        for k in SUMS:
            sums[k][rows["M"] if k != "total" else [0]] += got[k]
    for k in SUMS:
        np.testing.assert_allclose(sums[k], want[k], 1e-9, 1e-9, err_msg=k)


def test_another_order_draws_another_mask_unless_it_is_told():
    rng = np.random.default_rng(0)
    values = whole(rng, {"M": 40, "N": 30, "g": 200})
    want = WHOLE.run(values)["messages"]
    told, rows = part(rng, values, rng.permutation(30))
    assert np.array_equal(PART.run(told)["messages"] == 0, want[rows["g"]] == 0)
    assert not np.array_equal(WHOLE.run(told)["messages"] == 0, want[rows["g"]] == 0)
