// RUN: gnn-opt %s -p raise,dce-sets,verify-sets --split-input-file | filecheck %s

// A loop over relations with a slice of one weight each, the product before the edges. Edges that
// the loop skips, of another type, are filtered out.
// CHECK-LABEL: func.func @sums
// CHECK: %R = inter.range 2 : !inter.set<R>
// CHECK: %[[LOW:.*]] = inter.ge %t, %{{.*}} : !inter.rows<g, i1>
// CHECK-NEXT: %[[HIGH:.*]] = inter.lt %t, %{{.*}} : !inter.rows<g, i1>
// CHECK-NEXT: %[[KNOWN:.*]] = inter.logical_and %[[LOW]], %[[HIGH]] : !inter.rows<g, i1>
// CHECK-NEXT: %g_known = inter.filter %g, %[[KNOWN]] : !inter.set<g_known, src: N, dst: N, parent: g mono>
// CHECK-NEXT: %[[T:.*]] = inter.at %g_known[parent], %t : !inter.rows<g_known, i64>
// CHECK-NEXT: %[[G:.*]] = inter.attach %g_known (rel = %[[T]]) : !inter.set<g_typed, src: N, dst: N, rel: R, parent: g_known mono onto, pairs (rel, src) (dst, rel)>
// CHECK-NEXT: %[[X:.*]] = inter.at %g_typed[src], %x
// CHECK-NEXT: %[[W:.*]] = inter.as_rows %R, %W : !inter.rows<R, 4x3xf32>
// CHECK-NEXT: %[[WR:.*]] = inter.at %g_typed[rel], %[[W]]
// CHECK-NEXT: %[[M:.*]] = inter.contract "k,kf->f" %[[X]], %[[WR]]
// CHECK-NEXT: %[[A:.*]] = inter.reduce sum %[[M]] over %g_typed along dst : !inter.rows<N, 3xf32>
// CHECK-NEXT: %o1 = inter.add %root, %[[A]]
func.func @sums(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %t : !inter.rows<g, i64>, %x : !inter.rows<N, 4xf32>, %root : !inter.rows<N, 3xf32>, %W : !inter.rows<unit, 2x4x3xf32>) -> !inter.rows<N, 3xf32> {
  %c0 = inter.const 0 : !inter.rows<unit, i64>
  %c1 = inter.const 1 : !inter.rows<unit, i64>
  %k0 = inter.eq %t, %c0 : !inter.rows<g, i1>
  %k1 = inter.eq %t, %c1 : !inter.rows<g, i1>
  %g0 = inter.filter %g, %k0 : !inter.set<g0, src: N, dst: N, parent: g mono>
  %g1 = inter.filter %g, %k1 : !inter.set<g1, src: N, dst: N, parent: g mono>
  %s0 = inter.slice %W {dim = 0, lo = 0, hi = 1} : !inter.rows<unit, 1x4x3xf32>
  %s1 = inter.slice %W {dim = 0, lo = 1, hi = 2} : !inter.rows<unit, 1x4x3xf32>
  %W0 = inter.reshape %s0 : !inter.rows<unit, 4x3xf32>
  %W1 = inter.reshape %s1 : !inter.rows<unit, 4x3xf32>
  %h0 = inter.contract "k,kf->f" %x, %W0 : !inter.rows<N, 3xf32>
  %h1 = inter.contract "k,kf->f" %x, %W1 : !inter.rows<N, 3xf32>
  %m0 = inter.at %g0[src], %h0 : !inter.rows<g0, 3xf32>
  %m1 = inter.at %g1[src], %h1 : !inter.rows<g1, 3xf32>
  %a0 = inter.reduce sum %m0 over %g0 along dst : !inter.rows<N, 3xf32>
  %a1 = inter.reduce sum %m1 over %g1 along dst : !inter.rows<N, 3xf32>
  %o0 = inter.add %root, %a0 : !inter.rows<N, 3xf32>
  %o1 = inter.add %o0, %a1 : !inter.rows<N, 3xf32>
  func.return %o1 : !inter.rows<N, 3xf32>
}

// -----

// RGCN as written: a mean per relation, then its own weight; edge features, a scale per node.
// CHECK-LABEL: func.func @means
// CHECK: inter.attach %g_known (rel = %{{.*}})
// CHECK: %[[E:.*]] = inter.at %g_typed[parent.parent], %e
// CHECK: %[[A:.*]] = inter.reduce mean %{{.*}} over %g_typed along (dst, rel) : !inter.rows<g_typed[dst, rel], 4xf32>
// CHECK: inter.concat %{{.*}}, %{{.*}} {dim = 0} : !inter.rows<unit, 2x4x3xf32>
// CHECK: inter.contract "k,kf->f" %[[A]], %{{.*}} : !inter.rows<g_typed[dst, rel], 3xf32>
// CHECK: inter.at %g_typed[dst], %y : !inter.rows<g_typed[dst], 1xf32>
// CHECK: inter.reduce sum %{{.*}} over %g_typed[dst, rel] along dst : !inter.rows<N, 3xf32>
func.func @means(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %t : !inter.rows<g, i64>, %x : !inter.rows<N, 4xf32>, %e : !inter.rows<g, 4xf32>, %y : !inter.rows<N, 1xf32>, %W0 : !inter.rows<unit, 4x3xf32>, %W1 : !inter.rows<unit, 4x3xf32>) -> !inter.rows<N, 3xf32> {
  %c0 = inter.const 0 : !inter.rows<unit, i64>
  %c1 = inter.const 1 : !inter.rows<unit, i64>
  %k0 = inter.eq %t, %c0 : !inter.rows<g, i1>
  %k1 = inter.eq %c1, %t : !inter.rows<g, i1>
  %g0 = inter.filter %g, %k0 : !inter.set<g0, src: N, dst: N, parent: g mono>
  %g1 = inter.filter %g, %k1 : !inter.set<g1, src: N, dst: N, parent: g mono>
  %x0 = inter.at %g0[src], %x : !inter.rows<g0, 4xf32>
  %x1 = inter.at %g1[src], %x : !inter.rows<g1, 4xf32>
  %e0 = inter.at %g0[parent], %e : !inter.rows<g0, 4xf32>
  %e1 = inter.at %g1[parent], %e : !inter.rows<g1, 4xf32>
  %m0 = inter.add %x0, %e0 : !inter.rows<g0, 4xf32>
  %m1 = inter.add %x1, %e1 : !inter.rows<g1, 4xf32>
  %r0 = inter.relu %m0 : !inter.rows<g0, 4xf32>
  %r1 = inter.relu %m1 : !inter.rows<g1, 4xf32>
  %a0 = inter.reduce mean %r0 over %g0 along dst : !inter.rows<N, 4xf32>
  %a1 = inter.reduce mean %r1 over %g1 along dst : !inter.rows<N, 4xf32>
  %h0 = inter.contract "k,kf->f" %a0, %W0 : !inter.rows<N, 3xf32>
  %h1 = inter.contract "k,kf->f" %a1, %W1 : !inter.rows<N, 3xf32>
  %z0 = inter.mul %h0, %y : !inter.rows<N, 3xf32>
  %z1 = inter.mul %h1, %y : !inter.rows<N, 3xf32>
  %o = inter.add %z1, %z0 : !inter.rows<N, 3xf32>
  func.return %o : !inter.rows<N, 3xf32>
}

// -----

// Kept: relations that are not 0, 1, ..; a nonlinearity after the sum that is not 0 at 0.
// CHECK-LABEL: func.func @kept
// CHECK: inter.filter %g, %k0
// CHECK: inter.filter %g, %k2
// CHECK-NOT: inter.attach
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %t : !inter.rows<g, i64>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %c0 = inter.const 0 : !inter.rows<unit, i64>
  %c1 = inter.const 1 : !inter.rows<unit, i64>
  %c2 = inter.const 2 : !inter.rows<unit, i64>
  %k0 = inter.eq %t, %c0 : !inter.rows<g, i1>
  %k1 = inter.eq %t, %c1 : !inter.rows<g, i1>
  %k2 = inter.eq %t, %c2 : !inter.rows<g, i1>
  %g0 = inter.filter %g, %k0 : !inter.set<g0, src: N, dst: N, parent: g mono>
  %g1 = inter.filter %g, %k1 : !inter.set<g1, src: N, dst: N, parent: g mono>
  %g2 = inter.filter %g, %k2 : !inter.set<g2, src: N, dst: N, parent: g mono>
  %x0 = inter.at %g0[src], %x : !inter.rows<g0, 4xf32>
  %x1 = inter.at %g1[src], %x : !inter.rows<g1, 4xf32>
  %x2 = inter.at %g2[src], %x : !inter.rows<g2, 4xf32>
  %a0 = inter.reduce sum %x0 over %g0 along dst : !inter.rows<N, 4xf32>
  %a1 = inter.reduce sum %x1 over %g1 along dst : !inter.rows<N, 4xf32>
  %a2 = inter.reduce sum %x2 over %g2 along dst : !inter.rows<N, 4xf32>
  %o = inter.add %a0, %a2 : !inter.rows<N, 4xf32>
  %s0 = inter.sigmoid %a0 : !inter.rows<N, 4xf32>
  %s1 = inter.sigmoid %a1 : !inter.rows<N, 4xf32>
  %p = inter.add %s0, %s1 : !inter.rows<N, 4xf32>
  func.return %o, %p : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}
