// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// Two sums read a message. A cheap one is computed twice, which is less than a buffer over edges.
// CHECK: func.func @cheap
// CHECK-NOT: intra.alloc
// CHECK: intra.segment
// CHECK: {fn = "neg"}
// CHECK: intra.segment
// CHECK: {fn = "neg"}
func.func @cheap() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %m = intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
  %g = intra.size {domain = #intra.domain<g>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %in_edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %out = intra.offsets {domain = #intra.domain<g>, along = ["src"]} : memref<?xi64>
  %out_edges = intra.members {domain = #intra.domain<g>, along = ["src"]} : memref<?xi32>
  intra.traverse %e in %g {
    %a = intra.load %x[%e] : f32
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
  intra.traverse %i in %n {
    %s = intra.segment %p in %out[%i] ["sum"] {
      %e = intra.lookup %out_edges[%p] : index
      %v = intra.load %m[%e] : f32
      intra.yield %v
    } : f32
    intra.store %s, %z[%i]
  }
  func.return
}

// -----

// A costly one is computed once and stored.
// CHECK: func.func @costly
// CHECK: intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
// CHECK: {fn = "exp"}
// CHECK-NOT: {fn = "exp"}
func.func @costly() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %m = intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
  %g = intra.size {domain = #intra.domain<g>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %in_edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %out = intra.offsets {domain = #intra.domain<g>, along = ["src"]} : memref<?xi64>
  %out_edges = intra.members {domain = #intra.domain<g>, along = ["src"]} : memref<?xi32>
  intra.traverse %e in %g {
    %a = intra.load %x[%e] : f32
    %b = intra.apply %a {fn = "exp"} : f32
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
  intra.traverse %i in %n {
    %s = intra.segment %p in %out[%i] ["sum"] {
      %e = intra.lookup %out_edges[%p] : index
      %v = intra.load %m[%e] : f32
      intra.yield %v
    } : f32
    intra.store %s, %z[%i]
  }
  func.return
}
