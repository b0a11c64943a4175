// RUN: gnn-opt %s --split-input-file | gnn-opt --split-input-file | filecheck %s

// Rows of other ranks are there between a publication and its end; in a group they may be issued
// before they are awaited.
// CHECK-LABEL: func.func @forward()
// CHECK: %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?x8xf32>
// CHECK: intra.publish %x, %p through %owner {plan = "S to H"}
// CHECK: %t = intra.issue %p[%j] : !intra.token<vector<8xf32>>
// CHECK-NEXT: %v = intra.await %t : vector<8xf32>
// CHECK: } {schedule = #intra.grid<{{.*}}>, pipeline = #intra.pipeline<local = 16, remote = 8, pairs = 2, warps = 4, depth = 3, lanes = 2>}
// CHECK: intra.retire %x, %p {plan = "S to H"}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %owner = intra.index_map {domain = #intra.domain<S>, path = "owner"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?x8xf32>
  intra.publish %x, %p through %owner {plan = "S to H"}
  intra.traverse %i in %n {
    intra.stage {
      %s = intra.segment %q in %offsets[%i] ["sum"] in_pieces {
        %j = intra.lookup %src[%q] : index
        %t = intra.issue %p[%j] : !intra.token<vector<8xf32>>
        %v = intra.await %t : vector<8xf32>
        intra.yield %v
      } : vector<8xf32>
      intra.store %s, %y[%i]
      intra.yield
    }
  } {schedule = #intra.grid<threads = 256, lanes = 2, rows = 64, grain = 2048, chunks = 1056, row_cost = 4, piece = 128, edges = 4, resident = 2>, pipeline = #intra.pipeline<local = 16, remote = 8, pairs = 2, warps = 4, depth = 3, lanes = 2>}
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// Buffers that all ranks have are published together, and what a kernel reads are their totals.
// CHECK-LABEL: func.func @forward()
// CHECK: %s = intra.peer_totals %a {kind = "sum"} : memref<?x4xf32>
// CHECK: %t = intra.peer_totals %b {kind = "max"} : memref<?xi64>
// CHECK: intra.publish_all %s, %t
// CHECK: intra.load %s[%i] : vector<4xf32>
// CHECK: intra.retire_all %s, %t
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?x4xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xi64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %one = intra.size : index
  %a = intra.alloc : memref<?x4xf32>
  %b = intra.alloc {domain = #intra.domain<N>} : memref<?xi64>
  %s = intra.peer_totals %a {kind = "sum"} : memref<?x4xf32>
  %t = intra.peer_totals %b {kind = "max"} : memref<?xi64>
  intra.publish_all %s, %t
  intra.traverse %i in %one {
    %v = intra.load %s[%i] : vector<4xf32>
    intra.store %v, %y[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %t[%i] : i64
    intra.store %v, %z[%i]
  }
  intra.retire_all %s, %t
  func.return
}
