// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// Two nests read a row that is made of rows of arguments by an addition. Each makes it again: one
// more row is read, and none is written.
// CHECK: func.func @at_their_rows
// CHECK-NOT: intra.alloc
// CHECK: {fn = "add"}
// CHECK: {fn = "exp"}
// CHECK: {fn = "add"}
// CHECK: intra.segment
func.func @at_their_rows() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x64xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x64xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<N>} : memref<?x64xf32>
  %b = intra.input {buffer = "b", domain = #intra.domain<N>} : memref<?x64xf32>
  %m = intra.alloc {domain = #intra.domain<N>} : memref<?x64xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %p = intra.load %a[%i] : vector<64xf32>
    %q = intra.load %b[%i] : vector<64xf32>
    %s = intra.apply %p, %q {fn = "add"} : vector<64xf32>
    intra.store %s, %m[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %m[%i] : vector<64xf32>
    %e = intra.apply %v {fn = "exp"} : vector<64xf32>
    intra.store %e, %y[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %m[%i] : vector<64xf32>
    %s = intra.segment %p in %in[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %u = intra.load %y[%j] : vector<64xf32>
      intra.yield %u
    } : vector<64xf32>
    %t = intra.apply %v, %s {fn = "mul"} : vector<64xf32>
    intra.store %t, %z[%i]
  }
  func.return
}

// -----

// It is stored for one that gathers it: there it would be made for each edge.
// CHECK: func.func @at_gathered_rows
// CHECK: intra.alloc
// CHECK: {fn = "add"}
// CHECK-NOT: {fn = "add"}
func.func @at_gathered_rows() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x64xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x64xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<N>} : memref<?x64xf32>
  %b = intra.input {buffer = "b", domain = #intra.domain<N>} : memref<?x64xf32>
  %m = intra.alloc {domain = #intra.domain<N>} : memref<?x64xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %p = intra.load %a[%i] : vector<64xf32>
    %q = intra.load %b[%i] : vector<64xf32>
    %s = intra.apply %p, %q {fn = "add"} : vector<64xf32>
    intra.store %s, %m[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %m[%i] : vector<64xf32>
    %e = intra.apply %v {fn = "exp"} : vector<64xf32>
    intra.store %e, %y[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %in[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %u = intra.load %m[%j] : vector<64xf32>
      intra.yield %u
    } : vector<64xf32>
    intra.store %s, %z[%i]
  }
  func.return
}
