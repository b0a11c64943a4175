// RUN: gnn-opt %s -p autodiff,cse,dce,verify-sets | filecheck %s

// A readout leaves the cotangent on unit. It still counts once per edge: `over` is where the read
// happened, not where the cotangent is stored.
// CHECK-LABEL: func.func @readout
func.func @readout(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32> {inter.needs_grad}) -> !inter.rows<unit, f32> {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %o = inter.reduce sum %xs over %g along () : !inter.rows<unit, f32>
  // CHECK: %0 = inter.reduce sum %d_o over %g along src : !inter.rows<N, f32>
  // CHECK-NEXT: func.return %o, %0
  func.return %o : !inter.rows<unit, f32>
}
