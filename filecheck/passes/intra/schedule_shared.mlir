// RUN: gnn-opt %s -p schedule | filecheck %s

// Threads share sums of 1500 x 64 and of 900 x 64 numbers, after rounds of rows, where those of chunks
// would take too much memory. One of 300 x 64 each chunk has of its own.
// CHECK: intra.outer
// CHECK-NEXT: } {schedule = {{.*}} round = 6>}
// CHECK: intra.outer
// CHECK-NEXT: } {schedule = {{.*}} round = 6>}
// CHECK: intra.outer
// CHECK-NEXT: } {schedule = {{.*}} masked = 1>}
func.func @main() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x1500x64xf32>
  %t = intra.output {buffer = "t"} : memref<?x900x64xf32>
  %u = intra.output {buffer = "u"} : memref<?x300x64xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x1500xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?x900xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>} : memref<?x300xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x64xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<1500xf32>
    %b = intra.load %y[%i] : vector<64xf32>
    intra.outer %a, %b, %s {spec = "k,f->kf"}
  }
  intra.traverse %i in %n {
    %a = intra.load %z[%i] : vector<900xf32>
    %b = intra.load %y[%i] : vector<64xf32>
    intra.outer %a, %b, %t {spec = "k,f->kf"}
  }
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<300xf32>
    %b = intra.load %y[%i] : vector<64xf32>
    intra.outer %a, %b, %u {spec = "k,f->kf"}
  }
  func.return
}
