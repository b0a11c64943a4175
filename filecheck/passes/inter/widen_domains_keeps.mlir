// RUN: gnn-opt %s -p widen-domains,verify-sets | filecheck %s
// RUN: gnn-opt %s -p 'widen-domains{few=1.5},verify-sets' | filecheck %s --check-prefix=LESS

// Not so few edges: the product once a node.
// CHECK-LABEL: func.func @edges
// LESS-LABEL: func.func @edges
func.func @edges(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 600 : i64}} {
  // CHECK-NEXT: %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  // LESS-NEXT: inter.at
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %y : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Without sizes a graph has more edges than nodes.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32> {
  // CHECK-NEXT: %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %y : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// All nodes need the product: it is there, and the edges read it.
// CHECK-LABEL: func.func @used
func.func @used(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 100 : i64}} {
  // CHECK-NEXT: %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  // CHECK-NEXT: inter.at
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %y : !inter.rows<g[src], 4xf32>
  %s = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  %o = inter.add %s, %y : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// A reduction over pairs takes no value of an edge.
// CHECK-LABEL: func.func @pairs
func.func @pairs(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<R, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 100 : i64}} {
  // CHECK-NEXT: %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %y : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %a over %g[rel, src] along rel : !inter.rows<R, 4xf32>
  func.return %o : !inter.rows<R, 4xf32>
}

// The nodes that no edge reads have a gradient of 0 times infinity where their divisor is 0.
// CHECK-LABEL: func.func @slope
func.func @slope(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32> {inter.needs_grad}, %d : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 100 : i64}} {
  // CHECK-NEXT: %q = inter.div %x, %d : !inter.rows<N, 4xf32>
  %q = inter.div %x, %d : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %q : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Without a gradient nobody sees them.
// CHECK-LABEL: func.func @value
func.func @value(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %d : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 100 : i64}} {
  // CHECK: inter.div {{.*}} : !inter.rows<g, 4xf32>
  %q = inter.div %x, %d : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %q : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}
