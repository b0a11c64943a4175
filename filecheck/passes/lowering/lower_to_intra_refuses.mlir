// RUN: gnn-opt %s -p lower-to-intra --verify-diagnostics --split-input-file | filecheck %s

// CHECK: lower-to-intra needs the phases of split-phases: there is no @forward
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  func.return %x : !inter.rows<N, f32>
}

// -----

// CHECK: reduce last along () has no lowering
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, f32>, %y : !inter.rows<unit, f32>) -> !inter.rows<unit, f32> {
  %z = inter.reduce last %x over %N along () else %y : !inter.rows<unit, f32>
  func.return %z : !inter.rows<unit, f32>
}

// -----

// CHECK: inter.filter in @forward depends on float values of the call; sets are made in @prepare
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %m = inter.gt %x, %zero : !inter.rows<N, i1>
  %a = inter.filter %N, %m : !inter.set<a, parent: N mono>
  %y = inter.neg %x : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}

// -----

// CHECK: @structure is what this pass makes: the module is lowered already
func.func @structure() {
  func.return
}
func.func @forward() {
  func.return
}

// -----

// CHECK: two arguments of @forward are named "x"
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, f32>, %w : !inter.rows<unit, f32> {inter.name = "x"}) -> !inter.rows<N, f32> {
  %y = inter.mul %x, %w : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}
