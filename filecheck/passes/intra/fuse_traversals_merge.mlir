// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// The gradient of a weight goes where its wide factor is streamed anyway, not to the nest that
// makes the narrow one: that saves more.
// CHECK: func.func @backward()
// CHECK: intra.traverse
// CHECK: intra.store
// CHECK: intra.traverse
// CHECK: %[[X:.*]] = intra.load %x
// CHECK: intra.outer %[[X]], %{{.*}}, %dA
// CHECK: intra.segment
// CHECK: intra.outer %[[X]], %{{.*}}, %dB
// CHECK-NOT: intra.traverse
// CHECK: func.return
func.func @backward() attributes {intra.phase} {
  %dA = intra.output {buffer = "dA"} : memref<?x64x4xf32>
  %dB = intra.output {buffer = "dB"} : memref<?x64x4xf32>
  %d = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x64xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["src"]} : memref<?xi64>
  %dst = intra.member_map {domain = #intra.domain<g>, along = ["src"], path = "dst"} : memref<?xi32>
  intra.traverse %i in %n {
    %a = intra.load %y[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "relu"} : vector<4xf32>
    intra.store %b, %d[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<64xf32>
    %b = intra.load %d[%i] : vector<4xf32>
    intra.outer %a, %b, %dA {spec = "k,f->kf"}
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<64xf32>
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %dst[%p] : index
      %b = intra.load %d[%j] : vector<4xf32>
      intra.yield %b
    } : vector<4xf32>
    intra.outer %a, %s, %dB {spec = "k,f->kf"}
  }
  func.return
}

// -----

// What visits rows in the order of groups stores other rows than its own: a nest that reads these
// stays behind it.
// CHECK: func.func @forward()
// CHECK: intra.matmul
// CHECK: intra.traverse
// CHECK: intra.apply
func.func @forward() attributes {intra.phase} {
  %out = intra.output {buffer = "out", domain = #intra.domain<g>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?x4xf32>
  %W = intra.input {buffer = "W", domain = #intra.domain<R>} : memref<?x4x4xf32>
  %h = intra.alloc {domain = #intra.domain<g>} : memref<?x4xf32>
  %n = intra.size {domain = #intra.domain<g>} : index
  %members = intra.members {domain = #intra.domain<g>, along = ["rel"]} : memref<?xi32>
  %rel = intra.member_map {domain = #intra.domain<g>, along = ["rel"], path = "rel"} : memref<?xi32>
  intra.traverse %p in %n {
    %r = intra.lookup %rel[%p] : index
    %e = intra.lookup %members[%p] : index
    %a = intra.load %x[%e] : vector<4xf32>
    %b = intra.matmul %a, %W[%r] {spec = "k,kf->f"} : vector<4xf32>
    intra.store %b, %h[%e]
  }
  intra.traverse %e in %n {
    %a = intra.load %h[%e] : vector<4xf32>
    %b = intra.apply %a {fn = "relu"} : vector<4xf32>
    intra.store %b, %out[%e]
  }
  func.return
}
