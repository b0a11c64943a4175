// RUN: gnn-opt %s -p autodiff,cse,dce,verify-sets | filecheck %s

// CHECK-LABEL: func.func @linear
// CHECK-SAME: %d_o: !inter.rows<N, 2xf32> {inter.cotangent = "o", inter.name = "d_o"})
// CHECK-SAME: -> (!inter.rows<N, 2xf32>, !inter.rows<R, 3x2xf32> {inter.name = "d_W", inter.grad = "W"})
func.func @linear(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>,
    %x : !inter.rows<N, 3xf32>, %W : !inter.rows<R, 3x2xf32> {inter.needs_grad}) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 3xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g[rel], 3x2xf32>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g[rel, src], 2xf32>
  %o = inter.reduce sum %h over %g along dst : !inter.rows<N, 2xf32>
  // CHECK: %0 = inter.at %g[dst], %d_o : !inter.rows<g[dst], 2xf32>
  // the read of %h happened at every edge: summed over g, although its cotangent is stored per dst
  // CHECK-NEXT: %1 = inter.reduce sum %0 over %g along (rel, src) : !inter.rows<g[rel, src], 2xf32>
  // the weights' gradient runs over pairs, not edges
  // CHECK-NEXT: %2 = inter.contract "k,f->kf" %xs, %1 : !inter.rows<g[rel, src], 3x2xf32>
  // CHECK-NEXT: %3 = inter.reduce sum %2 over %g[rel, src] along rel : !inter.rows<R, 3x2xf32>
  // no gradient of %x
  // CHECK-NEXT: func.return %o, %3
  func.return %o : !inter.rows<N, 2xf32>
}
