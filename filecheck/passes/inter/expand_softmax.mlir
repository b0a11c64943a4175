// RUN: gnn-opt %s -p expand-softmax,verify-sets --split-input-file | filecheck %s

// Maximum and sum are numbers of the group. A sum is 1 or more where there are rows; no empty group
// divides by 0.
// CHECK-LABEL: func.func @scores
// CHECK: %p_max = inter.reduce max %l over %g along dst : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[M:.*]] = inter.at %g[dst], %p_max : !inter.rows<g[dst], 8xf32>
// CHECK-NEXT: %[[D:.*]] = inter.sub %l, %[[M]] : !inter.rows<g, 8xf32>
// CHECK-NEXT: %p_exp = inter.exp %[[D]] : !inter.rows<g, 8xf32>
// CHECK-NEXT: %[[S:.*]] = inter.reduce sum %p_exp over %g along dst : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[ONE:.*]] = inter.const 1.0
// CHECK-NEXT: %p_sum = inter.maximum %[[S]], %[[ONE]] : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[T:.*]] = inter.at %g[dst], %p_sum : !inter.rows<g[dst], 8xf32>
// CHECK-NEXT: %p = inter.div %p_exp, %[[T]] : !inter.rows<g, 8xf32>
func.func @scores(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %l : !inter.rows<g, 8xf32>) -> !inter.rows<g, 8xf32> {
  %p = inter.softmax %l over %g along dst : !inter.rows<g, 8xf32>
  func.return %p : !inter.rows<g, 8xf32>
}

// -----

// All rows are one group: no reads.
// CHECK-LABEL: func.func @readout
// CHECK-NOT: inter.at
// CHECK: inter.div
func.func @readout(%N : !inter.set<N>, %l : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %p = inter.softmax %l over %N along () : !inter.rows<N, f32>
  func.return %p : !inter.rows<N, f32>
}

// -----

// Scores that are the same for all edges of a pair are stored once a pair, and weigh as many times
// as the pair has edges: the softmax stays, for its parts are not Total.
// CHECK-LABEL: func.func @compact
// CHECK: inter.softmax
func.func @compact(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %z : !inter.rows<g[rel, src], f32>) -> !inter.rows<N, f32> {
  %q = inter.softmax %z over %g along rel : !inter.rows<g[rel, src], f32>
  %o = inter.reduce sum %q over %g along dst : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}
