// RUN: gnn-opt %s -p update-parameters,verify-sets --split-input-file | filecheck %s

// Ranks have a batch each. What is summed is summed in the order of the rules' numbers, here first b,
// then a; before it is clipped and used. The loss is that of all, what is beside it that of the rank.
// CHECK-LABEL: func.func @two
// CHECK: %[[SUM:.*]] = inter.add %sa, %da
// CHECK: %[[DB:.*]] = inter.all_reduce sum %db
// CHECK-NEXT: %[[DA:.*]] = inter.all_reduce sum %[[SUM]]
// CHECK: inter.maximum %[[DB]]
// CHECK: %[[L:.*]] = inter.all_reduce sum %l
// CHECK-NOT: inter.all_reduce
// CHECK: func.return %[[L]], %right,
func.func @two(
    %a : !inter.rows<unit, f32> {inter.needs_grad, inter.optimizer = "sgd"},
    %sa : !inter.rows<unit, f32> {inter.sum_of = "a"},
    %b : !inter.rows<unit, f32> {inter.needs_grad, inter.optimizer = "sgd"},
    %bn : !inter.rows<unit, 3xf32> {inter.state_of = "b"},
    %an : !inter.rows<unit, 3xf32> {inter.state_of = "a"},
    %c : !inter.rows<unit, 1xf32> {inter.clip = ["value"]},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.detached},
        !inter.rows<unit, f32> {inter.grad = "a"}, !inter.rows<unit, f32> {inter.grad = "b"})
    attributes {inter.summed} {
  %l = inter.mul %a, %b : !inter.rows<unit, f32>
  %right = inter.neg %a : !inter.rows<unit, f32>
  %da = inter.mul %d_l, %b : !inter.rows<unit, f32>
  %db = inter.mul %d_l, %a : !inter.rows<unit, f32>
  func.return %l, %right, %da, %db : !inter.rows<unit, f32>, !inter.rows<unit, f32>, !inter.rows<unit, f32>, !inter.rows<unit, f32>
}

// -----

// Gradients that are kept for a later call are summed then.
// CHECK-LABEL: func.func @keeps
// CHECK: %[[SUM:.*]] = inter.add %s, %d
// CHECK: %[[L:.*]] = inter.all_reduce sum %l
// CHECK: func.return %[[L]], %[[SUM]]
func.func @keeps(
    %a : !inter.rows<unit, f32> {inter.needs_grad},
    %s : !inter.rows<unit, f32> {inter.sum_of = "a"},
    %d_l : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.grad = "a"})
    attributes {inter.summed} {
  %l = inter.neg %a : !inter.rows<unit, f32>
  %d = inter.neg %d_l : !inter.rows<unit, f32>
  func.return %l, %d : !inter.rows<unit, f32>, !inter.rows<unit, f32>
}
