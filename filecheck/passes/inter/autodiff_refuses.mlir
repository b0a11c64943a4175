// RUN: gnn-opt %s -p autodiff --verify-diagnostics --split-input-file | filecheck %s

// CHECK: autodiff: @none: no argument has inter.needs_grad: mark those whose gradient is wanted
func.func @none(%N : !inter.set<N>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  func.return %x : !inter.rows<N, f32>
}

// -----

// CHECK: autodiff: @integers: argument i is !inter.rows<N, i64>: only rows of floats have gradients, drop its inter.needs_grad
func.func @integers(%N : !inter.set<N>, %i : !inter.rows<N, i64> {inter.needs_grad}) -> !inter.rows<N, i64> {
  func.return %i : !inter.rows<N, i64>
}

// -----

// CHECK: autodiff: @twice has cotangents already: run autodiff once
func.func @twice(%x : !inter.rows<unit, f32> {inter.needs_grad}, %d : !inter.rows<unit, f32> {inter.cotangent}) -> !inter.rows<unit, f32> {
  func.return %x : !inter.rows<unit, f32>
}
