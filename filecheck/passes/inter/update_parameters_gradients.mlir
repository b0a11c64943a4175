// RUN: gnn-opt %s -p update-parameters,verify-sets --split-input-file | filecheck %s

// Gradients are clipped before any is used: each number first, then all by their norm as one
// vector. One of them is of rows of a set.
// CHECK-LABEL: func.func @clip
// CHECK: %[[D:.*]] = inter.const 1.0 : !inter.rows<unit, f32>
// CHECK: %[[LIMIT:.*]] = inter.slice %c {dim = 0, lo = 0, hi = 1}
// CHECK: inter.neg
// CHECK: inter.maximum %dw,
// CHECK: %[[W:.*]] = inter.minimum
// CHECK: inter.maximum %dt,
// CHECK: %[[T:.*]] = inter.minimum
// CHECK: inter.slice %c {dim = 0, lo = 1, hi = 2}
// CHECK: %[[WW:.*]] = inter.mul %[[W]], %[[W]]
// CHECK: %[[TT:.*]] = inter.mul %[[T]], %[[T]]
// CHECK: %[[SW:.*]] = inter.row_reduce sum %[[WW]] [0] : !inter.rows<unit, f32>
// CHECK: %[[WIDE:.*]] = inter.cast %[[SW]] : !inter.rows<unit, f64>
// CHECK: %[[ST:.*]] = inter.reduce sum %[[TT]] over %N along () : !inter.rows<unit, f64>
// CHECK: %[[SUM:.*]] = inter.add %[[WIDE]], %[[ST]]
// CHECK: %[[NORM:.*]] = inter.sqrt %[[SUM]]
// CHECK: %[[EPS:.*]] = inter.const 1.0e-06
// CHECK: %[[BELOW:.*]] = inter.add %[[NORM]], %[[EPS]]
// CHECK: %[[RATIO:.*]] = inter.div %{{.*}}, %[[BELOW]]
// CHECK: %[[FACTOR:.*]] = inter.minimum %[[RATIO]], %
// CHECK: inter.cast %[[FACTOR]] : !inter.rows<unit, f32>
// CHECK: inter.mul %[[W]], %
// CHECK: inter.mul %[[T]], %[[FACTOR]] : !inter.rows<N, f64>
func.func @clip(%N : !inter.set<N>,
    %w : !inter.rows<unit, 2xf32> {inter.needs_grad, inter.optimizer = "sgd"},
    %wn : !inter.rows<unit, 3xf32> {inter.state_of = "w"},
    %t : !inter.rows<N, f64> {inter.needs_grad, inter.optimizer = "sgd"},
    %tn : !inter.rows<unit, 3xf64> {inter.state_of = "t"},
    %c : !inter.rows<unit, 2xf64> {inter.clip = ["value", "norm-2"]},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.grad = "w"}, !inter.rows<N, f64> {inter.grad = "t"}) {
  %l = inter.row_reduce sum %w [0] : !inter.rows<unit, f32>
  %d = inter.reshape %d_l : !inter.rows<unit, 1xf32>
  %dw = inter.broadcast %d : !inter.rows<unit, 2xf32>
  %dt = inter.neg %t : !inter.rows<N, f64>
  func.return %l, %dw, %dt : !inter.rows<unit, f32>, !inter.rows<unit, 2xf32>, !inter.rows<N, f64>
}

// -----

// The largest number of all.
// CHECK-LABEL: func.func @largest
// CHECK: %[[ABS:.*]] = inter.abs %dw
// CHECK: inter.row_reduce max %[[ABS]] [0] : !inter.rows<unit, f32>
// CHECK-NOT: inter.sqrt
func.func @largest(
    %w : !inter.rows<unit, 2xf32> {inter.needs_grad, inter.optimizer = "sgd"},
    %wn : !inter.rows<unit, 3xf32> {inter.state_of = "w"},
    %c : !inter.rows<unit, 1xf32> {inter.clip = ["norm-inf"]},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.grad = "w"}) {
  %l = inter.row_reduce sum %w [0] : !inter.rows<unit, f32>
  %d = inter.reshape %d_l : !inter.rows<unit, 1xf32>
  %dw = inter.broadcast %d : !inter.rows<unit, 2xf32>
  func.return %l, %dw : !inter.rows<unit, f32>, !inter.rows<unit, 2xf32>
}

// -----

// Without a rule the gradient is added to the sum of earlier ones, and the parameter stays.
// CHECK-LABEL: func.func @kept
// CHECK-SAME: -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.name = "new_s", inter.update = "s"})
// CHECK: %[[NEW:.*]] = inter.add %s, %dw
// CHECK: func.return %l, %[[NEW]]
func.func @kept(
    %w : !inter.rows<unit, 2xf32> {inter.needs_grad},
    %s : !inter.rows<unit, 2xf32> {inter.sum_of = "w"},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.grad = "w"}) {
  %l = inter.row_reduce sum %w [0] : !inter.rows<unit, f32>
  %d = inter.reshape %d_l : !inter.rows<unit, 1xf32>
  %dw = inter.broadcast %d : !inter.rows<unit, 2xf32>
  func.return %l, %dw : !inter.rows<unit, f32>, !inter.rows<unit, 2xf32>
}

// -----

// With a rule the sum is what the step takes.
// CHECK-LABEL: func.func @taken
// CHECK-SAME: -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.name = "new_w", inter.update = "w"})
// CHECK: %[[G:.*]] = inter.add %s, %dw
// CHECK: inter.mul %[[G]], %
func.func @taken(
    %w : !inter.rows<unit, 2xf32> {inter.needs_grad, inter.optimizer = "sgd"},
    %n : !inter.rows<unit, 3xf32> {inter.state_of = "w"},
    %s : !inter.rows<unit, 2xf32> {inter.sum_of = "w"},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.grad = "w"}) {
  %l = inter.row_reduce sum %w [0] : !inter.rows<unit, f32>
  %d = inter.reshape %d_l : !inter.rows<unit, 1xf32>
  %dw = inter.broadcast %d : !inter.rows<unit, 2xf32>
  func.return %l, %dw : !inter.rows<unit, f32>, !inter.rows<unit, 2xf32>
}
