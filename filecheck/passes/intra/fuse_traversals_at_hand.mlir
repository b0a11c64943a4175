// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// `h - n` is made again by a later nest that reads `h` and `n`: two temporaries, for `n` and the sum.
// CHECK: func.func @at_hand
// CHECK-COUNT-2: intra.alloc
// CHECK-NOT: intra.alloc
// CHECK: {fn = "tanh"}
// CHECK: intra.traverse
// CHECK: intra.apply {{.*}} {fn = "sub"}
func.func @at_hand() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %h = intra.input {buffer = "h", domain = #intra.domain<N>} : memref<?x8xf32>
  %n = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %t = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %size = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %sources = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %size {
    %a = intra.load %h[%i] : vector<8xf32>
    %b = intra.apply %a {fn = "tanh"} : vector<8xf32>
    intra.store %b, %n[%i]
    %c = intra.apply %a, %b {fn = "sub"} : vector<8xf32>
    intra.store %c, %t[%i]
    %d = intra.apply %b {fn = "exp"} : vector<8xf32>
    intra.store %d, %s[%i]
  }
  intra.traverse %i in %size {
    %g = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %sources[%p] : index
      %v = intra.load %s[%j] : vector<8xf32>
      intra.yield %v
    } : vector<8xf32>
    %a = intra.load %h[%i] : vector<8xf32>
    %b = intra.load %n[%i] : vector<8xf32>
    %c = intra.load %t[%i] : vector<8xf32>
    %u = intra.apply %c, %g {fn = "mul"} : vector<8xf32>
    %v = intra.apply %a, %b {fn = "mul"} : vector<8xf32>
    %w = intra.apply %u, %v {fn = "add"} : vector<8xf32>
    intra.store %w, %y[%i]
  }
  func.return
}

// -----

// A reader that has neither at hand would read two rows in the place of one: the sum stays stored.
// CHECK: func.func @dearer
// CHECK-COUNT-2: intra.alloc
// CHECK: intra.traverse
// CHECK: intra.apply {{.*}} {fn = "sub"}
// CHECK: intra.store
// CHECK: intra.traverse
// CHECK-NOT: {fn = "sub"}
func.func @dearer() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x8xf32>
  %h = intra.input {buffer = "h", domain = #intra.domain<N>} : memref<?x8xf32>
  %t = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %size = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %sources = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %size {
    %a = intra.load %h[%i] : vector<8xf32>
    %b = intra.apply %a {fn = "tanh"} : vector<8xf32>
    intra.store %b, %z[%i]
    %c = intra.apply %a, %b {fn = "sub"} : vector<8xf32>
    intra.store %c, %t[%i]
    %d = intra.apply %b {fn = "exp"} : vector<8xf32>
    intra.store %d, %s[%i]
  }
  intra.traverse %i in %size {
    %g = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %sources[%p] : index
      %v = intra.load %s[%j] : vector<8xf32>
      intra.yield %v
    } : vector<8xf32>
    %c = intra.load %t[%i] : vector<8xf32>
    %u = intra.apply %c, %g {fn = "mul"} : vector<8xf32>
    intra.store %u, %y[%i]
  }
  func.return
}
