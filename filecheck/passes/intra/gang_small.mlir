// RUN: gnn-opt %s -p "schedule-grid,gang-small" | filecheck %s

// A count of steps and a short parameter: the block of the longer row computes both. A nest over a
// set ends the gang, and one alone behind it has a launch of its own.
func.func @forward() attributes {intra.phase} {
  %steps = intra.input {buffer = "steps"} : memref<?xf32>
  %w = intra.input {buffer = "w"} : memref<?x512xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %next = intra.output {buffer = "next"} : memref<?xf32>
  %half = intra.output {buffer = "half"} : memref<?x512xf32>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %again = intra.output {buffer = "again"} : memref<?xf32>
  %one = intra.size : index
  %n = intra.size {domain = #intra.domain<N>} : index
  // CHECK: threads = 128, lanes = 128, rows = 1
  // CHECK-NOT: joins
  // CHECK: intra.store
  // CHECK: joins = 1>
  intra.traverse %i in %one {
    %0 = intra.load %steps[%i] : f32
    %1 = intra.const {value = 1.0 : f64} : f32
    %2 = intra.apply %0, %1 {fn = "add"} : f32
    intra.store %2, %next[%i]
  }
  intra.traverse %i in %one {
    %0 = intra.load %w[%i] : vector<512xf32>
    %1 = intra.const {value = 0.5 : f64} : f32
    %2 = intra.apply %0, %1 {fn = "mul"} : vector<512xf32>
    intra.store %2, %half[%i]
  }
  // CHECK-NOT: joins
  intra.traverse %i in %n {
    %0 = intra.load %x[%i] : f32
    intra.store %0, %y[%i]
  }
  intra.traverse %i in %one {
    %0 = intra.load %steps[%i] : f32
    intra.store %0, %again[%i]
  }
  func.return
}
