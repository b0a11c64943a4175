// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// What a reduction sums over is not a matter of storage: every edge counts, not every source.
// CHECK-LABEL: func.func @multiplicity
func.func @multiplicity(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<unit, f32> {
  // CHECK: %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %a = inter.at %g[src], %x : !inter.rows<g, f32>
  // CHECK: %o = inter.reduce sum %a over %g along () : !inter.rows<unit, f32>
  %o = inter.reduce sum %a over %g along () : !inter.rows<unit, f32>
  func.return %o : !inter.rows<unit, f32>
}
