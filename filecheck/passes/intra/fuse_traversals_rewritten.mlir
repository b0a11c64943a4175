// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// A temporary is written twice: who reads it between the two has the first value, who reads it
// after them the second.
// CHECK: func.func @twice
// CHECK: %a = intra.load %x
// CHECK: %b = intra.apply %a {fn = "exp"}
// CHECK: %b_1 = intra.apply %b {fn = "neg"}
// CHECK: %b_2 = intra.apply %b_1 {fn = "tanh"}
// CHECK: intra.store %b_2, %z
func.func @twice() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %t = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    intra.store %a, %t[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %t[%i] : f32
    %b = intra.apply %a {fn = "exp"} : f32
    intra.store %b, %y[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %y[%i] : f32
    %b = intra.apply %a {fn = "neg"} : f32
    intra.store %b, %t[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %t[%i] : f32
    %b = intra.apply %a {fn = "tanh"} : f32
    intra.store %b, %z[%i]
  }
  func.return
}

// -----

// Rows edited in place are not made again where they are read.
// CHECK: func.func @edited
// CHECK: intra.store {{.*}}, %m
// CHECK: intra.segment
func.func @edited() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %m = intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
  %g = intra.size {domain = #intra.domain<g>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %in_edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %e in %g {
    %a = intra.load %m[%e] : f32
    %b = intra.apply %a {fn = "neg"} : f32
    intra.store %b, %m[%e]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %in[%i] ["sum"] {
      %e = intra.lookup %in_edges[%p] : index
      %v = intra.load %m[%e] : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}
