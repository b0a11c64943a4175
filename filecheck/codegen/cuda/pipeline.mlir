// RUN: gnn-opt %s -p "build-pipeline{depth=2},schedule-grid,cut-stages" -t cuda | filecheck %s

// Two rows of other ranks are on their way, each in a slot; a row is copied when the one in its slot
// has been used. Partial sums are rows, which the nest's own kernel adds up.
// CHECK: void __launch_bounds__(128, 1) forward_0_segment_pipeline(
// CHECK-SAME: const void *const *peers_H, const uint64_t *__restrict__ peers_H_places
// CHECK: char *const slots = (char *)((uint8_t *)(shared_memory + 0)) + team * 128;
// CHECK: for (int k = 0; k < 2; ++k) {
// CHECK-NEXT: if (issued < end) {
// CHECK: const char *const far = (const char *)peer_row<float>(peers_H, peers_H_places, {{.*}}, 16);
// CHECK-NEXT: for (int k = lane * 16; k < 64; k += 64) copy_ahead<16>(slot + 0 + k, far + k);
// CHECK: ++issued;
// CHECK-NEXT: }
// CHECK-NEXT: rows_leave();
// CHECK: for (int64_t q = w; q < last; ++q) {
// CHECK: rows_arrive<1>();
// CHECK-NEXT: __syncwarp(mask);
// CHECK: __syncwarp(mask);
// CHECK-NEXT: if (issued < end) {
// CHECK: GNNC_EXPORT(forward_0_segment_pipeline)
// CHECK: void __launch_bounds__(256, 2) forward_0_segment(
// CHECK: first_piece(group_pieces0, piece_count0, i)
// CHECK: GNNC_PHASE int gnnc_forward(
// CHECK: if (status == 0) comm->publish(comm, 0, (const void *const[]){in_x}, (void **const[]){peers_H}, peers_H_places);
// CHECK-NEXT: if (status == 0 && comm->failed) return 0;
// CHECK: if (status == 0) comm->retire(comm, 0);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x16xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x16xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %remote = intra.offsets {domain = #intra.domain<f>, along = ["dst"]} : memref<?xi64>
  %from = intra.member_map {domain = #intra.domain<f>, along = ["dst"], path = "src"} : memref<?xi32>
  %peers = intra.peer_rows {plan = "N to H", domain = #intra.domain<H>} : memref<?x16xf32>
  intra.publish %x, %peers {plan = "N to H"}
  intra.traverse %i in %n {
    %t = intra.segment %q in %remote[%i] ["sum"] {
      %k = intra.lookup %from[%q] : index
      %u = intra.load %peers[%k] : vector<16xf32>
      intra.yield %u
    } : vector<16xf32>
    intra.store %t, %y[%i]
  }
  intra.retire %x, %peers {plan = "N to H"}
  func.return
}
