// RUN: gnn-opt %s -p update-parameters,verify-sets --split-input-file | filecheck %s

// A gradient is used up: the new parameter and what is kept for it are updates of arguments. The
// loss's cotangent is 1, and no argument.
// CHECK-LABEL: func.func @momentum
// CHECK-NOT: inter.cotangent
// CHECK-SAME: -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.name = "new_w", inter.update = "w"}, !inter.rows<unit, 2xf32> {inter.name = "new_v", inter.update = "v"})
// CHECK-NEXT: %[[ONE:.*]] = inter.const 1.0 : !inter.rows<unit, f32>
// CHECK: %dw = inter.broadcast %[[D:.*]] : !inter.rows<unit, 2xf32>
// CHECK: inter.slice %n {dim = 0, lo = 0, hi = 1}
// CHECK: %[[OWN:.*]] = inter.mul %dw, %
// CHECK: %[[PENALTY:.*]] = inter.mul %w, %
// CHECK: %[[G:.*]] = inter.add %[[OWN]], %[[PENALTY]]
// CHECK: %[[OLD:.*]] = inter.mul %v, %
// CHECK: %[[NEW:.*]] = inter.mul %[[G]], %
// CHECK: %[[V:.*]] = inter.add %[[OLD]], %[[NEW]]
// CHECK: %[[STEP:.*]] = inter.mul %[[V]], %
// CHECK: %[[W:.*]] = inter.sub %w, %[[STEP]]
// CHECK: func.return %l, %[[W]], %[[V]]
func.func @momentum(
    %w : !inter.rows<unit, 2xf32> {inter.needs_grad, inter.optimizer = "momentum"},
    %v : !inter.rows<unit, 2xf32> {inter.state_of = "w"},
    %n : !inter.rows<unit, 5xf32> {inter.state_of = "w"},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.grad = "w"}) {
  %l = inter.row_reduce sum %w [0] : !inter.rows<unit, f32>
  %d = inter.reshape %d_l : !inter.rows<unit, 1xf32>
  %dw = inter.broadcast %d : !inter.rows<unit, 2xf32>
  func.return %l, %dw : !inter.rows<unit, f32>, !inter.rows<unit, 2xf32>
}

// -----

// Parameters of one function may follow different rules. Where none names one, gradients stay.
// CHECK-LABEL: func.func @two
// CHECK: func.return %l, %{{.*}}, %{{.*}} : !inter.rows<unit, f32>, !inter.rows<unit, f32>, !inter.rows<unit, f32>
func.func @two(
    %a : !inter.rows<unit, f32> {inter.needs_grad, inter.optimizer = "sgd"},
    %an : !inter.rows<unit, 3xf32> {inter.state_of = "a"},
    %b : !inter.rows<unit, f32> {inter.needs_grad, inter.optimizer = "sgd"},
    %bn : !inter.rows<unit, 3xf32> {inter.state_of = "b"},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.grad = "a"}, !inter.rows<unit, f32> {inter.grad = "b"}) {
  %l = inter.mul %a, %b : !inter.rows<unit, f32>
  %da = inter.mul %d_l, %b : !inter.rows<unit, f32>
  %db = inter.mul %d_l, %a : !inter.rows<unit, f32>
  func.return %l, %da, %db : !inter.rows<unit, f32>, !inter.rows<unit, f32>, !inter.rows<unit, f32>
}

// -----

// CHECK-LABEL: func.func @none
// CHECK-SAME: inter.cotangent
// CHECK-SAME: inter.grad
func.func @none(%a : !inter.rows<unit, f32> {inter.needs_grad}, %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.grad = "a"}) {
  %l = inter.neg %a : !inter.rows<unit, f32>
  %da = inter.neg %d_l : !inter.rows<unit, f32>
  func.return %l, %da : !inter.rows<unit, f32>, !inter.rows<unit, f32>
}
