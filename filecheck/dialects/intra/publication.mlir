// RUN: gnn-opt %s | gnn-opt | filecheck %s

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
