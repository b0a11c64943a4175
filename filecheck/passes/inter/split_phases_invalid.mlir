// RUN: gnn-opt %s -p split-phases --verify-diagnostics --split-input-file | filecheck %s

// CHECK: @names: two arguments or results are named 'x': give each its own inter.name
func.func @names(%N : !inter.set<N>, %x : !inter.rows<N, f32>) -> (!inter.rows<N, f32> {inter.name = "x"}) {
  %y = inter.neg %x : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}

// -----

// CHECK: @late: a result that is no gradient depends on a cotangent: mark it inter.grad
func.func @late(%N : !inter.set<N>, %x : !inter.rows<N, f32>, %d : !inter.rows<N, f32> {inter.cotangent}) -> !inter.rows<N, f32> {
  %y = inter.mul %x, %d : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}

// -----

// CHECK: the module has 2 functions, it must have exactly one
func.func @one(%N : !inter.set<N>) {
  func.return
}
func.func @two(%N : !inter.set<N>) {
  func.return
}
