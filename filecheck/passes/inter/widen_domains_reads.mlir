// RUN: gnn-opt %s -p infer-domains,widen-domains,verify-sets | filecheck %s

// The nodes of a batch are few of all: the product is theirs, and edges read it there.
// CHECK-LABEL: func.func @main
func.func @main(%A : !inter.set<A>, %N : !inter.set<N, id: A>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<A, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 25000 : i64}} {
  // CHECK-NEXT: %y = inter.at %N[id], %x : !inter.rows<N[id], 5xf32>
  %y = inter.at %N[id], %x : !inter.rows<N, 5xf32>
  // CHECK-NEXT: %h = inter.contract "k,kf->f" %y, %W : !inter.rows<N, 4xf32>
  %h = inter.contract "k,kf->f" %y, %W : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %m = inter.at %g[src], %h : !inter.rows<g[src], 4xf32>
  %m = inter.at %g[src], %h : !inter.rows<g, 4xf32>
  %o = inter.reduce max %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}
