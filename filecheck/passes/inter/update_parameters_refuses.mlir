// RUN: gnn-opt %s -p update-parameters --verify-diagnostics --split-input-file | filecheck %s

// CHECK: @rule: there is no rule 'lion', there are adam, amsgrad, sgd, momentum, nesterov, adagrad, rmsprop, rmsprop-momentum, rmsprop-centered, rmsprop-centered-momentum
func.func @rule(%w : !inter.rows<unit, f32> {inter.optimizer = "lion"}) {
  func.return
}

// -----

// CHECK: @state: momentum takes for w: momentum_buffer, its numbers; it has 1 arguments
func.func @state(%w : !inter.rows<unit, f32> {inter.optimizer = "momentum"}, %n : !inter.rows<unit, 5xf32> {inter.state_of = "w"}) {
  func.return
}

// -----

// CHECK: @shape: what is kept for w has not its type !inter.rows<unit, 2xf32>
func.func @shape(%w : !inter.rows<unit, 2xf32> {inter.optimizer = "momentum"}, %v : !inter.rows<unit, f32> {inter.state_of = "w"}, %n : !inter.rows<unit, 5xf32> {inter.state_of = "w"}) {
  func.return
}

// -----

// CHECK: @count: t counts the steps of w: it is one number, not !inter.rows<unit, 2xf32>
func.func @count(%w : !inter.rows<unit, 2xf32> {inter.optimizer = "adam"}, %t : !inter.rows<unit, 2xf32> {inter.state_of = "w"}, %m : !inter.rows<unit, 2xf32> {inter.state_of = "w"}, %v : !inter.rows<unit, 2xf32> {inter.state_of = "w"}, %n : !inter.rows<unit, 9xf32> {inter.state_of = "w"}) {
  func.return
}

// -----

// CHECK: @numbers: the numbers for w are !inter.rows<unit, 3xf64>, not !inter.rows<unit, 3xf32>
func.func @numbers(%w : !inter.rows<unit, f64> {inter.optimizer = "sgd"}, %n : !inter.rows<unit, 3xf32> {inter.state_of = "w"}) {
  func.return
}

// -----

// CHECK: @loss: a step of training has one differentiable result, the loss, of one number
func.func @loss(%N : !inter.set<N>, %w : !inter.rows<N, f32> {inter.optimizer = "sgd"}, %n : !inter.rows<unit, 3xf32> {inter.state_of = "w"}, %d : !inter.rows<N, f32> {inter.cotangent}) -> (!inter.rows<N, f32>, !inter.rows<N, f32> {inter.grad = "w"}) {
  func.return %w, %d : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// CHECK: @all: argument v has a gradient and no inter.optimizer: mark all or none
func.func @all(%w : !inter.rows<unit, f32> {inter.optimizer = "sgd"}, %n : !inter.rows<unit, 3xf32> {inter.state_of = "w"}, %v : !inter.rows<unit, f32>, %d : !inter.rows<unit, f32> {inter.cotangent}) -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.grad = "v"}) {
  func.return %v, %d : !inter.rows<unit, f32>, !inter.rows<unit, f32>
}

// -----

// CHECK: @gradient: argument w has no gradient: mark it inter.needs_grad
func.func @gradient(%w : !inter.rows<unit, f32> {inter.optimizer = "sgd"}, %n : !inter.rows<unit, 3xf32> {inter.state_of = "w"}, %d : !inter.rows<unit, f32> {inter.cotangent}) -> !inter.rows<unit, f32> {
  func.return %w : !inter.rows<unit, f32>
}

// -----

// CHECK: @kind: gradients cannot be clipped by 'sum': value, norm-2, norm-inf
func.func @kind(%c : !inter.rows<unit, 1xf32> {inter.clip = ["sum"]}) {
  func.return
}

// -----

// CHECK: @bounds: c is one row of 1 bounds, not !inter.rows<unit, 2xf32>
func.func @bounds(%c : !inter.rows<unit, 2xf32> {inter.clip = ["value"]}) {
  func.return
}

// -----

// CHECK: @sum: s holds no gradients of w: it is !inter.rows<unit, 2xf32>
func.func @sum(%w : !inter.rows<unit, f32>, %s : !inter.rows<unit, 2xf32> {inter.sum_of = "w"}) {
  func.return
}
