// RUN: gnn-opt %s -p autodiff,cse,dce,verify-sets | filecheck %s

// The angle is flat at the origin.
// CHECK-LABEL: func.func @angle
func.func @angle(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32> {inter.needs_grad}, %y : !inter.rows<N, 3xf32>) -> !inter.rows<N, 3xf32> {
  // CHECK: %z = inter.atan2 %y, %x : !inter.rows<N, 3xf32>
  // CHECK: [[SQUARE:%.*]] = inter.add
  // CHECK: inter.div %{{.*}}, [[SQUARE]]
  // CHECK: inter.eq [[SQUARE]]
  // CHECK: inter.where
  %z = inter.atan2 %y, %x : !inter.rows<N, 3xf32>
  func.return %z : !inter.rows<N, 3xf32>
}

// CHECK-LABEL: func.func @log2
func.func @log2(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32> {inter.needs_grad}) -> !inter.rows<N, 3xf32> {
  // CHECK: inter.const 0.693147
  // CHECK: inter.mul %x
  // CHECK: inter.div %d_y
  %y = inter.log2 %x : !inter.rows<N, 3xf32>
  func.return %y : !inter.rows<N, 3xf32>
}

// erfinv reads its result.
// CHECK-LABEL: func.func @erfinv
func.func @erfinv(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32> {inter.needs_grad}) -> !inter.rows<N, 3xf32> {
  // CHECK-NEXT: %y = inter.erfinv %x
  // CHECK-NEXT: [[SQUARE:%.*]] = inter.mul %y, %y
  // CHECK-NEXT: inter.exp [[SQUARE]]
  %y = inter.erfinv %x : !inter.rows<N, 3xf32>
  func.return %y : !inter.rows<N, 3xf32>
}

// The first end has a slope of its own, (1 - w) d: d - w d is NaN where d is infinite.
// CHECK-LABEL: func.func @lerp
func.func @lerp(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32> {inter.needs_grad}, %y : !inter.rows<N, 3xf32>, %w : !inter.rows<N, 3xf32>) -> !inter.rows<N, 3xf32> {
  // CHECK: %z = inter.lerp %x, %y, %w : !inter.rows<N, 3xf32>
  // CHECK: [[REST:%.*]] = inter.sub %{{.*}}, %w
  // CHECK-NEXT: inter.mul %d_z, [[REST]]
  %z = inter.lerp %x, %y, %w : !inter.rows<N, 3xf32>
  func.return %z : !inter.rows<N, 3xf32>
}
