// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// A product of features and typed weights is stored once per (relation, end).
// CHECK-LABEL: func.func @typed
func.func @typed(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>,
    %x : !inter.rows<N, 5xf32>, %W : !inter.rows<R, 5x4xf32>) -> !inter.rows<N, 4xf32> {
  // CHECK-NEXT: %xs = inter.at %g[src], %x : !inter.rows<g[src], 5xf32>
  // CHECK-NEXT: %xd = inter.at %g[dst], %x : !inter.rows<g[dst], 5xf32>
  // CHECK-NEXT: %Wr = inter.at %g[rel], %W : !inter.rows<g[rel], 5x4xf32>
  // CHECK-NEXT: %hs = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g[rel, src], 4xf32>
  // CHECK-NEXT: %hd = inter.contract "k,kf->f" %xd, %Wr : !inter.rows<g[dst, rel], 4xf32>
  // CHECK-NEXT: %m = inter.mul %hs, %hd : !inter.rows<g, 4xf32>
  // CHECK-NEXT: %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 5xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 5xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 5x4xf32>
  %hs = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf32>
  %hd = inter.contract "k,kf->f" %xd, %Wr : !inter.rows<g, 4xf32>
  %m = inter.mul %hs, %hd : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// An untyped weight leaves the source alone.
// CHECK-LABEL: func.func @untyped
func.func @untyped(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 5xf32>
  // CHECK: %h = inter.contract "k,kf->f" %xs, %W : !inter.rows<g[src], 4xf32>
  %h = inter.contract "k,kf->f" %xs, %W : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %h over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}
