"""Programs over parts whose groups or loops are a case of their own, with gradients: relations of
edges to a node, the loops that are chosen of edges, those of nodes up to the last one that has an
edge, and groups of which as many are made as edges say."""

from __future__ import annotations

import pytest

from gnnc.dialects.meaning.check import parse_module

from .test_partition import check

RELATIONS = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %m : !inter.rows<g, i1>,
    %t : !inter.rows<g, i64>, %x : !inter.rows<N, 2xf64> {inter.needs_grad},
    %w : !inter.rows<unit, 2x4x2xf64> {inter.needs_grad}) -> !inter.rows<N, 4xf64> {
  %R = inter.range 2 : !inter.set<R>
  %one = inter.const 1 : !inter.rows<unit, i64>
  %f = inter.filter %g, %m : !inter.set<f, src: N, dst: N, parent: g mono>
  %tf = inter.at %f[parent], %t : !inter.rows<f, i64>
  %b = inter.gt %tf, %one : !inter.rows<f, i1>
  %k = inter.cast %b : !inter.rows<f, i64>
  %h = inter.attach %f (rel = %k)
    : !inter.set<h, src: N, dst: N, rel: R, parent: f mono onto, pairs (rel, src) (dst, rel)>
  %xs = inter.at %h[src], %x : !inter.rows<h, 2xf64>
  %mean = inter.reduce mean %xs over %h along (dst, rel) : !inter.rows<h[dst, rel], 2xf64>
  %wr = inter.as_rows %R, %w : !inter.rows<R, 4x2xf64>
  %wh = inter.at %h[rel], %wr : !inter.rows<h[rel], 4x2xf64>
  %two = inter.add %wh, %wh : !inter.rows<h[rel], 4x2xf64>
  %y = inter.contract "y,zy->z" %mean, %two : !inter.rows<h[dst, rel], 4xf64>
  %s = inter.reduce sum %y over %h[dst, rel] along dst : !inter.rows<N, 4xf64>
  func.return %s : !inter.rows<N, 4xf64>
}"""


LOOPS = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %x : !inter.rows<N, 2xf64> {inter.needs_grad}, %e : !inter.rows<N, f64> {inter.needs_grad},
    %c : !inter.rows<g, 2xf64> {inter.needs_grad})
    -> (!inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>) {
  %f = inter.filter %g {no_loops} : !inter.set<f, src: N, dst: N, parent: g mono>
  %l = inter.loops %f : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %f, %l : !inter.set<u, src: N onto, dst: N onto, parts f l>
  %i = inter.index %u[src] : !inter.rows<u, i64>
  %j = inter.index %u[dst] : !inter.rows<u, i64>
  %m = inter.eq %i, %j : !inter.rows<u, i1>
  %k = inter.filter %u, %m : !inter.set<k, src: N, dst: N, parent: u mono>
  %n = inter.iota %k : !inter.rows<k, i64>
  %h = inter.attach %k (m0 = %n)
    : !inter.set<h, src: N, dst: N, m0: N mono onto, parent: k mono onto>
  %en = inter.at %h[m0], %e : !inter.rows<h, f64>
  %ek = inter.reduce sum %en over %h along parent : !inter.rows<k, f64>
  %eu = inter.reduce sum %ek over %k along parent : !inter.rows<u, f64>
  %xs = inter.at %u[src], %x : !inter.rows<u, 2xf64>
  %y = inter.mul %xs, %eu : !inter.rows<u, 2xf64>
  %z = inter.add %y, %xs : !inter.rows<u, 2xf64>
  %o = inter.reduce sum %z over %u along dst : !inter.rows<N, 2xf64>
  %gi = inter.index %g[src] : !inter.rows<g, i64>
  %gj = inter.index %g[dst] : !inter.rows<g, i64>
  %gm = inter.eq %gi, %gj : !inter.rows<g, i1>
  %q = inter.filter %g, %gm : !inter.set<q, src: N, dst: N, parent: g mono>
  %qc = inter.at %q[parent], %c : !inter.rows<q, 2xf64>
  %p = inter.reduce mul %qc over %q along parent : !inter.rows<g, 2xf64>
  %pc = inter.mul %p, %c : !inter.rows<g, 2xf64>
  %r = inter.reduce sum %pc over %g along dst : !inter.rows<N, 2xf64>
  func.return %o, %r : !inter.rows<N, 2xf64>, !inter.rows<N, 2xf64>
}"""


FIRST_ROWS = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %x : !inter.rows<N, 2xf64> {inter.needs_grad}, %c : !inter.rows<g, f64> {inter.needs_grad})
    -> (!inter.rows<N, 2xf64>, !inter.rows<unit, f64>) {
  %f = inter.filter %g {no_loops} : !inter.set<f, src: N, dst: N, parent: g mono>
  %one = inter.const 1 : !inter.rows<unit, i64>
  %i = inter.index %g[src] : !inter.rows<g, i64>
  %top = inter.reduce max %i over %g along () : !inter.rows<unit, i64>
  %n = inter.add %one, %top : !inter.rows<unit, i64>
  %S = inter.sized %n : !inter.set<S>
  %k = inter.iota %S : !inter.rows<S, i64>
  %l = inter.attach %S (dst = %k) : !inter.set<l, dst: N, parent: S mono onto>
  %u = inter.union %f, %l : !inter.set<u, dst: N, parts f l>
  %fi = inter.index %f[src] : !inter.rows<f, i64>
  %li = inter.index %l[parent] : !inter.rows<l, i64>
  %ui = inter.stack %u, %fi, %li : !inter.rows<u, i64>
  %h = inter.attach %u (src = %ui) : !inter.set<h, dst: N, src: N, parent: u mono onto>
  %fc = inter.at %f[parent], %c : !inter.rows<f, f64>
  %kf = inter.cast %k : !inter.rows<S, f64>
  %lk = inter.at %l[parent], %kf : !inter.rows<l, f64>
  %uc = inter.stack %u, %fc, %lk : !inter.rows<u, f64>
  %hc = inter.at %h[parent], %uc : !inter.rows<h, f64>
  %hx = inter.at %h[src], %x : !inter.rows<h, 2xf64>
  %r = inter.reshape %hc : !inter.rows<h, 1xf64>
  %y = inter.mul %hx, %r : !inter.rows<h, 2xf64>
  %o = inter.reduce max %y over %h along dst : !inter.rows<N, 2xf64>
  %size = inter.size %S : !inter.rows<unit, i64>
  %count = inter.cast %size : !inter.rows<unit, f64>
  %sum = inter.reduce sum %kf over %S along () : !inter.rows<unit, f64>
  %t = inter.add %sum, %count : !inter.rows<unit, f64>
  func.return %o, %t : !inter.rows<N, 2xf64>, !inter.rows<unit, f64>
}"""


COUNTED_GROUPS = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, dst: N>, %i : !inter.rows<g, i64>,
    %x : !inter.rows<N, 2xf64> {inter.needs_grad},
    %w : !inter.rows<unit, 2x2xf64> {inter.needs_grad})
    -> !inter.rows<N, 2xf64> {
  %one = inter.const 1 : !inter.rows<unit, i64>
  %j = inter.mul %i, %i : !inter.rows<g, i64>
  %top = inter.reduce max %j over %g along () : !inter.rows<unit, i64>
  %n = inter.add %one, %top : !inter.rows<unit, i64>
  %S = inter.sized %n : !inter.set<S>
  %h = inter.attach %g (src = %j) : !inter.set<h, dst: N, src: S, parent: g mono onto>
  %hx = inter.at %h[dst], %x : !inter.rows<h, 2xf64>
  %s = inter.reduce mean %hx over %h along src : !inter.rows<S, 2xf64>
  %y = inter.contract "y,zy->z" %s, %w : !inter.rows<S, 2xf64>
  %hy = inter.at %h[src], %y : !inter.rows<h, 2xf64>
  %o = inter.reduce max %hy over %h along dst : !inter.rows<N, 2xf64>
  func.return %o : !inter.rows<N, 2xf64>
}"""


@pytest.mark.parametrize(
    "text",
    [RELATIONS, LOOPS, FIRST_ROWS, COUNTED_GROUPS],
    ids=["relations", "loops", "first-rows", "counted-groups"],
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_they_are_those_of_the_whole_graph(text: str, seed: int) -> None:
    check(parse_module(text), seed)
