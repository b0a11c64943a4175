// RUN: gnn-opt %s -p canonicalize,verify-sets --check-passes --split-input-file | filecheck %s

// Neutral numbers, on either side where the function allows it.
// CHECK-LABEL: func.func @neutral
// CHECK-NEXT: func.return %x, %x, %x, %x, %x, %x
func.func @neutral(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %zero = inter.const 0.0 : !inter.rows<unit, 4xf32>
  %a = inter.mul %x, %one : !inter.rows<N, 4xf32>
  %b = inter.mul %one, %x : !inter.rows<N, 4xf32>
  %negative = inter.const -0.0 : !inter.rows<unit, 4xf32>
  %c = inter.add %negative, %x : !inter.rows<N, 4xf32>
  %d = inter.sub %x, %zero : !inter.rows<N, 4xf32>
  %e = inter.div %x, %one : !inter.rows<N, 4xf32>
  %f = inter.pow %x, %one : !inter.rows<N, 4xf32>
  func.return %a, %b, %c, %d, %e, %f : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// 0.0 is neutral to what is never -0.0, as sums.
// CHECK-LABEL: func.func @zero
// CHECK: %s = inter.reduce sum
// CHECK-NEXT: %b = inter.add %x, %zero
// CHECK-NEXT: func.return %s, %b
func.func @zero(%N : !inter.set<N>, %g : !inter.set<g, dst: N>, %x : !inter.rows<N, f32>, %e : !inter.rows<g, f32>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %s = inter.reduce sum %e over %g along dst : !inter.rows<N, f32>
  %a = inter.add %zero, %s : !inter.rows<N, f32>
  %b = inter.add %x, %zero : !inter.rows<N, f32>
  func.return %a, %b : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// Not neutral: 0 - x, and a broadcast that widens the row.
// CHECK-LABEL: func.func @not_neutral
// CHECK: %a = inter.sub %zero, %x
// CHECK-NEXT: %b = inter.mul %ones, %x : !inter.rows<N, 2x4xf32>
func.func @not_neutral(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 2x4xf32>) {
  %ones = inter.const 1.0 : !inter.rows<unit, 2x1xf32>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %a = inter.sub %zero, %x : !inter.rows<N, 4xf32>
  %b = inter.mul %x, %ones : !inter.rows<N, 2x4xf32>
  func.return %a, %b : !inter.rows<N, 4xf32>, !inter.rows<N, 2x4xf32>
}

// -----

// CHECK-LABEL: func.func @constants
func.func @constants(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xi1>) {
  %two = inter.const 2.0 : !inter.rows<unit, f32>
  %three = inter.const 3 : !inter.rows<unit, i64>
  %t = inter.cast %three : !inter.rows<unit, f32>
  %r = inter.reshape %t : !inter.rows<unit, 1xf32>
  %p = inter.pow %r, %two : !inter.rows<unit, 1xf32>
  // CHECK-NEXT: %[[P:.*]] = inter.const 9.0 : !inter.rows<unit, f32>
  // CHECK-NEXT: %[[A:.*]] = inter.mul %[[P]], %x : !inter.rows<N, 4xf32>
  %a = inter.mul %x, %p : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %[[Q:.*]] = inter.const 9.0 : !inter.rows<unit, f32>
  // CHECK-NEXT: %[[C:.*]] = inter.gt %x, %[[Q]] : !inter.rows<N, 4xi1>
  %c = inter.gt %x, %p : !inter.rows<N, 4xi1>
  %n = inter.logical_not %c : !inter.rows<N, 4xi1>
  %nn = inter.logical_not %n : !inter.rows<N, 4xi1>
  // CHECK-NEXT: func.return %[[A]], %[[C]]
  func.return %a, %nn : !inter.rows<N, 4xf32>, !inter.rows<N, 4xi1>
}

// -----

// CHECK-LABEL: func.func @views
func.func @views(%N : !inter.set<N>, %x : !inter.rows<N, 2x4xf32>) -> (!inter.rows<N, 2x4xf32>, !inter.rows<N, 8x1xf32>, !inter.rows<N, 4x2xf32>, !inter.rows<N, 8xf32>) {
  %a = inter.reshape %x : !inter.rows<N, 8xf32>
  %b = inter.reshape %a : !inter.rows<N, 2x4xf32>
  // CHECK-NEXT: %c = inter.reshape %x : !inter.rows<N, 8x1xf32>
  %c = inter.reshape %a : !inter.rows<N, 8x1xf32>
  // CHECK-NEXT: %g = inter.transpose %x [1, 0] : !inter.rows<N, 4x2xf32>
  %d = inter.transpose %x [1, 0] : !inter.rows<N, 4x2xf32>
  %e = inter.transpose %d [1, 0] : !inter.rows<N, 2x4xf32>
  %f = inter.slice %e {dim = 1, lo = 0, hi = 4} : !inter.rows<N, 2x4xf32>
  %g = inter.transpose %f [1, 0] : !inter.rows<N, 4x2xf32>
  // CHECK-NEXT: %h = inter.reshape %x : !inter.rows<N, 8xf32>
  %h = inter.row_reduce sum %c [1] : !inter.rows<N, 8xf32>
  // CHECK-NEXT: func.return %x, %c, %g, %h
  func.return %b, %c, %g, %h : !inter.rows<N, 2x4xf32>, !inter.rows<N, 8x1xf32>, !inter.rows<N, 4x2xf32>, !inter.rows<N, 8xf32>
}

// -----

// A constant per edge is read where it is, on unit; a sum of ones is a count; parts undo a stack.
// CHECK-LABEL: func.func @unions
func.func @unions(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %w : !inter.rows<g, f32>) -> (!inter.rows<N, f32>, !inter.rows<g, f32>, !inter.rows<N, 4xf32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  // CHECK: %u = inter.union
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %g, %l : !inter.set<u, src: N onto, dst: N onto, parts g l>
  %og = inter.reshape %one : !inter.rows<g, f32>
  %ones = inter.stack %u, %og, %one : !inter.rows<u, f32>
  // CHECK-NEXT: %deg = inter.count over %u along dst : !inter.rows<N, f32>
  %deg = inter.reduce sum %ones over %u along dst : !inter.rows<N, f32>
  %s = inter.stack %u, %w, %one : !inter.rows<u, f32>
  %p = inter.part 0 of %u, %s : !inter.rows<g, f32>
  // CHECK-NEXT: func.return %deg, %w, %x
  %xu = inter.at %u[dst], %x : !inter.rows<u[dst], 4xf32>
  %m = inter.reduce mean %xu over %u along dst : !inter.rows<N, 4xf32>
  func.return %deg, %p, %m : !inter.rows<N, f32>, !inter.rows<g, f32>, !inter.rows<N, 4xf32>
}

// -----

// Zeros of two signs are not the same constant, neither of two parts nor beside a value's own.
// CHECK-LABEL: func.func @signs_of_zeros
// CHECK: %s = inter.stack %u, %zero, %minus
// CHECK: %a = inter.at %l[old], %zero else %minus
func.func @signs_of_zeros(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %minus = inter.const -0.0 : !inter.rows<unit, f32>
  %l = inter.loops %g {remaining} : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
  %u = inter.union %g, %l : !inter.set<u, src: N onto, dst: N onto, parts g l>
  %s = inter.stack %u, %zero, %minus : !inter.rows<u, f32>
  %a = inter.at %l[old], %zero else %minus : !inter.rows<l, f32>
  %r = inter.reduce min %s over %u along dst : !inter.rows<N, f32>
  %q = inter.reduce min %a over %l along dst : !inter.rows<N, f32>
  func.return %r, %q : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// dst misses nodes, so an empty group's mean is 0, not x; a sum over dst counts parallel edges.
// CHECK-LABEL: func.func @not_the_identity
// CHECK: inter.reduce mean
// CHECK: inter.reduce sum
func.func @not_the_identity(%N : !inter.set<N>, %g : !inter.set<g, dst: N>, %h : !inter.set<h, dst: N onto>, %x : !inter.rows<N, f32>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %a = inter.at %g[dst], %x : !inter.rows<g[dst], f32>
  %m = inter.reduce mean %a over %g along dst : !inter.rows<N, f32>
  %b = inter.at %h[dst], %x : !inter.rows<h[dst], f32>
  %s = inter.reduce sum %b over %h along dst : !inter.rows<N, f32>
  func.return %m, %s : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// CHECK-LABEL: func.func @sets
func.func @sets(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %z : !inter.rows<unit, 3x2xf32>, %k : !inter.rows<unit, i64>) -> (!inter.rows<g, i64>, !inter.rows<unit, i64>, !inter.rows<unit, 3x2xf32>) {
  %i = inter.iota %N : !inter.rows<N, i64>
  %R = inter.range 3 : !inter.set<R>
  // CHECK: %is = inter.index %g[src] : !inter.rows<g, i64>
  %is = inter.at %g[src], %i : !inter.rows<g, i64>
  // CHECK-NEXT: %n = inter.const 3 : !inter.rows<unit, i64>
  %n = inter.size %R : !inter.rows<unit, i64>
  %r = inter.as_rows %R, %z : !inter.rows<R, 2xf32>
  %d = inter.dropout %r, %k over %R {p = 0.0, site = 0} : !inter.rows<R, 2xf32>
  %u = inter.as_unit %R, %d : !inter.rows<unit, 3x2xf32>
  // CHECK-NEXT: func.return %is, %n, %z
  func.return %is, %n, %u : !inter.rows<g, i64>, !inter.rows<unit, i64>, !inter.rows<unit, 3x2xf32>
}

// -----

// A result keeps the type that the caller was promised; a reader that needs the finer domain keeps
// the value there: exp is computed on edges, because g[src] stores nodes that no edge reads.
// CHECK-LABEL: func.func @kept
// CHECK: %b = inter.reshape %one : !inter.rows<N, f32>
// CHECK: %c = inter.reshape %xs : !inter.rows<g, f32>
// CHECK: func.return %b, %c
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N>, %x : !inter.rows<N, f32>) -> (!inter.rows<N, f32>, !inter.rows<g, f32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %b = inter.reshape %one : !inter.rows<N, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %c = inter.reshape %xs : !inter.rows<g, f32>
  func.return %b, %c : !inter.rows<N, f32>, !inter.rows<g, f32>
}

// -----

// A set that only a type names is not dead.
// CHECK-LABEL: func.func @sized
// CHECK: %B = inter.sized %n : !inter.set<B>
func.func @sized(%N : !inter.set<N>, %batch : !inter.rows<N, i64>, %x : !inter.rows<N, f32>) -> !inter.rows<B, f32> {
  %last = inter.reduce max %batch over %N along () : !inter.rows<unit, i64>
  %one = inter.const 1 : !inter.rows<unit, i64>
  %n = inter.add %last, %one : !inter.rows<unit, i64>
  %B = inter.sized %n : !inter.set<B>
  %M = inter.attach %N (batch = %batch) : !inter.set<M, batch: B, parent: N mono onto>
  %y = inter.at %M[parent], %x : !inter.rows<M, f32>
  %o = inter.reduce sum %y over %M along batch : !inter.rows<B, f32>
  func.return %o : !inter.rows<B, f32>
}

// -----

// Of operands that may change places the shorter one comes first.
// CHECK-LABEL: func.func @order
// CHECK-NEXT: %a = inter.mul %w, %x
// CHECK-NEXT: %b = inter.add %x, %y
// CHECK-NEXT: %c = inter.sub %x, %w
// CHECK-NEXT: func.return %a, %b, %c
func.func @order(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<N, 4xf32>, %w : !inter.rows<N, f32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %a = inter.mul %x, %w : !inter.rows<N, 4xf32>
  %b = inter.add %x, %y : !inter.rows<N, 4xf32>
  %c = inter.sub %x, %w : !inter.rows<N, 4xf32>
  func.return %a, %b, %c : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// A reshape behind a function meets those in front of it, if that leaves fewer and the function has
// no other reader.
// CHECK-LABEL: func.func @meets
// CHECK-NEXT: %[[X:.*]] = inter.reshape %x : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[A:.*]] = inter.add %[[X]], %b : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %b : !inter.rows<unit, 2x4xf32>
// CHECK-NEXT: %twice = inter.add %x, %[[B]] : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %c = inter.reshape %twice : !inter.rows<N, 8xf32>
// CHECK-NEXT: %sum = inter.add %x, %y : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %d = inter.reshape %sum : !inter.rows<N, 8xf32>
func.func @meets(%N : !inter.set<N>, %x : !inter.rows<N, 2x4xf32>, %y : !inter.rows<N, 2x4xf32>, %b : !inter.rows<unit, 8xf32>) -> (!inter.rows<N, 8xf32>, !inter.rows<N, 2x4xf32>, !inter.rows<N, 8xf32>, !inter.rows<N, 8xf32>) {
  %heads = inter.reshape %b : !inter.rows<unit, 2x4xf32>
  %once = inter.add %x, %heads : !inter.rows<N, 2x4xf32>
  %a = inter.reshape %once : !inter.rows<N, 8xf32>
  %again = inter.reshape %b : !inter.rows<unit, 2x4xf32>
  %twice = inter.add %x, %again : !inter.rows<N, 2x4xf32>
  %c = inter.reshape %twice : !inter.rows<N, 8xf32>
  %sum = inter.add %x, %y : !inter.rows<N, 2x4xf32>
  %d = inter.reshape %sum : !inter.rows<N, 8xf32>
  func.return %a, %twice, %c, %d : !inter.rows<N, 8xf32>, !inter.rows<N, 2x4xf32>, !inter.rows<N, 8xf32>, !inter.rows<N, 8xf32>
}
