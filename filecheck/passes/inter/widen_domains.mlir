// RUN: gnn-opt %s -p widen-domains,verify-sets | filecheck %s

// Few edges read a product of all nodes: it is done at their rows, and so is what follows.
// CHECK-LABEL: func.func @product
func.func @product(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>, %b : !inter.rows<unit, 4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 250 : i64}} {
  // CHECK-NEXT: %0 = inter.at %g[src], %x : !inter.rows<g[src], 5xf32>
  // CHECK-NEXT: %1 = inter.contract "k,kf->f" %0, %W : !inter.rows<g, 4xf32>
  // CHECK-NEXT: %hs = inter.add %1, %b : !inter.rows<g, 4xf32>
  // CHECK-NEXT: %r = inter.relu %hs : !inter.rows<g, 4xf32>
  // CHECK-NEXT: %o = inter.reduce sum %r over %g along dst : !inter.rows<N, 4xf32>
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %c = inter.add %h, %b : !inter.rows<N, 4xf32>
  %hs = inter.at %g[src], %c : !inter.rows<g[src], 4xf32>
  %r = inter.relu %hs : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %r over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Two relations together are few: the product is done for each.
// CHECK-LABEL: func.func @two_relations
func.func @two_relations(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %h : !inter.set<h, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 100 : i64, h = 100 : i64}} {
  // CHECK: inter.contract {{.*}} : !inter.rows<g, 4xf32>
  // CHECK: inter.contract {{.*}} : !inter.rows<h, 4xf32>
  // CHECK-NOT: inter.contract
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %y : !inter.rows<g[src], 4xf32>
  %b = inter.at %h[src], %y : !inter.rows<h[src], 4xf32>
  %s = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  %t = inter.reduce sum %b over %h along dst : !inter.rows<N, 4xf32>
  %o = inter.add %s, %t : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// What stands behind the read already is stored once an edge, and a softmax takes it.
// CHECK-LABEL: func.func @behind
func.func @behind(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x2xf32>) -> !inter.rows<g, 2xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 250 : i64}} {
  // CHECK: inter.contract {{.*}} : !inter.rows<g, 2xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 5xf32>
  %y = inter.contract "k,kf->f" %xs, %W : !inter.rows<g[src], 2xf32>
  %p = inter.softmax %y over %g along dst : !inter.rows<g, 2xf32>
  func.return %p : !inter.rows<g, 2xf32>
}

// A batch's nodes read few of all: what follows from their product is one of few rows already, so
// that it is not done once more at each of the edges that read it.
// CHECK-LABEL: func.func @few_already
func.func @few_already(%N : !inter.set<N>, %g : !inter.set<g, src: N>, %e : !inter.set<e, src: g, dst: g>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>, %a : !inter.rows<unit, 4x2xf32>) -> !inter.rows<g, 2xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 250 : i64, e = 250 : i64}} {
  // CHECK: inter.contract {{.*}} : !inter.rows<g, 4xf32>
  // CHECK: inter.contract {{.*}} : !inter.rows<g, 2xf32>
  // CHECK-NEXT: inter.at %e[src], {{.*}} : !inter.rows<e[src], 2xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 5xf32>
  %z = inter.contract "k,kf->f" %xs, %W : !inter.rows<g[src], 4xf32>
  %s = inter.contract "k,kf->f" %z, %a : !inter.rows<g[src], 2xf32>
  %m = inter.at %e[src], %s : !inter.rows<e[src.src], 2xf32>
  %o = inter.reduce sum %m over %e along dst : !inter.rows<g, 2xf32>
  func.return %o : !inter.rows<g, 2xf32>
}
