// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// A value per source is also stored for nodes without edges, and exp is not computed where nobody
// reads it (its inf would be a nan in the gradient) unless every node is a source.
// CHECK-LABEL: func.func @onto
func.func @onto(%N : !inter.set<N>, %g : !inter.set<g, src: N onto, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %a = inter.at %g[src], %x : !inter.rows<g, f32>
  %b = inter.at %g[dst], %x : !inter.rows<g, f32>
  // CHECK: %c = inter.exp %a : !inter.rows<g[src], f32>
  %c = inter.exp %a : !inter.rows<g, f32>
  // CHECK: %d = inter.exp %b : !inter.rows<g, f32>
  %d = inter.exp %b : !inter.rows<g, f32>
  // CHECK: %e = inter.tanh %b : !inter.rows<g[dst], f32>
  %e = inter.tanh %b : !inter.rows<g, f32>
  %f = inter.mul %c, %d : !inter.rows<g, f32>
  %h = inter.mul %f, %e : !inter.rows<g, f32>
  %o = inter.reduce sum %h over %g along dst : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}
