// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// A message is computed in the sum that reads it: no buffer over edges.
// CHECK: func.func @message_into_sum
// CHECK-NOT: intra.alloc
// CHECK: intra.traverse
// CHECK: intra.segment
// CHECK: %[[A:.*]] = intra.load
// CHECK: %[[M:.*]] = intra.apply %[[A]] {fn = "exp"}
// CHECK-NEXT: intra.yield %[[M]]
// CHECK-NOT: intra.traverse
func.func @message_into_sum() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?x3xf32>
  %m = intra.alloc {domain = #intra.domain<g>} : memref<?x3xf32>
  %g = intra.size {domain = #intra.domain<g>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %e in %g {
    %a = intra.load %x[%e] : vector<3xf32>
    %b = intra.apply %a {fn = "exp"} : vector<3xf32>
    intra.store %b, %m[%e]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %e = intra.lookup %members[%p] : index
      %v = intra.load %m[%e] : vector<3xf32>
      intra.yield %v
    } : vector<3xf32>
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// What other rows read must lie in memory: a gather never merges.
// CHECK: func.func @gather
// CHECK: intra.alloc {domain = #intra.domain<N>}
// CHECK: intra.traverse
// CHECK: {fn = "exp"}
// CHECK: intra.traverse
// CHECK: intra.segment
func.func @gather() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3xf32>
  %m = intra.alloc {domain = #intra.domain<N>} : memref<?x3xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %sources = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<3xf32>
    %b = intra.apply %a {fn = "exp"} : vector<3xf32>
    intra.store %b, %m[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %sources[%p] : index
      %v = intra.load %m[%j] : vector<3xf32>
      intra.yield %v
    } : vector<3xf32>
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// A nest that reads its own row of what another one stores takes the value; the store of an output
// stays, that of a temporary goes.
// CHECK: func.func @own_row
// CHECK-NOT: intra.alloc
// CHECK: intra.traverse %[[I:.*]] in
// CHECK-NEXT: %[[A:.*]] = intra.load %{{.*}}[%[[I]]]
// CHECK-NEXT: %[[B:.*]] = intra.apply %[[A]] {fn = "exp"}
// CHECK-NEXT: intra.store %[[B]], %{{.*}}[%[[I]]]
// CHECK-NEXT: %[[C:.*]] = intra.apply %[[B]] {fn = "neg"}
// CHECK-NEXT: %[[D:.*]] = intra.apply %[[C]] {fn = "tanh"}
// CHECK-NEXT: intra.store %[[D]], %{{.*}}[%[[I]]]
// CHECK-NOT: intra.traverse
func.func @own_row() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %t = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
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

// A temporary that nobody reads goes, with the nest that wrote it and the tables that it used.
// CHECK: func.func @dead_store
// CHECK-NOT: intra.traverse
// CHECK-NOT: intra.index_map
// CHECK: func.return
func.func @dead_store() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %t = intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<g>} : index
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %j = intra.lookup %src[%i] : index
    %a = intra.load %x[%j] : f32
    intra.store %a, %t[%i]
  }
  func.return
}

// -----

// Nests over the same rows that share what they read are one; nests that do not, stay two.
// CHECK: func.func @shared_reads
// CHECK: intra.traverse
// CHECK-NEXT: intra.load
// CHECK-NEXT: intra.apply {{.*}} {fn = "exp"}
// CHECK-NEXT: intra.store
// CHECK-NEXT: intra.apply {{.*}} {fn = "neg"}
// CHECK-NEXT: intra.store
// CHECK: intra.traverse
// CHECK: {fn = "tanh"}
func.func @shared_reads() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %w = intra.output {buffer = "w", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %v = intra.input {buffer = "v", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    %b = intra.apply %a {fn = "exp"} : f32
    intra.store %b, %y[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %v[%i] : f32
    %b = intra.apply %a {fn = "tanh"} : f32
    intra.store %b, %w[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    %b = intra.apply %a {fn = "neg"} : f32
    intra.store %b, %z[%i]
  }
  func.return
}

// -----

// What a nest totals is known after its last row: the reader is a nest of its own.
// CHECK: func.func @totals
// CHECK: intra.traverse
// CHECK: intra.total
// CHECK: intra.traverse
// CHECK: {fn = "sub"}
func.func @totals() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %t = intra.alloc : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    intra.total %a, %t {kind = "sum"}
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f32
    %f = intra.first : index
    %s = intra.load %t[%f] : f32
    %b = intra.apply %a, %s {fn = "sub"} : f32
    intra.store %b, %y[%i]
  }
  func.return
}
