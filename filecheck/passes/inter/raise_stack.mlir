// RUN: gnn-opt %s -p raise,canonicalize,verify-sets | filecheck %s

// Values that are stacked and summed over the new dimension are added.
// CHECK-LABEL: func.func @stack
// CHECK-NEXT: %0 = inter.add %a, %b : !inter.rows<N, 4xf32>
// CHECK-NEXT: %o = inter.add %0, %c : !inter.rows<N, 4xf32>
func.func @stack(%N : !inter.set<N>, %a : !inter.rows<N, 4xf32>, %b : !inter.rows<N, 4xf32>, %c : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  %0 = inter.reshape %a : !inter.rows<N, 1x4xf32>
  %1 = inter.reshape %b : !inter.rows<N, 1x4xf32>
  %2 = inter.reshape %c : !inter.rows<N, 1x4xf32>
  %s = inter.concat %0, %1, %2 {dim = 0} : !inter.rows<N, 3x4xf32>
  %o = inter.row_reduce sum %s [0] : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// Not the greatest of them, whose gradient goes to the first of equal ones, nor a sum over another
// dimension.
// CHECK-LABEL: func.func @others
// CHECK: inter.row_reduce max
// CHECK: inter.row_reduce sum
func.func @others(%N : !inter.set<N>, %a : !inter.rows<N, 1x4xf32>, %b : !inter.rows<N, 1x4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 2xf32>) {
  %s = inter.concat %a, %b {dim = 0} : !inter.rows<N, 2x4xf32>
  %o = inter.row_reduce max %s [0] : !inter.rows<N, 4xf32>
  %p = inter.row_reduce sum %s [1] : !inter.rows<N, 2xf32>
  func.return %o, %p : !inter.rows<N, 4xf32>, !inter.rows<N, 2xf32>
}
