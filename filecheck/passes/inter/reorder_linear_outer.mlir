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

// -----

// A row that belongs to one side is multiplied with it before: each row of the outer product would
// be, and its sum be no product of matrices.
// CHECK-LABEL: func.func @three
// CHECK-NEXT: %[[S:.*]] = inter.mul %{{.*}}, %{{.*}} : !inter.rows<N, 3xf32>
// CHECK-NEXT: %[[O:.*]] = inter.contract "b,a->ab" %[[S]], %x : !inter.rows<N, 4x3xf32>
// CHECK-NEXT: inter.reduce sum %[[O]] over %N along () : !inter.rows<unit, 4x3xf32>
func.func @three(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<N, 3xf32>, %z : !inter.rows<N, 3xf32>) -> !inter.rows<unit, 4x3xf32> {
  %o = inter.contract "y,z->yz" %x, %y : !inter.rows<N, 4x3xf32>
  %m = inter.mul %z, %o : !inter.rows<N, 4x3xf32>
  %s = inter.reduce sum %m over %N along () : !inter.rows<unit, 4x3xf32>
  func.return %s : !inter.rows<unit, 4x3xf32>
}

// -----

// The same of two factors of the left side, and of a divisor.
// CHECK-LABEL: func.func @four
// CHECK-DAG: inter.mul {{.*}} : !inter.rows<N, 4xf32>
// CHECK-DAG: inter.div {{.*}} : !inter.rows<N, 3xf32>
// CHECK: %[[O:.*]] = inter.contract {{.*}} : !inter.rows<N, 4x3xf32>
// CHECK-NEXT: inter.reduce sum %[[O]] over %N along ()
func.func @four(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %w : !inter.rows<N, 4xf32>, %y : !inter.rows<N, 3xf32>, %d : !inter.rows<N, 3xf32>) -> !inter.rows<unit, 4x3xf32> {
  %xc = inter.reshape %x : !inter.rows<N, 4x1xf32>
  %wc = inter.reshape %w : !inter.rows<N, 4x1xf32>
  %o = inter.mul %xc, %y : !inter.rows<N, 4x3xf32>
  %m = inter.mul %wc, %o : !inter.rows<N, 4x3xf32>
  %q = inter.div %m, %d : !inter.rows<N, 4x3xf32>
  %s = inter.reduce sum %q over %N along () : !inter.rows<unit, 4x3xf32>
  func.return %s : !inter.rows<unit, 4x3xf32>
}

// -----

// What belongs to a side may be shorter than it: of heads it is the same for each.
// CHECK-LABEL: func.func @heads_scaled
// CHECK: inter.mul {{.*}} : !inter.rows<g, 2x4xf32>
// CHECK: inter.contract {{.*}} : !inter.rows<g, 2x3x4xf32>
// CHECK-NEXT: inter.reduce sum
func.func @heads_scaled(%N : !inter.set<N>, %g : !inter.set<g, dst: N>, %s : !inter.rows<g, 4xf32>, %a : !inter.rows<g, 2x3x1xf32>, %z : !inter.rows<g, 2x1x4xf32>) -> !inter.rows<N, 2x3x4xf32> {
  %o = inter.mul %a, %z : !inter.rows<g, 2x3x4xf32>
  %m = inter.mul %s, %o : !inter.rows<g, 2x3x4xf32>
  %r = inter.reduce sum %m over %g along dst : !inter.rows<N, 2x3x4xf32>
  func.return %r : !inter.rows<N, 2x3x4xf32>
}

// -----

// Three sides are multiplied in turn, once.
// CHECK-LABEL: func.func @three_sides
// CHECK: inter.reduce sum
func.func @three_sides(%N : !inter.set<N>, %x : !inter.rows<N, 2x3x1xf32>, %y : !inter.rows<N, 2x1x4xf32>, %z : !inter.rows<N, 3x4xf32>) -> !inter.rows<unit, 2x3x4xf32> {
  %o = inter.mul %x, %y : !inter.rows<N, 2x3x4xf32>
  %m = inter.mul %z, %o : !inter.rows<N, 2x3x4xf32>
  %r = inter.reduce sum %m over %N along () : !inter.rows<unit, 2x3x4xf32>
  func.return %r : !inter.rows<unit, 2x3x4xf32>
}
