// RUN: gnn-opt %s -p "split-long-rows{target=cuda},schedule-grid,gang-small,cut-stages" -t cuda | filecheck %s

// Two buffers are published at once. Threads read the numbers of each rank where they lie, and add
// them up in the order of ranks; a long row is one of many pieces.
// CHECK: void __launch_bounds__(256, 2) forward_0_rows(
// CHECK-SAME: const void *const *all_ranks_1, const int64_t ranks, float *
// CHECK: float [[A:v[0-9]+]], v
// CHECK: (const float *)all_ranks_1[0] + i * 1024 +
// CHECK: #pragma unroll 4
// CHECK-NEXT: for (int64_t rank = 1; rank < ranks; ++rank) {
// CHECK-NEXT: (const float *)all_ranks_1[rank] + i * 1024 +
// CHECK-NEXT: [[A]] = ([[A]] + q{{[0-9]+}}.v[0]);
// CHECK: GNNC_EXPORT(forward_0_rows)
// CHECK: void __launch_bounds__(32, 2) forward_1_rows(
// CHECK: int64_t [[M:v[0-9]+]];
// CHECK: *((const int64_t *)all_ranks[0] + i * 3 + f{{[0-9]+}});
// CHECK: [[M]] = greateri([[M]], v{{[0-9]+}});
// CHECK: GNNC_PHASE int gnnc_forward(
// CHECK: void **all_ranks = b[4];
// CHECK-NEXT: void **all_ranks_1 = b[5];
// CHECK: if (status == 0) comm->publish(comm, 0, (const void *const[]){in_b, in_a}, (void **const[]){all_ranks, all_ranks_1}, 0);
// CHECK-NEXT: if (status == 0 && comm->failed) return 0;
// CHECK: (void *)&all_ranks_1, (void *)&n[0]
// CHECK: if (status == 0) comm->retire(comm, 0);
func.func @forward() attributes {intra.phase} {
  %w = intra.output {buffer = "w"} : memref<?x64x128xf32>
  %z = intra.output {buffer = "z"} : memref<?x3xi64>
  %a = intra.input {buffer = "a"} : memref<?x64x128xf32>
  %b = intra.input {buffer = "b"} : memref<?x3xi64>
  %one = intra.size : index
  %s = intra.peer_totals %b {kind = "max"} : memref<?x3xi64>
  %t = intra.peer_totals %a {kind = "sum"} : memref<?x64x128xf32>
  intra.publish_all %s, %t
  intra.traverse %i in %one {
    %v = intra.load %t[%i] : vector<64x128xf32>
    intra.store %v, %w[%i]
  }
  intra.traverse %i in %one {
    %v = intra.load %s[%i] : vector<3xi64>
    intra.store %v, %z[%i]
  }
  intra.retire_all %s, %t
  func.return
}
