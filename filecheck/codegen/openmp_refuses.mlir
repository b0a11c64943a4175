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

// CHECK: intra.store stands in no stage: a nest that is cut holds stages, products
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    intra.store %a, %y[%i]
  } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 1, chunks = 1, row_cost = 4, prefetch = 0, panel = 3>}
  func.return
}

// -----

// A row of 7 numbers is no whole number of vectors: the last one would leave the buffer.
// CHECK: a product reads rows that lie in no memory of the block: run `cut-stages`
func.func @forward() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x5x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x5xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<5xf32>
    %b = intra.load %y[%i] : vector<7xf32>
    intra.outer %a, %b, %s {spec = "k,f->kf"}
  } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 1, chunks = 1, row_cost = 4, prefetch = 0, panel = 3>}
  func.return
}
