// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// A gradient goes to the node's own weight as it is, and to the sum over the edges divided by the
// size of the group. Only the quotient is stored; the weight's nest multiplies again.
// CHECK: func.func @backward()
// CHECK: %[[T:.*]] = intra.alloc
// CHECK-NOT: intra.alloc
// CHECK: intra.traverse
// CHECK: {fn = "div"}
// CHECK-NEXT: intra.store %{{.*}}, %[[T]]
// CHECK-NEXT: }
// CHECK: intra.traverse %[[I:.*]] in
// CHECK: intra.segment
// CHECK: %[[Q:.*]] = intra.load %[[T]][%[[I]]]
// CHECK: %[[S:.*]] = intra.load %{{.*}}[%[[I]]] : f32
// CHECK: intra.apply %[[Q]], %[[S]] {fn = "mul"}
func.func @prepare() attributes {intra.phase} {
  %sizes = intra.output {buffer = "sizes", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %k = intra.length %in[%i] : i64
    %f = intra.cast %k : f32
    %one = intra.const {value = 1.0 : f64} : f32
    %s = intra.apply %f, %one {fn = "maximum"} : f32
    intra.store %s, %sizes[%i]
  }
  func.return
}
func.func @backward() attributes {intra.phase} {
  %dA = intra.output {buffer = "dA"} : memref<?x8x4xf32>
  %d = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %q = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x4xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf32>
  %sizes = intra.input {buffer = "sizes", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %out = intra.offsets {domain = #intra.domain<g>, along = ["src"]} : memref<?xi64>
  %dst = intra.member_map {domain = #intra.domain<g>, along = ["src"], path = "dst"} : memref<?xi32>
  intra.traverse %i in %n {
    %a = intra.load %y[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "exp"} : vector<4xf32>
    intra.store %b, %d[%i]
    %s = intra.load %sizes[%i] : f32
    %c = intra.apply %b, %s {fn = "div"} : vector<4xf32>
    intra.store %c, %q[%i]
  }
  intra.traverse %i in %n {
    %t = intra.segment %p in %out[%i] ["sum"] {
      %j = intra.lookup %dst[%p] : index
      %v = intra.load %q[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %t, %z[%i]
    %a = intra.load %x[%i] : vector<8xf32>
    %b = intra.load %d[%i] : vector<4xf32>
    intra.outer %a, %b, %dA {spec = "k,f->kf"}
  }
  func.return
}

// -----

// Nothing is known of the divisor: it may be 0, and both are stored.
// CHECK: func.func @backward()
// CHECK: intra.alloc
// CHECK: intra.alloc
// CHECK-NOT: {fn = "mul"}
// CHECK: func.return
func.func @backward() attributes {intra.phase} {
  %dA = intra.output {buffer = "dA"} : memref<?x8x4xf32>
  %d = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %q = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x4xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf32>
  %sizes = intra.input {buffer = "sizes", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %out = intra.offsets {domain = #intra.domain<g>, along = ["src"]} : memref<?xi64>
  %dst = intra.member_map {domain = #intra.domain<g>, along = ["src"], path = "dst"} : memref<?xi32>
  intra.traverse %i in %n {
    %a = intra.load %y[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "exp"} : vector<4xf32>
    intra.store %b, %d[%i]
    %s = intra.load %sizes[%i] : f32
    %c = intra.apply %b, %s {fn = "div"} : vector<4xf32>
    intra.store %c, %q[%i]
  }
  intra.traverse %i in %n {
    %t = intra.segment %p in %out[%i] ["sum"] {
      %j = intra.lookup %dst[%p] : index
      %v = intra.load %q[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %t, %z[%i]
    %a = intra.load %x[%i] : vector<8xf32>
    %b = intra.load %d[%i] : vector<4xf32>
    intra.outer %a, %b, %dA {spec = "k,f->kf"}
  }
  func.return
}
