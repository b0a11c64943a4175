// RUN: gnn-opt %s -p reorder-linear,canonicalize,verify-sets --split-input-file | filecheck %s

// A factor that is constant in each group leaves a sum of outer products; what stays is an outer
// product still, whose sum is a product of matrices.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[O:.*]] = inter.contract "a,b->ab" %x, %d : !inter.rows<N, 3x4xf32>
// CHECK-NEXT: %[[S:.*]] = inter.reduce sum %[[O]] over %N along rel : !inter.rows<R, 3x4xf32>
// CHECK-NEXT: %[[W:.*]] = inter.mul %s, %[[S]] : !inter.rows<R, 3x4xf32>
// CHECK-NEXT: func.return %[[W]]
func.func @scaled(%R : !inter.set<R>, %N : !inter.set<N, rel: R>, %x : !inter.rows<N, 3xf32>, %d : !inter.rows<N, 4xf32>, %s : !inter.rows<R, f32>) -> !inter.rows<R, 3x4xf32> {
  %a = inter.at %N[rel], %s : !inter.rows<N[rel], f32>
  %e = inter.mul %a, %d : !inter.rows<N, 4xf32>
  %o = inter.contract "k,f->kf" %x, %e : !inter.rows<N, 3x4xf32>
  %w = inter.reduce sum %o over %N along rel : !inter.rows<R, 3x4xf32>
  func.return %w : !inter.rows<R, 3x4xf32>
}

// -----

// An outer product may be written as a product of values that broadcast; heads are shared.
// CHECK-LABEL: func.func @broadcast
// CHECK: inter.contract "ab,ac->abc" %x, %d : !inter.rows<N, 2x3x4xf32>
func.func @broadcast(%N : !inter.set<N>, %x : !inter.rows<N, 2x3xf32>, %d : !inter.rows<N, 2x4xf32>) -> !inter.rows<unit, 2x3x4xf32> {
  %xc = inter.reshape %x : !inter.rows<N, 2x3x1xf32>
  %dc = inter.reshape %d : !inter.rows<N, 2x1x4xf32>
  %o = inter.mul %xc, %dc : !inter.rows<N, 2x3x4xf32>
  %w = inter.reduce sum %o over %N along () : !inter.rows<unit, 2x3x4xf32>
  func.return %w : !inter.rows<unit, 2x3x4xf32>
}

// -----

// A number a head times a row a head broadcasts one way only: a product it stays.
// CHECK-LABEL: func.func @heads
// CHECK-NOT: inter.contract
func.func @heads(%N : !inter.set<N>, %g : !inter.set<g, dst: N>, %p : !inter.rows<g, 2x1xf32>, %z : !inter.rows<g, 2x3xf32>) -> !inter.rows<N, 2x3xf32> {
  %m = inter.mul %p, %z : !inter.rows<g, 2x3xf32>
  %s = inter.reduce sum %m over %g along dst : !inter.rows<N, 2x3xf32>
  func.return %s : !inter.rows<N, 2x3xf32>
}
