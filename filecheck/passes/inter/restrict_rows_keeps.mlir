// RUN: gnn-opt %s -p restrict-rows,verify-sets | filecheck %s

// Statistics over all nodes: only what follows them is done at the rows of the mask.
// CHECK-LABEL: func.func @statistics
func.func @statistics(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, 4xf32> attributes {inter.stats = {f = 1000 : i64}} {
  // CHECK: %h = inter.reduce sum %m over %g along dst
  // CHECK: [[at:%.*]] = inter.at %f[parent], %h
  // CHECK-NEXT: %o = inter.sub [[at]], %mean : !inter.rows<f, 4xf32>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %mean = inter.reduce mean %h over %N along () : !inter.rows<unit, 4xf32>
  %c = inter.sub %h, %mean : !inter.rows<N, 4xf32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %c : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}

// A value that is also a result.
// CHECK-LABEL: func.func @two_uses
func.func @two_uses(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>) attributes {inter.stats = {f = 1000 : i64}} {
  // CHECK-NEXT: inter.at %g[src]
  // CHECK-NEXT: inter.reduce sum %m over %g along dst
  // CHECK-NEXT: inter.filter %N, %k
  // CHECK-NEXT: inter.at %f[parent], %h
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %h : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l, %h : !inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>
}

// A mask that keeps most rows, and one of which nothing is known.
// CHECK-LABEL: func.func @most
func.func @most(%N : !inter.set<N>, %k : !inter.rows<N, i1>, %j : !inter.rows<N, i1>, %x : !inter.rows<N, f32>) -> (!inter.rows<unit, f32>, !inter.rows<unit, f32>) attributes {inter.stats = {f = 80000 : i64}} {
  // CHECK: %r = inter.tanh %x : !inter.rows<N, f32>
  // CHECK: %s = inter.exp %x : !inter.rows<N, f32>
  %r = inter.tanh %x : !inter.rows<N, f32>
  %s = inter.exp %x : !inter.rows<N, f32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %h = inter.filter %N, %j : !inter.set<h, parent: N mono>
  %p = inter.at %f[parent], %r : !inter.rows<f, f32>
  %q = inter.at %h[parent], %s : !inter.rows<h, f32>
  %l = inter.reduce sum %p over %f along () : !inter.rows<unit, f32>
  %m = inter.reduce sum %q over %h along () : !inter.rows<unit, f32>
  func.return %l, %m : !inter.rows<unit, f32>, !inter.rows<unit, f32>
}

// A mask of floats, which a call makes: the edges would have to be chosen in each.
// CHECK-LABEL: func.func @floats
func.func @floats(%N : !inter.set<N>, %x : !inter.rows<N, f32>, %y : !inter.rows<N, f32>) -> !inter.rows<unit, f32> attributes {inter.stats = {f = 1000 : i64}} {
  // CHECK: %r = inter.tanh %x : !inter.rows<N, f32>
  %r = inter.tanh %x : !inter.rows<N, f32>
  %k = inter.gt %x, %y : !inter.rows<N, i1>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %p = inter.at %f[parent], %r : !inter.rows<f, f32>
  %l = inter.reduce sum %p over %f along () : !inter.rows<unit, f32>
  func.return %l : !inter.rows<unit, f32>
}

// Where a slope may be infinite, eager has no number for the gradient of rows that nobody reads.
// CHECK-LABEL: func.func @slopes
func.func @slopes(%N : !inter.set<N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, f32> {inter.needs_grad}) -> !inter.rows<unit, f32> attributes {inter.stats = {f = 1000 : i64}} {
  // CHECK: %r = inter.sqrt %x : !inter.rows<N, f32>
  %r = inter.sqrt %x : !inter.rows<N, f32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %p = inter.at %f[parent], %r : !inter.rows<f, f32>
  %l = inter.reduce sum %p over %f along () : !inter.rows<unit, f32>
  func.return %l : !inter.rows<unit, f32>
}
