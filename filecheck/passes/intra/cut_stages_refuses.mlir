// RUN: gnn-opt %s -p cut-stages --verify-diagnostics | filecheck %s
// RUN: gnn-opt %s -p schedule,cut-stages,fuse-traversals --verify-diagnostics | filecheck %s --check-prefix=CUT

// CHECK: cut-stages: a nest has no schedule: run `schedule` before
// CUT: fuse-traversals: a nest of @forward is cut: this comes before `cut-stages`
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    intra.store %a, %y[%i]
  }
  func.return
}
