// RUN: gnn-opt %s -p reorder-linear,verify-sets | filecheck %s

// Products of one value are done once, with the sum of their matrices; biases are added first.
// CHECK-LABEL: func.func @layers
// CHECK-NEXT: %0 = inter.add %W1, %W2 : !inter.rows<unit, 4x4xf32>
// CHECK-NEXT: %1 = inter.contract "k,kf->f" %x, %0 : !inter.rows<N, 4xf32>
// CHECK-NEXT: %2 = inter.add %b1, %b2 : !inter.rows<unit, 4xf32>
// CHECK-NEXT: %3 = inter.add %1, %2 : !inter.rows<N, 4xf32>
// CHECK-NEXT: %o = inter.add %3, %z : !inter.rows<N, 4xf32>
func.func @layers(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %z : !inter.rows<N, 4xf32>, %W1 : !inter.rows<unit, 4x4xf32>, %W2 : !inter.rows<unit, 4x4xf32>, %b1 : !inter.rows<unit, 4xf32>, %b2 : !inter.rows<unit, 4xf32>) -> !inter.rows<N, 4xf32> {
  %p = inter.contract "k,kf->f" %x, %W1 : !inter.rows<N, 4xf32>
  %pb = inter.add %p, %b1 : !inter.rows<N, 4xf32>
  %q = inter.contract "k,kf->f" %x, %W2 : !inter.rows<N, 4xf32>
  %qb = inter.add %q, %b2 : !inter.rows<N, 4xf32>
  %s = inter.add %pb, %z : !inter.rows<N, 4xf32>
  %o = inter.add %s, %qb : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Constants are not: 1 + 1e-15 is 1, and 1 - p may be 0.
// CHECK-LABEL: func.func @guarded
// CHECK: %d = inter.sub %one, %p
// CHECK-NEXT: %o = inter.add %d, %eps
func.func @guarded(%N : !inter.set<N>, %p : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %eps = inter.const 1.0e-15 : !inter.rows<unit, f32>
  %d = inter.sub %one, %p : !inter.rows<N, f32>
  %o = inter.add %d, %eps : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}

// What is subtracted is subtracted from the matrix.
// CHECK-LABEL: func.func @difference
// CHECK-NEXT: %0 = inter.sub %W1, %W2
// CHECK-NEXT: inter.contract "k,kf->f" %x, %0
func.func @difference(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %W1 : !inter.rows<unit, 4x4xf32>, %W2 : !inter.rows<unit, 4x4xf32>) -> !inter.rows<N, 4xf32> {
  %p = inter.contract "k,kf->f" %x, %W1 : !inter.rows<N, 4xf32>
  %q = inter.contract "k,kf->f" %x, %W2 : !inter.rows<N, 4xf32>
  %o = inter.sub %p, %q : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Not products of two values, one that is needed by itself, or matrices of other letters.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: inter.contract
func.func @others(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<N, 4xf32>, %W1 : !inter.rows<unit, 4x4xf32>, %W2 : !inter.rows<unit, 4x4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %p = inter.contract "k,kf->f" %x, %W1 : !inter.rows<N, 4xf32>
  %q = inter.contract "k,kf->f" %y, %W2 : !inter.rows<N, 4xf32>
  %r = inter.contract "k,kf->f" %x, %W2 : !inter.rows<N, 4xf32>
  %t = inter.contract "k,fk->f" %x, %W2 : !inter.rows<N, 4xf32>
  %a = inter.add %p, %q : !inter.rows<N, 4xf32>
  %b = inter.add %a, %r : !inter.rows<N, 4xf32>
  %o = inter.add %b, %t : !inter.rows<N, 4xf32>
  func.return %o, %r : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// What has a factor in common is added up first, and the same of inner products, on either side.
// CHECK-LABEL: func.func @factors
// CHECK-NEXT: %0 = inter.sub %a, %b : !inter.rows<N, 4x2xf32>
// CHECK-NEXT: %1 = inter.contract "ab,ab->a" %0, %g : !inter.rows<N, 4xf32>
// CHECK-NEXT: %o = inter.mul %f, %1 : !inter.rows<N, 4xf32>
func.func @factors(%N : !inter.set<N>, %f : !inter.rows<N, 4xf32>, %g : !inter.rows<N, 4x2xf32>, %a : !inter.rows<N, 4x2xf32>, %b : !inter.rows<N, 4x2xf32>) -> !inter.rows<N, 4xf32> {
  %p = inter.contract "ab,ab->a" %a, %g : !inter.rows<N, 4xf32>
  %q = inter.contract "xy,xy->x" %g, %b : !inter.rows<N, 4xf32>
  %fp = inter.mul %f, %p : !inter.rows<N, 4xf32>
  %fq = inter.mul %q, %f : !inter.rows<N, 4xf32>
  %o = inter.sub %fp, %fq : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Not where the other values have other shapes, or a product is needed by itself.
// CHECK-LABEL: func.func @other_factors
// CHECK-COUNT-4: inter.mul
func.func @other_factors(%N : !inter.set<N>, %f : !inter.rows<N, 4xf32>, %a : !inter.rows<N, 4xf32>, %b : !inter.rows<N, 1xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %p = inter.mul %f, %a : !inter.rows<N, 4xf32>
  %q = inter.mul %f, %b : !inter.rows<N, 4xf32>
  %o = inter.add %p, %q : !inter.rows<N, 4xf32>
  %r = inter.mul %a, %a : !inter.rows<N, 4xf32>
  %s = inter.mul %a, %f : !inter.rows<N, 4xf32>
  %t = inter.add %r, %s : !inter.rows<N, 4xf32>
  func.return %o, %r, %t : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}
