// RUN: gnn-opt %s -t cuda --verify-diagnostics | filecheck %s --check-prefix CUDA
// RUN: gnn-opt %s -t reference --verify-diagnostics | filecheck %s --check-prefix REFERENCE

// CUDA: intra.all_reduce in @forward: the target cuda has no such step
// REFERENCE: intra.all_reduce in @forward: the target reference has no such step
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf64>
  intra.all_reduce %y {kind = "sum"}
  func.return
}
