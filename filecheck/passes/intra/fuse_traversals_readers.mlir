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

// -----

// Rows joined from others at their own place, for two readers, one of which has to find them in
// memory: the other finds them there too, and the parts are not stored.
// CHECK: func.func @joined
// CHECK-NOT: intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
// CHECK: %[[ROW:.*]] = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
// CHECK-NOT: intra.alloc
// CHECK: intra.segment
// CHECK: intra.load %[[ROW]]
func.func @joined() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<R>} : memref<?x16xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<R>} : memref<?x3x16xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>} : memref<?x3xf32>
  %a = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %b = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %row = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %kind = intra.member_map {domain = #intra.domain<N>, along = ["rel"], path = "rel"} : memref<?xi32>
  %of = intra.offsets {domain = #intra.domain<N>, along = ["rel"]} : memref<?xi64>
  %nodes = intra.members {domain = #intra.domain<N>, along = ["rel"]} : memref<?xi32>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : vector<8xf32>
    %e = intra.apply %v {fn = "exp"} : vector<8xf32>
    intra.store %e, %a[%i]
    %h = intra.apply %e {fn = "exp"} : vector<8xf32>
    intra.store %h, %b[%i]
  }
  intra.traverse %i in %n {
    %u = intra.load %a[%i] : vector<8xf32>
    %v = intra.load %b[%i] : vector<8xf32>
    %j = intra.concat %u, %v {dim = 0} : vector<16xf32>
    intra.store %j, %row[%i]
  }
  intra.traverse %i in %r {
    %s = intra.segment %p in %of[%i] ["sum"] {
      %m = intra.lookup %nodes[%p] : index
      %v = intra.load %row[%m] : vector<16xf32>
      intra.yield %v
    } : vector<16xf32>
    intra.store %s, %y[%i]
  }
  intra.traverse %p in %n {
    %m = intra.lookup %nodes[%p] : index
    %k = intra.lookup %kind[%p] : index
    %u = intra.load %w[%m] : vector<3xf32>
    %v = intra.load %row[%m] : vector<16xf32>
    intra.outer %u, %v, %z[%k of %r] {spec = "k,f->kf"}
  }
  func.return
}

// -----

// Each number of one row times each of another, for a sum: the product is made there, not stored.
// CHECK: func.func @multiplied
// CHECK-NOT: intra.alloc
// CHECK: intra.segment
// CHECK: intra.dot {{.*}} {spec = "a,b->ab"} : vector<4x8xf32>
// CHECK-NEXT: intra.yield
func.func @multiplied() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g[src, rel]>} : memref<?x4xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<g[src, rel]>} : memref<?x8xf32>
  %xz = intra.alloc {domain = #intra.domain<g[src, rel]>} : memref<?x4x8xf32>
  %p = intra.size {domain = #intra.domain<g[src, rel]>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %pair = intra.pair_index {domain = #intra.domain<g[src, rel]>} : memref<?xi32>
  intra.traverse %i in %p {
    %a = intra.load %x[%i] : vector<4xf32>
    %b = intra.load %z[%i] : vector<8xf32>
    %c = intra.dot %a, %b {spec = "a,b->ab"} : vector<4x8xf32>
    intra.store %c, %xz[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %k in %in[%i] ["sum"] {
      %e = intra.lookup %members[%k] : index
      %j = intra.lookup %pair[%e] : index
      %v = intra.load %xz[%j] : vector<4x8xf32>
      intra.yield %v
    } : vector<4x8xf32>
    intra.store %s, %y[%i]
  }
  func.return
}
