// RUN: gnn-opt %s -t reference --verify-diagnostics | filecheck %s

// CHECK: intra.all_reduce in @forward: the target reference has no such step
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf64>
  intra.all_reduce %y {kind = "sum"}
  func.return
}
