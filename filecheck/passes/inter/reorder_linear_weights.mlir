// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// Weights of relations as sums of bases: a product of rows with one matrix, not a row of its own.
// CHECK-LABEL: func.func @bases
// CHECK: %[[C:.*]] = inter.as_rows %R, %comp : !inter.rows<R, 3xf32>
// CHECK-NEXT: %[[Y:.*]] = inter.contract "b,bz->z" %[[C]], %bases : !inter.rows<R, 20xf32>
// CHECK-NEXT: inter.reshape %[[Y]] : !inter.rows<R, 4x5xf32>
func.func @bases(%R : !inter.set<R>, %comp : !inter.rows<unit, 6x3xf32>, %bases : !inter.rows<unit, 3x20xf32>) -> !inter.rows<R, 4x5xf32> {
  %w = inter.contract "rb,bz->rz" %comp, %bases : !inter.rows<unit, 6x20xf32>
  %m = inter.reshape %w : !inter.rows<unit, 6x4x5xf32>
  %r = inter.as_rows %R, %m : !inter.rows<R, 4x5xf32>
  func.return %r : !inter.rows<R, 4x5xf32>
}

// -----

// Rows of relations and nodes in one are no rows of the product.
// CHECK-LABEL: func.func @flattened
// CHECK: inter.contract "rb,bz->rz" %comp, %bases : !inter.rows<unit, 6x20xf32>
func.func @flattened(%R : !inter.set<R>, %comp : !inter.rows<unit, 6x3xf32>, %bases : !inter.rows<unit, 3x20xf32>) -> !inter.rows<R, 5xf32> {
  %w = inter.contract "rb,bz->rz" %comp, %bases : !inter.rows<unit, 6x20xf32>
  %m = inter.reshape %w : !inter.rows<unit, 24x5xf32>
  %r = inter.as_rows %R, %m : !inter.rows<R, 5xf32>
  func.return %r : !inter.rows<R, 5xf32>
}

// -----

// Both operands have a matrix for each relation: nothing is shared by the rows.
// CHECK-LABEL: func.func @batched
// CHECK: inter.contract "rb,rbz->rz" %comp, %bases : !inter.rows<unit, 6x20xf32>
func.func @batched(%R : !inter.set<R>, %comp : !inter.rows<unit, 6x3xf32>, %bases : !inter.rows<unit, 6x3x20xf32>) -> !inter.rows<R, 20xf32> {
  %w = inter.contract "rb,rbz->rz" %comp, %bases : !inter.rows<unit, 6x20xf32>
  %r = inter.as_rows %R, %w : !inter.rows<R, 20xf32>
  func.return %r : !inter.rows<R, 20xf32>
}
