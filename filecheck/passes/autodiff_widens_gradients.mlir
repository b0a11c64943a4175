// RUN: gnn-opt %s -p autodiff,dce,verify-sets | filecheck %s

// A gradient has its argument's type, however coarse it is: one number for all rows, or zeros for an
// argument that nothing reads. Updates of arguments and results that are not floats have no cotangent.
// CHECK-LABEL: func.func @f
// CHECK-SAME: %d_o: !inter.rows<unit, f32> {inter.cotangent, inter.name = "d_o"})
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f32> {inter.needs_grad}, %y : !inter.rows<N, 2xf32> {inter.needs_grad}, %m : !inter.rows<unit, f32>)
    -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.update = "m"}, !inter.rows<unit, i1>) {
  %o = inter.reduce sum %x over %N along () : !inter.rows<unit, f32>
  %u = inter.add %m, %o : !inter.rows<unit, f32>
  // CHECK: %p = inter.gt
  %p = inter.gt %o, %m : !inter.rows<unit, i1>
  // CHECK-NEXT: %0 = inter.reshape %d_o : !inter.rows<N, f32>
  // CHECK-NEXT: %1 = inter.const 0.0 : !inter.rows<unit, 2xf32>
  // CHECK-NEXT: %2 = inter.reshape %1 : !inter.rows<N, 2xf32>
  // CHECK-NEXT: func.return %o, %u, %p, %0, %2
  func.return %o, %u, %p : !inter.rows<unit, f32>, !inter.rows<unit, f32>, !inter.rows<unit, i1>
}
