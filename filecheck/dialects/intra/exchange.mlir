// RUN: gnn-opt %s | gnn-opt | filecheck %s
// RUN: gnn-opt %s --print-op-generic | gnn-opt | filecheck %s

// CHECK-LABEL: func.func @forward
func.func @forward() attributes {intra.phase} {
  %from = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?x3xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?x3xf32>
  %back = intra.alloc {domain = #intra.domain<R>} : memref<?x3xf32>
  %other = intra.alloc {domain = #intra.domain<H>} : memref<?x3xf32>
  %a = intra.output {buffer = "a"} : memref<?x3xf32>
  %b = intra.output {buffer = "b"} : memref<?xi64>
  // CHECK: intra.move_start %from, %to {plan = "halo"}
  intra.move_start %from, %to {plan = "halo"}
  // CHECK-NEXT: intra.move_start %from, %other {plan = "other"}
  intra.move_start %from, %other {plan = "other"}
  // CHECK-NEXT: intra.move_wait %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  // CHECK-NEXT: intra.move_wait %other {plan = "other"}
  intra.move_wait %other {plan = "other"}
  // A plan is free again after the wait.
  // CHECK-NEXT: intra.move_start %to, %back {plan = "halo"}
  intra.move_start %to, %back {plan = "halo"}
  // CHECK-NEXT: intra.move_wait %back {plan = "halo"}
  intra.move_wait %back {plan = "halo"}
  // CHECK-NEXT: intra.all_reduce %a, %b {kind = "max"}
  intra.all_reduce %a, %b {kind = "max"}
  func.return
}
