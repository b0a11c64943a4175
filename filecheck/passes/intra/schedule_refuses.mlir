// RUN: gnn-opt %s -p "schedule{target=abacus}" --verify-diagnostics | filecheck %s
// RUN: gnn-opt %s -p "schedule{vector-bytes=48}" --verify-diagnostics | filecheck %s --check-prefix=WIDTH
// RUN: gnn-opt %s -p "schedule{grain=0}" --verify-diagnostics | filecheck %s --check-prefix=GRAIN

// CHECK: schedule: there is no target 'abacus': the targets are openmp, cuda
// WIDTH: schedule: vector-bytes is 16, 32 or 64, not 48
// GRAIN: schedule: grain is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  func.return
}
