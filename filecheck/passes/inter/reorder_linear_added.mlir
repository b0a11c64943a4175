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
