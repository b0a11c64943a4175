// RUN: gnn-opt %s -p reorder-linear | filecheck %s

// Dropout of the quotient of a softmax is its mask times the quotient: the sum leaves the sum of
// messages. Dropout of rows of nodes, or of wide ones, stays.
// CHECK: %s = inter.maximum
// CHECK-NEXT: %0 = inter.const 1.0 : !inter.rows<unit, f32>
// CHECK-NEXT: %1 = inter.dropout %0, %key over %g {p = 0.5, site = 3} : !inter.rows<g, f32>
// CHECK: %2 = inter.mul %1, %e : !inter.rows<g, f32>
// CHECK: %4 = inter.reduce sum %3 over %g along dst : !inter.rows<N, 4xf32>
// CHECK: inter.div %{{.*}}, %s : !inter.rows<N, f32>
// CHECK: %r = inter.dropout %w, %key over %g {p = 0.5, site = 4} : !inter.rows<g, 32xf32>
// CHECK: %z = inter.dropout %double, %key over %N {p = 0.5, site = 5} : !inter.rows<N, 4xf32>
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>,
    %a : !inter.rows<g, f32>, %w : !inter.rows<g, 32xf32>, %key : !inter.rows<unit, i64>)
    -> (!inter.rows<N, 4xf32>, !inter.rows<g, 32xf32>, !inter.rows<N, 4xf32>) {
  %most = inter.reduce max %a over %g along dst : !inter.rows<N, f32>
  %m = inter.at %g[dst], %most : !inter.rows<g, f32>
  %less = inter.sub %a, %m : !inter.rows<g, f32>
  %e = inter.exp %less : !inter.rows<g, f32>
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %sum = inter.reduce sum %e over %g along dst : !inter.rows<N, f32>
  %s = inter.maximum %sum, %one : !inter.rows<N, f32>
  %d = inter.at %g[dst], %s : !inter.rows<g, f32>
  %p = inter.div %e, %d : !inter.rows<g, f32>
  %q = inter.dropout %p, %key over %g {p = 0.5, site = 3} : !inter.rows<g, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %v = inter.mul %q, %xs : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %v over %g along dst : !inter.rows<N, 4xf32>
  %r = inter.dropout %w, %key over %g {p = 0.5, site = 4} : !inter.rows<g, 32xf32>
  %double = inter.mul %x, %x : !inter.rows<N, 4xf32>
  %z = inter.dropout %double, %key over %N {p = 0.5, site = 5} : !inter.rows<N, 4xf32>
  func.return %y, %r, %z : !inter.rows<N, 4xf32>, !inter.rows<g, 32xf32>, !inter.rows<N, 4xf32>
}
