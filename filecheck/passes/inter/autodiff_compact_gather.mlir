// RUN: gnn-opt %s -p autodiff,cse,dce,verify-sets | filecheck %s

// The backward of a compact gather is one sum over the edges of each source; two consumers are added
// on the nodes, and nothing is gathered back to the edges.
// CHECK-LABEL: func.func @two_consumers
func.func @two_consumers(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 3xf32> {inter.needs_grad}, %w : !inter.rows<g, f32>)
    -> (!inter.rows<N, 3xf32>, !inter.rows<N, 3xf32>) {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 3xf32>
  %o = inter.reduce sum %xs over %g along dst : !inter.rows<N, 3xf32>
  %m = inter.mul %xs, %w : !inter.rows<g, 3xf32>
  // CHECK: %p = inter.reduce sum
  %p = inter.reduce sum %m over %g along dst : !inter.rows<N, 3xf32>
  // CHECK-NEXT: %0 = inter.at %g[dst], %d_p : !inter.rows<g[dst], 3xf32>
  // CHECK-NEXT: %1 = inter.mul %0, %w : !inter.rows<g, 3xf32>
  // CHECK-NEXT: %2 = inter.reduce sum %1 over %g along src : !inter.rows<N, 3xf32>
  // CHECK-NEXT: %3 = inter.at %g[dst], %d_o : !inter.rows<g[dst], 3xf32>
  // CHECK-NEXT: %4 = inter.reduce sum %3 over %g along src : !inter.rows<N, 3xf32>
  // CHECK-NEXT: %5 = inter.add %2, %4 : !inter.rows<N, 3xf32>
  // CHECK-NEXT: func.return %o, %p, %5
  func.return %o, %p : !inter.rows<N, 3xf32>, !inter.rows<N, 3xf32>
}
