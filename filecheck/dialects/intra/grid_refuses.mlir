// RUN: gnn-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: a block has 32, 64, .. 1024 threads, not 48
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 48, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: a block has 32, 64, .. 1024 threads, not 2048
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 2048, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: a row is computed by 1, 2, 4, .. 32 lanes or by all 64 threads, not by 3
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 3, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: a row is computed by 1, 2, 4, .. 32 lanes or by all 128 threads, not by 64
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 128, lanes = 64, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: threads of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 0, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: lanes of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 0, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: rows of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 0, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: grain of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 0, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: chunks of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 0, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: piece of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 0, edges = 4, resident = 2>}
  func.return
}

// -----

// CHECK: edges of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 0, resident = 2>}
  func.return
}

// -----

// CHECK: resident of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 0>}
  func.return
}

// -----

// Every number is written down, in this order.
// CHECK: lanes
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.grid<threads = 64, rows = 16, grain = 1, chunks = 1, row_cost = 4, piece = 8, edges = 4, resident = 2>}
  func.return
}
