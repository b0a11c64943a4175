// RUN: gnn-opt %s -p raise,dce-sets,verify-sets --split-input-file | filecheck %s

// Attention within each relation, written relation by relation: where the types are a map of the
// edges already, it is a softmax along that, too (RGAT).
// CHECK-LABEL: func.func @softmax
// CHECK-NOT: inter.filter
// CHECK: %[[S:.*]] = inter.softmax %x over %g along (dst, rel) : !inter.rows<g, 4xf32>
// CHECK-NEXT: %y = inter.mul %[[S]], %w
func.func @softmax(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, dst: N, rel: R, pairs (dst, rel)>, %x : !inter.rows<g, 4xf32>, %W : !inter.rows<unit, 2x4xf32>) -> !inter.rows<g, 4xf32> {
  %table = inter.as_rows %R, %W : !inter.rows<R, 4xf32>
  %w = inter.at %g[rel], %table : !inter.rows<g[rel], 4xf32>
  %t = inter.index %g[rel] : !inter.rows<g[rel], i64>
  %c0 = inter.const 0 : !inter.rows<unit, i64>
  %c1 = inter.const 1 : !inter.rows<unit, i64>
  %k0 = inter.eq %t, %c0 : !inter.rows<g[rel], i1>
  %k1 = inter.eq %t, %c1 : !inter.rows<g[rel], i1>
  %g0 = inter.filter %g, %k0 : !inter.set<g0, dst: N, rel: R, parent: g mono, pairs (dst, rel)>
  %g1 = inter.filter %g, %k1 : !inter.set<g1, dst: N, rel: R, parent: g mono, pairs (dst, rel)>
  %x0 = inter.at %g0[parent], %x : !inter.rows<g0, 4xf32>
  %x1 = inter.at %g1[parent], %x : !inter.rows<g1, 4xf32>
  %s0 = inter.softmax %x0 over %g0 along dst : !inter.rows<g0, 4xf32>
  %s1 = inter.softmax %x1 over %g1 along dst : !inter.rows<g1, 4xf32>
  %p0 = inter.reduce sum %s0 over %g0 along parent : !inter.rows<g, 4xf32>
  %p1 = inter.reduce sum %s1 over %g1 along parent : !inter.rows<g, 4xf32>
  %zero = inter.const 0.0 : !inter.rows<unit, 4xf32>
  %m0 = inter.reshape %k0 : !inter.rows<g[rel], 1xi1>
  %m1 = inter.reshape %k1 : !inter.rows<g[rel], 1xi1>
  %o0 = inter.where %m0, %p0, %zero : !inter.rows<g, 4xf32>
  %o1 = inter.where %m1, %p1, %o0 : !inter.rows<g, 4xf32>
  %y = inter.mul %o1, %w : !inter.rows<g, 4xf32>
  func.return %y : !inter.rows<g, 4xf32>
}

// -----

// A layer for each type of node, in any order. Nodes of another type keep what they had.
// CHECK-LABEL: func.func @layers
// CHECK: %N_known = inter.filter %N, %[[KNOWN:.*]] :
// CHECK: %N_typed = inter.attach %N_known (rel = %{{.*}})
// CHECK: %[[X:.*]] = inter.at %N_typed[parent.parent], %x
// CHECK: %[[W:.*]] = inter.at %N_typed[rel]
// CHECK: %[[H:.*]] = inter.contract "k,kf->f" %[[X]], %[[W]] : !inter.rows<N_typed, 3xf32>
// CHECK: %[[A:.*]] = inter.reduce sum %[[H]] over %N_typed along parent.parent : !inter.rows<N, 3xf32>
// CHECK: %[[M:.*]] = inter.reshape %[[KNOWN]] : !inter.rows<N, 1xi1>
// CHECK: inter.where %[[M]], %[[A]], %old
// CHECK-NOT: inter.filter
func.func @layers(%N : !inter.set<N>, %t : !inter.rows<N, i64>, %x : !inter.rows<N, 4xf32>, %old : !inter.rows<N, 3xf32>, %W0 : !inter.rows<unit, 4x3xf32>, %W1 : !inter.rows<unit, 4x3xf32>) -> !inter.rows<N, 3xf32> {
  %c0 = inter.const 0 : !inter.rows<unit, i64>
  %c1 = inter.const 1 : !inter.rows<unit, i64>
  %k0 = inter.eq %t, %c0 : !inter.rows<N, i1>
  %k1 = inter.eq %t, %c1 : !inter.rows<N, i1>
  %n0 = inter.filter %N, %k0 : !inter.set<n0, parent: N mono>
  %n1 = inter.filter %N, %k1 : !inter.set<n1, parent: N mono>
  %x0 = inter.at %n0[parent], %x : !inter.rows<n0, 4xf32>
  %x1 = inter.at %n1[parent], %x : !inter.rows<n1, 4xf32>
  %h0 = inter.contract "k,kf->f" %x0, %W0 : !inter.rows<n0, 3xf32>
  %h1 = inter.contract "k,kf->f" %x1, %W1 : !inter.rows<n1, 3xf32>
  %p0 = inter.reduce sum %h0 over %n0 along parent : !inter.rows<N, 3xf32>
  %p1 = inter.reduce sum %h1 over %n1 along parent : !inter.rows<N, 3xf32>
  %m0 = inter.reshape %k0 : !inter.rows<N, 1xi1>
  %m1 = inter.reshape %k1 : !inter.rows<N, 1xi1>
  %o1 = inter.where %m1, %p1, %old : !inter.rows<N, 3xf32>
  %o0 = inter.where %m0, %p0, %o1 : !inter.rows<N, 3xf32>
  func.return %o0 : !inter.rows<N, 3xf32>
}

// -----

// Kept: what each type gets is another function; and one type written to twice.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: inter.attach
// CHECK: func.return
func.func @kept(%N : !inter.set<N>, %t : !inter.rows<N, i64>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %c0 = inter.const 0 : !inter.rows<unit, i64>
  %c1 = inter.const 1 : !inter.rows<unit, i64>
  %k0 = inter.eq %t, %c0 : !inter.rows<N, i1>
  %k1 = inter.eq %t, %c1 : !inter.rows<N, i1>
  %n0 = inter.filter %N, %k0 : !inter.set<n0, parent: N mono>
  %n1 = inter.filter %N, %k1 : !inter.set<n1, parent: N mono>
  %x0 = inter.at %n0[parent], %x : !inter.rows<n0, 4xf32>
  %x1 = inter.at %n1[parent], %x : !inter.rows<n1, 4xf32>
  %h0 = inter.tanh %x0 : !inter.rows<n0, 4xf32>
  %h1 = inter.relu %x1 : !inter.rows<n1, 4xf32>
  %p0 = inter.reduce sum %h0 over %n0 along parent : !inter.rows<N, 4xf32>
  %p1 = inter.reduce sum %h1 over %n1 along parent : !inter.rows<N, 4xf32>
  %m0 = inter.reshape %k0 : !inter.rows<N, 1xi1>
  %m1 = inter.reshape %k1 : !inter.rows<N, 1xi1>
  %o0 = inter.where %m0, %p0, %x : !inter.rows<N, 4xf32>
  %o1 = inter.where %m1, %p1, %o0 : !inter.rows<N, 4xf32>
  %h2 = inter.relu %x0 : !inter.rows<n0, 4xf32>
  %p2 = inter.reduce sum %h2 over %n0 along parent : !inter.rows<N, 4xf32>
  %q0 = inter.where %m1, %p1, %x : !inter.rows<N, 4xf32>
  %q1 = inter.where %m0, %p2, %q0 : !inter.rows<N, 4xf32>
  %q2 = inter.where %m1, %p1, %q1 : !inter.rows<N, 4xf32>
  func.return %o1, %q2 : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}
