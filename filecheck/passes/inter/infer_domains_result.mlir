// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// The type of a result belongs to the caller.
// CHECK-LABEL: func.func @kept
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<g, f32> {
  // CHECK: %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %a = inter.at %g[src], %x : !inter.rows<g, f32>
  // CHECK: %e = inter.neg %a : !inter.rows<g, f32>
  %e = inter.neg %a : !inter.rows<g, f32>
  func.return %e : !inter.rows<g, f32>
}
