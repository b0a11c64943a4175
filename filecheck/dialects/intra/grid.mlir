// RUN: gnn-opt %s --split-input-file | filecheck %s
// RUN: GNN_ROUNDTRIP

// How a nest runs on the blocks of a GPU: numbers by name, a row's work may be 0.
// CHECK: } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// A row is computed by a whole block, of any number of warps.
// CHECK: } {schedule = #intra.grid<threads = 96, lanes = 96, rows = 1, grain = 1, chunks = 1, row_cost = 0, piece = 1, edges = 1, resident = 1>}
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 96, lanes = 96, rows = 1, grain = 1, chunks = 1, row_cost = 0, piece = 1, edges = 1, resident = 1>}
  func.return
}
