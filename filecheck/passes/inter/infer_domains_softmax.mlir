// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// Attention per destination: scores of typed sources are per pair, the softmax stays per edge.
// CHECK-LABEL: func.func @attention
func.func @attention(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>,
    %x : !inter.rows<N, f32>, %W : !inter.rows<R, f32>) -> !inter.rows<N, f32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, f32>
  // CHECK: %z = inter.mul %xs, %Wr : !inter.rows<g[rel, src], f32>
  %z = inter.mul %xs, %Wr : !inter.rows<g, f32>
  // CHECK: %p = inter.softmax %z over %g along dst : !inter.rows<g, f32>
  %p = inter.softmax %z over %g along dst : !inter.rows<g, f32>
  // the groups are coarser than the scores: stored per pair, still summed over the edges
  // CHECK: %q = inter.softmax %z over %g along rel : !inter.rows<g[rel, src], f32>
  %q = inter.softmax %z over %g along rel : !inter.rows<g, f32>
  %m = inter.mul %p, %q : !inter.rows<g, f32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}
