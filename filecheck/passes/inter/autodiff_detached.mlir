// RUN: gnn-opt %s -p autodiff,verify-sets | filecheck %s

// A result that nobody differentiates has no cotangent, and no argument is attached to it.
// CHECK-LABEL: func.func @detached
// CHECK-SAME: %d_l: !inter.rows<unit, f32> {inter.cotangent = "l", inter.name = "d_l"})
// CHECK-SAME: -> (!inter.rows<unit, 2xf32> {inter.detached}, !inter.rows<unit, f32>, !inter.rows<unit, 2xf32> {inter.name = "d_w", inter.grad = "w"})
// CHECK: func.return %h, %l, %{{.*}} :
func.func @detached(%w : !inter.rows<unit, 2xf32> {inter.needs_grad}, %u : !inter.rows<unit, 2xf32> {inter.needs_grad})
    -> (!inter.rows<unit, 2xf32> {inter.detached}, !inter.rows<unit, f32>) {
  %h = inter.mul %w, %u : !inter.rows<unit, 2xf32>
  %l = inter.row_reduce sum %w [0] : !inter.rows<unit, f32>
  func.return %h, %l : !inter.rows<unit, 2xf32>, !inter.rows<unit, f32>
}
