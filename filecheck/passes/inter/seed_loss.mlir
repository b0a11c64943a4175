// RUN: gnn-opt %s -p seed-loss,verify-sets --split-input-file | filecheck %s
// RUN: gnn-opt %s -p seed-loss,seed-loss,plan-saves,split-phases --split-input-file | filecheck %s --check-prefix=PHASES

// The cotangent of one number scales the gradients at the end; what they are made from is computed
// for a cotangent of 1, and belongs to @forward.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: inter.seeded
// CHECK: %[[ONE:.*]] = inter.const 1.0 : !inter.rows<unit, f32>
// CHECK: inter.mul %[[ONE]], %x
// CHECK: %dW = inter.reduce sum
// CHECK: %[[D:.*]] = inter.reshape %d_l : !inter.rows<unit, 1xf32>
// CHECK: %[[G:.*]] = inter.mul %dW, %[[D]] : !inter.rows<unit, 4xf32>
// CHECK: func.return %l, %[[G]]
// PHASES: func.func @forward
// PHASES: %dW = inter.reduce sum
// PHASES: func.func @backward
// PHASES-NOT: inter.reduce
// PHASES: inter.mul
// PHASES: func.return
func.func @loss(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %W : !inter.rows<unit, 4xf32> {inter.needs_grad}, %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 4xf32> {inter.grad = "W"}) {
  %y = inter.contract "k,k->" %x, %W : !inter.rows<N, f32>
  %l = inter.reduce sum %y over %N along () : !inter.rows<unit, f32>
  %dx = inter.mul %d_l, %x : !inter.rows<N, 4xf32>
  %dW = inter.reduce sum %dx over %N along () : !inter.rows<unit, 4xf32>
  func.return %l, %dW : !inter.rows<unit, f32>, !inter.rows<unit, 4xf32>
}

// -----

// A second differentiable result may have any cotangent: nothing is seeded.
// CHECK-LABEL: func.func @two
// CHECK-NOT: inter.const
// CHECK: func.return
func.func @two(%N : !inter.set<N>, %x : !inter.rows<N, f32> {inter.needs_grad}, %d_l : !inter.rows<unit, f32> {inter.cotangent}, %d_y : !inter.rows<N, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<N, f32>, !inter.rows<N, f32> {inter.grad = "x"}) {
  %y = inter.mul %x, %x : !inter.rows<N, f32>
  %l = inter.reduce sum %y over %N along () : !inter.rows<unit, f32>
  %d = inter.add %d_y, %d_l : !inter.rows<N, f32>
  %dx1 = inter.mul %d, %x : !inter.rows<N, f32>
  %dx = inter.add %dx1, %dx1 : !inter.rows<N, f32>
  func.return %l, %y, %dx : !inter.rows<unit, f32>, !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// Nor is a result with several numbers.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: inter.const
// CHECK: func.return
func.func @wide(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32> {inter.needs_grad}, %d_l : !inter.rows<unit, 4xf32> {inter.cotangent})
    -> (!inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32> {inter.grad = "x"}) {
  %l = inter.reduce sum %x over %N along () : !inter.rows<unit, 4xf32>
  %dx = inter.mul %x, %d_l : !inter.rows<N, 4xf32>
  func.return %l, %dx : !inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// A loss in another type than a parameter's scales the gradient in the wider one.
// CHECK-LABEL: func.func @mixed
// CHECK: inter.const 1.0 : !inter.rows<unit, f64>
// CHECK: %dx = inter.cast
// CHECK: %[[W:.*]] = inter.cast %dx : !inter.rows<N, f64>
// CHECK: %[[S:.*]] = inter.mul %[[W]], %{{.*}} : !inter.rows<N, f64>
// CHECK: %[[G:.*]] = inter.cast %[[S]] : !inter.rows<N, f32>
// CHECK: func.return %l, %[[G]]
func.func @mixed(%N : !inter.set<N>, %x : !inter.rows<N, f32> {inter.needs_grad}, %d_l : !inter.rows<unit, f64> {inter.cotangent})
    -> (!inter.rows<unit, f64>, !inter.rows<N, f32> {inter.grad = "x"}) {
  %y = inter.cast %x : !inter.rows<N, f64>
  %l = inter.reduce sum %y over %N along () : !inter.rows<unit, f64>
  %o = inter.mul %y, %d_l : !inter.rows<N, f64>
  %dx = inter.cast %o : !inter.rows<N, f32>
  func.return %l, %dx : !inter.rows<unit, f64>, !inter.rows<N, f32>
}
