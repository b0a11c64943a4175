// RUN: gnn-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: inter.needs_gard is no attribute of an argument of @misspelt: is inter.needs_grad meant?
func.func @misspelt(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32> {inter.needs_gard}) {
  func.return
}

// -----

// CHECK: inter.cotangent is no attribute of a result of @another_place: there are inter.detached, inter.grad, inter.name, inter.saved, inter.update
func.func @another_place(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32>) -> (!inter.rows<N, 3xf32> {inter.cotangent}) {
  func.return %x : !inter.rows<N, 3xf32>
}

// -----

// CHECK: inter.name of an argument of @another_type cannot hold 3 : i64
func.func @another_type(%N : !inter.set<N> {inter.name = 3 : i64}) {
  func.return
}

// -----

// CHECK: inter.name of an argument of @a_dictionary cannot hold {a = "N"}
func.func @a_dictionary(%N : !inter.set<N> {inter.name = {a = "N"}}) {
  func.return
}

// -----

// CHECK: intra.updates of a function (@another_entry) cannot hold unit
func.func @another_entry() attributes {intra.phase, intra.updates = {new_w}} {
  func.return
}

// -----

// CHECK: inter.prepar is no attribute of an op (inter.neg): is inter.prepare meant?
func.func @of_an_op(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32>) -> !inter.rows<N, 3xf32> {
  %y = inter.neg %x {inter.prepar} : !inter.rows<N, 3xf32>
  func.return %y : !inter.rows<N, 3xf32>
}

// -----

// What others hang on is theirs.
// CHECK: @foreign
// CHECK-SAME: other.mark
func.func @foreign(%N : !inter.set<N> {other.mark}) {
  func.return
}

// -----

// CHECK: inter.global_count of an argument of @a_list cannot hold ["g", 1 : i64]
func.func @a_list(%n : !inter.rows<unit, i64> {inter.global_count = ["g", 1 : i64]}) {
  func.return
}
