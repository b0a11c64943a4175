// RUN: gnn-opt %s -p "schedule-grid{target=abacus}" --verify-diagnostics | filecheck %s
// RUN: gnn-opt %s -p "schedule-grid{threads=48}" --verify-diagnostics | filecheck %s --check-prefix=THREADS
// RUN: gnn-opt %s -p "schedule-grid{threads=2048}" --verify-diagnostics | filecheck %s --check-prefix=MANY
// RUN: gnn-opt %s -p "schedule-grid{lanes=3}" --verify-diagnostics | filecheck %s --check-prefix=LANES
// RUN: gnn-opt %s -p "schedule-grid{lanes=64}" --verify-diagnostics | filecheck %s --check-prefix=WIDE
// RUN: gnn-opt %s -p "schedule-grid{rows=0}" --verify-diagnostics | filecheck %s --check-prefix=ROWS
// RUN: gnn-opt %s -p "schedule-grid{piece=0}" --verify-diagnostics | filecheck %s --check-prefix=PIECE
// RUN: gnn-opt %s -p "schedule,cut-stages,schedule-grid" --verify-diagnostics | filecheck %s --check-prefix=CUT

// CHECK: schedule-grid: there is no target 'abacus': the targets are openmp, cuda
// THREADS: schedule-grid: threads is 32, 64, .. 1024, not 48
// MANY: schedule-grid: threads is 32, 64, .. 1024, not 2048
// LANES: schedule-grid: lanes is 1, 2, 4, .. 32, or 0 for what rows need, not 3
// WIDE: schedule-grid: lanes is 1, 2, 4, .. 32, or 0 for what rows need, not 64
// ROWS: schedule-grid: rows is 1 or more, not 0
// PIECE: schedule-grid: piece is 1 or more, not 0
// CUT: schedule-grid: a nest of @f is cut: this comes before `cut-stages`
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    intra.store %a, %y[%i]
  }
  func.return
}
