// RUN: gnn-opt %s -p global-rows --verify-diagnostics --split-input-file | filecheck %s

// CHECK: inter.iota becomes the map to, which leads to rows of N at hand and not to global ones: give the set as an argument
func.func @a_map(%N : !inter.set<N>, %i : !inter.rows<N, i64> {inter.global_rows}) {
  %n = inter.iota %N : !inter.rows<N, i64>
  %zero = inter.const 0 : !inter.rows<unit, i64>
  %m = inter.maximum %n, %zero : !inter.rows<N, i64>
  %A = inter.attach %N (to = %m) : !inter.set<A, to: N, parent: N mono onto>
  func.return
}

// -----

// CHECK: an argument with inter.global_rows is !inter.rows<N, i64>, this one is !inter.rows<N, i32>
func.func @narrow(%N : !inter.set<N>, %i : !inter.rows<N, i32> {inter.global_rows}) {
  func.return
}

// -----

// CHECK: an argument with inter.global_rows is !inter.rows<S, i64>, this one is !inter.set<N>
func.func @a_set(%N : !inter.set<N> {inter.global_rows}) {
  func.return
}

// -----

// CHECK: an argument with inter.global_count is !inter.rows<unit, i64>, this one is !inter.rows<N, i64>
func.func @another_domain(%N : !inter.set<N>, %i : !inter.rows<N, i64> {inter.global_count = ["N"]}) {
  func.return
}

// -----

// CHECK: inter.global_count: set N has no map 'src'; it has none
func.func @no_map(%N : !inter.set<N>, %i : !inter.rows<N, i64> {inter.global_count = ["N", "src"]}) {
  func.return
}

// -----

// CHECK: inter.global_count: set  is not born in this function
func.func @nothing(%i : !inter.rows<unit, i64> {inter.global_count = []}) {
  func.return
}
