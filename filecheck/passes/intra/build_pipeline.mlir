// RUN: gnn-opt %s -p "build-pipeline{remote=8 depth=3}" --split-input-file | filecheck %s

// A sum of rows of other ranks and one of rows that lie here become a pipeline: rows of others are
// issued, which their place in the group tells, and awaited.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.segment %p in %near[%i] ["sum"] in_pieces {
// CHECK-NEXT: %j = intra.lookup %src[%p] : index
// CHECK-NEXT: %v = intra.load %x[%j] : vector<16xf32>
// CHECK: intra.segment %q in %remote[%i] ["sum"] in_pieces {
// CHECK-NEXT: %k = intra.lookup %from[%q] : index
// CHECK-NEXT: %[[T:.*]] = intra.issue %peers[%k] : !intra.token<vector<16xf32>>
// CHECK-NEXT: %u = intra.await %[[T]] : vector<16xf32>
// CHECK: } {pipeline = #intra.pipeline<local = 16, remote = 8, pairs = 2, warps = 4, depth = 3, lanes = 4>}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x16xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x16xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %near = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %remote = intra.offsets {domain = #intra.domain<f>, along = ["dst"]} : memref<?xi64>
  %from = intra.member_map {domain = #intra.domain<f>, along = ["dst"], path = "src"} : memref<?xi32>
  %peers = intra.peer_rows {plan = "N to H", domain = #intra.domain<H>} : memref<?x16xf32>
  intra.publish %x, %peers {plan = "N to H"}
  intra.traverse %i in %n {
    %s = intra.segment %p in %near[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<16xf32>
      intra.yield %v
    } : vector<16xf32>
    %t = intra.segment %q in %remote[%i] ["sum"] {
      %k = intra.lookup %from[%q] : index
      %u = intra.load %peers[%k] : vector<16xf32>
      intra.yield %u
    } : vector<16xf32>
    %z = intra.apply %s, %t {fn = "add"} : vector<16xf32>
    intra.store %z, %y[%i]
  }
  intra.retire %x, %peers {plan = "N to H"}
  func.return
}

// -----

// Rows that no thread holds in registers and no slot in shared memory are loaded where they lie.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.load %peers[%k] : vector<40000xf32>
// CHECK-NOT: pipeline
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x40000xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x40000xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %remote = intra.offsets {domain = #intra.domain<f>, along = ["dst"]} : memref<?xi64>
  %from = intra.member_map {domain = #intra.domain<f>, along = ["dst"], path = "src"} : memref<?xi32>
  %peers = intra.peer_rows {plan = "N to H", domain = #intra.domain<H>} : memref<?x40000xf32>
  intra.publish %x, %peers {plan = "N to H"}
  intra.traverse %i in %n {
    %t = intra.segment %q in %remote[%i] ["sum"] {
      %k = intra.lookup %from[%q] : index
      %u = intra.load %peers[%k] : vector<40000xf32>
      intra.yield %u
    } : vector<40000xf32>
    intra.store %t, %y[%i]
  }
  intra.retire %x, %peers {plan = "N to H"}
  func.return
}
