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
