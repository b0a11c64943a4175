// RUN: gnn-opt %s -p "schedule-grid{piece=100},cut-stages" -t cuda | filecheck %s

// A long group is one of more than two pieces. A kernel before the nest reduces each of its pieces by a
// team of its own; the nest adds these up, and goes through short groups itself.
// CHECK: void __launch_bounds__(256, 2) forward_0_segment_pieces(
// CHECK: for (int64_t q = (int64_t)blockIdx.x * 32 + team; q < piece_count0; q += (int64_t)gridDim.x * 32) {
// CHECK-NEXT: /* intra: intra.segment : vector<32xf32> */
// CHECK-NEXT: const int64_t [[BEGIN:begin[0-9]+]] = group_pieces0[3 * q + 1], [[END:end[0-9]+]] = group_pieces0[3 * q + 2];
// CHECK: for (int64_t [[P:p[0-9]+]] = [[BEGIN]]; [[P]] < [[END]]; ++[[P]]) {
// CHECK: *(tiles::Pack<float, 4> *)((piece_rows0_0 + q * 32) + {{f[0-9]+}}) =
// CHECK: GNNC_EXPORT(forward_0_segment_pieces)
// CHECK: void __launch_bounds__(256, 2) forward_0_segment(
// CHECK: const int64_t [[LO:begin[0-9]+]] = offsets_g_dst[i], [[HI:end[0-9]+]] = offsets_g_dst[i + 1];
// CHECK: if ([[HI]] - [[LO]] <= 200) {
// CHECK: if ([[HI]] - [[LO]] > 200) {
// CHECK-NEXT: for (int64_t [[Q:q[0-9]+]] = first_piece(group_pieces0, piece_count0, i); [[Q]] < piece_count0 && group_pieces0[3 * [[Q]]] == i; ++[[Q]]) {
// CHECK: *(const tiles::Pack<float, 4> *)(piece_rows0_0 + [[Q]] * 32 + {{f[0-9]+}});
// CHECK: GNNC_PHASE int gnnc_forward(
// CHECK: if (fewer((piece_count0 + 31) / 32, 1056) > 0 && status == 0) {
// CHECK: status = launch(kernels[0], (unsigned)(fewer((piece_count0 + 31) / 32, 1056)), 1, 1, 256,
// CHECK: if (chunks > 0 && status == 0) {
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x32xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<32xf32>
      intra.yield %v
    } : vector<32xf32>
    intra.store %s, %y[%i]
  }
  func.return
}
