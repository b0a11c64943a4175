// RUN: gnn-opt %s -p autodiff,cse,dce,verify-sets --split-input-file | filecheck %s

// Stored per edge: p * (d - sum(p * d)) per destination.
// CHECK-LABEL: func.func @per_edge
func.func @per_edge(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %a : !inter.rows<g, f32> {inter.needs_grad}) -> !inter.rows<g, f32> {
  %p = inter.softmax %a over %g along dst : !inter.rows<g, f32>
  // CHECK: %0 = inter.mul %p, %d_p : !inter.rows<g, f32>
  // CHECK-NEXT: %1 = inter.reduce sum %0 over %g along dst : !inter.rows<N, f32>
  // CHECK-NEXT: %2 = inter.at %g[dst], %1 : !inter.rows<g[dst], f32>
  // CHECK-NEXT: %3 = inter.sub %d_p, %2 : !inter.rows<g, f32>
  // CHECK-NEXT: %4 = inter.mul %p, %3 : !inter.rows<g, f32>
  // CHECK-NEXT: func.return %p, %4
  func.return %p : !inter.rows<g, f32>
}

// -----

// Stored per pair: the cotangent is the total of a pair's edges, the inner sum runs over pairs, and
// each edge subtracts its own share.
// CHECK-LABEL: func.func @per_pair
func.func @per_pair(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>,
    %a : !inter.rows<g[rel, src], f32> {inter.needs_grad}) -> !inter.rows<g[rel, src], f32> {
  %p = inter.softmax %a over %g along rel : !inter.rows<g[rel, src], f32>
  // CHECK: %0 = inter.mul %p, %d_p : !inter.rows<g[rel, src], f32>
  // CHECK-NEXT: %1 = inter.reduce sum %0 over %g[rel, src] along rel : !inter.rows<R, f32>
  // CHECK-NEXT: %2 = inter.at %g[rel], %1 : !inter.rows<g[rel], f32>
  // CHECK-NEXT: %3 = inter.mul %p, %2 : !inter.rows<g[rel, src], f32>
  // CHECK-NEXT: %4 = inter.neg %3 : !inter.rows<g[rel, src], f32>
  // CHECK-NEXT: %5 = inter.reduce sum %4 over %g along (rel, src) : !inter.rows<g[rel, src], f32>
  // CHECK-NEXT: %6 = inter.add %0, %5 : !inter.rows<g[rel, src], f32>
  // CHECK-NEXT: func.return %p, %6
  func.return %p : !inter.rows<g[rel, src], f32>
}
