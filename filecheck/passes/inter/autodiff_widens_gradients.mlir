// RUN: gnn-opt %s -p autodiff,dce,verify-sets | filecheck %s

// A gradient has its argument's type, however coarse it is: one number for all rows, or zeros where
// it moves nothing. An argument that no result is made of has none. Updates of arguments and results that are not floats have no cotangent.
// CHECK-LABEL: func.func @f
// CHECK-SAME: %d_o: !inter.rows<unit, f32> {inter.cotangent = "o", inter.name = "d_o"})
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f32> {inter.needs_grad}, %y : !inter.rows<N, 2xf32> {inter.needs_grad}, %z : !inter.rows<N, f32> {inter.needs_grad}, %m : !inter.rows<unit, f32>)
    -> (!inter.rows<unit, f32>, !inter.rows<unit, f32> {inter.update = "m"}, !inter.rows<unit, i1>) {
  %sx = inter.reduce sum %x over %N along () : !inter.rows<unit, f32>
  %f = inter.floor %y : !inter.rows<N, 2xf32>
  %fs = inter.row_reduce sum %f [0] : !inter.rows<N, f32>
  %sy = inter.reduce sum %fs over %N along () : !inter.rows<unit, f32>
  %sz = inter.stop %z : !inter.rows<N, f32>
  %ss = inter.reduce sum %sz over %N along () : !inter.rows<unit, f32>
  %s = inter.add %sx, %sy : !inter.rows<unit, f32>
  %o = inter.add %s, %ss : !inter.rows<unit, f32>
  %u = inter.add %m, %o : !inter.rows<unit, f32>
  // CHECK: %p = inter.gt
  %p = inter.gt %o, %m : !inter.rows<unit, i1>
  // CHECK-NEXT: %0 = inter.reshape %d_o : !inter.rows<N, f32>
  // CHECK-NEXT: %1 = inter.const 0.0 : !inter.rows<unit, 2xf32>
  // CHECK-NEXT: %2 = inter.reshape %1 : !inter.rows<N, 2xf32>
  // CHECK-NEXT: func.return %o, %u, %p, %0, %2
  func.return %o, %u, %p : !inter.rows<unit, f32>, !inter.rows<unit, f32>, !inter.rows<unit, i1>
}
