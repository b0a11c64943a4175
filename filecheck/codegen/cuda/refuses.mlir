// RUN: gnn-opt %s -t cuda --verify-diagnostics --split-input-file | filecheck %s

// CHECK: a nest has no grid: run `schedule-grid` before printing
func.func @forward() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  }
  func.return
}

// -----

// The schedule of another target is no grid.
// CHECK: a nest has no grid: run `schedule-grid` before printing
func.func @forward() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 1, chunks = 1, row_cost = 4, prefetch = 0, panel = 3>}
  func.return
}

// -----

// CHECK: nothing to print: no function has intra ops (run lower-to-intra)
func.func @forward(%N : !inter.set<N>) {
  func.return
}

// -----

// CHECK: intra.store stands in no stage: a nest that is cut holds stages, products
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    intra.store %a, %y[%i]
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}
