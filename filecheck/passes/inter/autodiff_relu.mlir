// RUN: gnn-opt %s -p autodiff,cse,dce,verify-sets | filecheck %s

// relu and tanh read their results: the operand need not be kept.
// CHECK-LABEL: func.func @from_the_result
func.func @from_the_result(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32> {inter.needs_grad}) -> !inter.rows<N, 3xf32> {
  // CHECK-NEXT: %y = inter.relu %x
  // CHECK-NEXT: %z = inter.tanh %y
  // CHECK-NOT: %x
  // CHECK: inter.le %y, %{{.*}} : !inter.rows<N, 3xi1>
  // CHECK-NEXT: inter.where
  %y = inter.relu %x : !inter.rows<N, 3xf32>
  %z = inter.tanh %y : !inter.rows<N, 3xf32>
  func.return %z : !inter.rows<N, 3xf32>
}
