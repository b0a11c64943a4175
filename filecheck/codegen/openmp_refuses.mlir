// RUN: gnn-opt %s -t openmp --verify-diagnostics --split-input-file | filecheck %s

// CHECK: a nest has no schedule: run `schedule` before printing
func.func @forward() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  }
  func.return
}

// -----

// CHECK: nothing to print: no function has intra ops (run lower-to-intra)
func.func @forward(%N : !inter.set<N>) {
  func.return
}

// -----

// CHECK: the schedule of a nest needs `grain = n : i64`, n at least 1, here is None: run `schedule`
func.func @forward() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  } {schedule = {vector_bytes = 32 : i64, block = 48 : i64}}
  func.return
}

// -----

// CHECK: vectors have 16, 32 or 64 bytes, not 33
func.func @forward() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  } {schedule = {vector_bytes = 33 : i64}}
  func.return
}
