// RUN: gnn-opt %s -p drop-stops,verify-sets | filecheck %s

// Stops go, also one behind another, and what is returned is the value.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT: %z = inter.contract "k,kf->f" %x, %w : !inter.rows<N, 2xf32>
// CHECK-NEXT: func.return %z
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32>, %w : !inter.rows<unit, 3x2xf32>) -> !inter.rows<N, 2xf32> {
  %s = inter.stop %x : !inter.rows<N, 3xf32>
  %t = inter.stop %s : !inter.rows<N, 3xf32>
  %z = inter.contract "k,kf->f" %t, %w : !inter.rows<N, 2xf32>
  %y = inter.stop %z : !inter.rows<N, 2xf32>
  func.return %y : !inter.rows<N, 2xf32>
}
