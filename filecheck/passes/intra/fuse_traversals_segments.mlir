// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// A map read at the members is one table in their order; the map that made the groups is the group.
// CHECK: func.func @streamed
// CHECK: %[[SOURCES:.*]] = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"}
// CHECK-NOT: intra.index_map
// CHECK-NOT: intra.members
// CHECK: intra.traverse %[[I:.*]] in
// A load that is the same for all members leaves the loop.
// CHECK-NEXT: %[[OWN:.*]] = intra.load %{{.*}}[%[[I]]] : f32
// CHECK-NEXT: intra.segment %[[P:.*]] in
// CHECK-NEXT: %[[J:.*]] = intra.lookup %[[SOURCES]][%[[P]]] : index
// CHECK-NEXT: %[[A:.*]] = intra.load %{{.*}}[%[[J]]] : f32
// CHECK-NEXT: intra.apply %[[A]], %[[OWN]] {fn = "mul"} : f32
func.func @streamed() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  %dst = intra.index_map {domain = #intra.domain<g>, path = "dst"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %e = intra.lookup %members[%p] : index
      %j = intra.lookup %src[%e] : index
      %k = intra.lookup %dst[%e] : index
      %a = intra.load %x[%j] : f32
      %b = intra.load %x[%k] : f32
      %m = intra.apply %a, %b {fn = "mul"} : f32
      intra.yield %m
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// Two reductions of one group share a loop and what they load.
// CHECK: func.func @shared
// CHECK: %[[A:.*]], %[[B:.*]] = intra.segment %{{.*}} in %{{.*}}[%{{.*}}] ["sum", "max"] {
// CHECK: %[[V:.*]] = intra.load
// CHECK-NEXT: intra.yield %[[V]], %[[V]]
// CHECK-NEXT: } : f32, f32
// CHECK: intra.apply %[[A]], %[[B]] {fn = "sub"}
// CHECK-NOT: intra.segment
func.func @shared() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %e = intra.lookup %members[%p] : index
      %a = intra.load %x[%e] : f32
      intra.yield %a
    } : f32
    %m = intra.segment %p in %offsets[%i] ["max"] {
      %e = intra.lookup %members[%p] : index
      %a = intra.load %x[%e] : f32
      intra.yield %a
    } : f32
    %d = intra.apply %s, %m {fn = "sub"} : f32
    intra.store %d, %y[%i]
  }
  func.return
}

// -----

// A reduction that needs another one's result has a loop of its own.
// CHECK: func.func @dependent
// CHECK: intra.segment {{.*}} ["max"] {
// CHECK: intra.segment {{.*}} ["sum"] {
func.func @dependent() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %m = intra.segment %p in %offsets[%i] ["max"] {
      %e = intra.lookup %members[%p] : index
      %a = intra.load %x[%e] : f32
      intra.yield %a
    } : f32
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %e = intra.lookup %members[%p] : index
      %a = intra.load %x[%e] : f32
      %d = intra.apply %a, %m {fn = "sub"} : f32
      intra.yield %d
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}
