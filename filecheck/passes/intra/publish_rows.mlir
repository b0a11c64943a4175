// RUN: gnn-opt %s -p publish-rows --split-input-file | filecheck %s

// What a move brings is read where it lies; what only packed it for the message goes.
// CHECK-LABEL: func.func @forward()
// CHECK: %to = intra.peer_rows {plan = "R to H", domain = #intra.domain<H>} : memref<?x4xf32>
// CHECK-NOT: intra.alloc
// CHECK: intra.publish %x, %to through %owner {plan = "R to H"}
// CHECK-NEXT: intra.traverse %i in %n {
// CHECK: intra.load %to[%j] : vector<4xf32>
// CHECK: intra.retire %x, %to {plan = "R to H"}
// CHECK-NEXT: func.return
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?x4xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?x4xf32>
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %x[%j] : vector<4xf32>
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "R to H"}
  intra.move_wait %to {plan = "R to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %to[%j] : vector<4xf32>
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// What is computed for the message is published as it is, and rows that are kept stay a message.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.publish %from, %{{.*}} {plan = "R to H"}
// CHECK: intra.store %v_1, %y[%i_1]
// CHECK-NEXT: }
// CHECK-NEXT: intra.retire %from
// CHECK: intra.move_start %x, %kept {plan = "N to K"}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %kept = intra.output {buffer = "kept", domain = #intra.domain<K>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %x[%j] : f32
    %w = intra.apply %v {fn = "exp"} : f32
    intra.store %w, %from[%i]
  }
  intra.move_start %from, %to {plan = "R to H"}
  intra.move_wait %to {plan = "R to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %to[%j] : f32
    intra.store %v, %y[%i]
  }
  intra.move_start %x, %kept {plan = "N to K"}
  intra.move_wait %kept {plan = "N to K"}
  func.return
}
