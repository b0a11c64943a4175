// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// The gradients of three slices of one row: no zero is added.
// CHECK-LABEL: func.func @slices
// CHECK-NEXT: %[[Y:.*]] = inter.concat %k, %q, %v {dim = 0} : !inter.rows<N, 6xf32>
// CHECK-NEXT: func.return %[[Y]]
func.func @slices(%N : !inter.set<N>, %k : !inter.rows<N, 2xf32>, %q : !inter.rows<N, 2xf32>, %v : !inter.rows<N, 2xf32>) -> !inter.rows<N, 6xf32> {
  %two = inter.const 0.0 : !inter.rows<unit, 2xf32>
  %four = inter.const 0.0 : !inter.rows<unit, 4xf32>
  %a = inter.concat %four, %v {dim = 0} : !inter.rows<N, 6xf32>
  %b = inter.concat %two, %q, %two {dim = 0} : !inter.rows<N, 6xf32>
  %c = inter.concat %k, %four {dim = 0} : !inter.rows<N, 6xf32>
  %ab = inter.add %a, %b : !inter.rows<N, 6xf32>
  %y = inter.add %ab, %c : !inter.rows<N, 6xf32>
  func.return %y : !inter.rows<N, 6xf32>
}

// -----

// Parts at one place are added, a place that nobody fills holds zeros.
// CHECK-LABEL: func.func @same_place
// CHECK: %[[S:.*]] = inter.add %a, %b : !inter.rows<N, 2xf32>
// CHECK-NEXT: %[[Z:.*]] = inter.const 0.0 : !inter.rows<unit, 3xf32>
// CHECK-NEXT: %[[Y:.*]] = inter.concat %[[S]], %[[Z]] {dim = 0} : !inter.rows<N, 5xf32>
func.func @same_place(%N : !inter.set<N>, %a : !inter.rows<N, 2xf32>, %b : !inter.rows<N, 2xf32>) -> !inter.rows<N, 5xf32> {
  %zero = inter.const 0.0 : !inter.rows<unit, 3xf32>
  %x = inter.concat %a, %zero {dim = 0} : !inter.rows<N, 5xf32>
  %y = inter.concat %b, %zero {dim = 0} : !inter.rows<N, 5xf32>
  %s = inter.add %x, %y : !inter.rows<N, 5xf32>
  func.return %s : !inter.rows<N, 5xf32>
}

// -----

// Parts that overlap are added as they are.
// CHECK-LABEL: func.func @overlap
// CHECK: inter.concat
// CHECK: inter.concat
// CHECK: inter.add {{.*}} : !inter.rows<N, 5xf32>
func.func @overlap(%N : !inter.set<N>, %a : !inter.rows<N, 3xf32>, %b : !inter.rows<N, 3xf32>) -> !inter.rows<N, 5xf32> {
  %zero = inter.const 0.0 : !inter.rows<unit, 2xf32>
  %x = inter.concat %a, %zero {dim = 0} : !inter.rows<N, 5xf32>
  %y = inter.concat %zero, %b {dim = 0} : !inter.rows<N, 5xf32>
  %s = inter.add %x, %y : !inter.rows<N, 5xf32>
  func.return %s : !inter.rows<N, 5xf32>
}
