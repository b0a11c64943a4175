// RUN: gnn-opt %s -p cut-stages --verify-diagnostics | filecheck %s

// CHECK: cut-stages: a nest has no schedule: run `schedule` before
func.func @forward() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
  }
  func.return
}
