// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// What reads data of the edge, or random numbers of the edge, or both ends, stays per edge.
// CHECK-LABEL: func.func @per_edge
func.func @per_edge(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N, pairs (dst, src)>, %x : !inter.rows<N, 4xf32>,
    %e : !inter.rows<g, f32>, %key : !inter.rows<unit, i64>) -> !inter.rows<N, 4xf32> {
  // CHECK: %xs = inter.at %g[src], %x : !inter.rows<g[src], 4xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  // CHECK: %a = inter.mul %xs, %e : !inter.rows<g, 4xf32>
  %a = inter.mul %xs, %e : !inter.rows<g, 4xf32>
  // CHECK: %b = inter.dropout %xs, %key over %g {p = 0.5, site = 0} : !inter.rows<g, 4xf32>
  %b = inter.dropout %xs, %key over %g {p = 0.5, site = 0} : !inter.rows<g, 4xf32>
  %c = inter.add %a, %b : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %c over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// An undeclared pair (source, destination) rounds up to the edge; parallel edges make it smaller, at
// the price of a table that nobody else needs.
// CHECK-LABEL: func.func @both_ends
func.func @both_ends(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 4xf32>
  // CHECK: %d = inter.sub %xs, %xd : !inter.rows<g, 4xf32>
  %d = inter.sub %xs, %xd : !inter.rows<g, 4xf32>
  %o = inter.reduce max %d over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}
