// RUN: gnn-opt %s -p "schedule-grid,cut-stages" -t cuda | filecheck %s

// 32 numbers are 8 vectors of 16 bytes: a row is gathered by 8 lanes of a warp, and a block of 256
// threads has 32 such teams. Neighbours come from the table of sources; their sum stays in registers.
// CHECK: void __launch_bounds__(256, 2) forward_0_segment(
// CHECK: const int team = threadIdx.x / 8, lane = threadIdx.x % 8;
// CHECK-NEXT: (void)team, (void)lane;
// CHECK-NEXT: const unsigned mask = 255u << (threadIdx.x % 32 / 8 * 8);
// CHECK: const int64_t lo = cuts[chunk], hi = cuts[chunk + 1];
// CHECK: for (int r = team; r < rows; r += 32) {
// CHECK: float [[ACC:acc[0-9]+]][4];
// CHECK: #pragma unroll 4
// CHECK-NEXT: for (int64_t [[P:p[0-9]+]] = [[BEGIN:begin[0-9]+]]; [[P]] < [[END:end[0-9]+]]; ++[[P]]) {
// CHECK-NEXT: const int64_t [[J:i[0-9]+]] = src_of_g_by_dst[[[P]]];
// CHECK: const int [[F:f[0-9]+]] = lane * 4;
// CHECK-NEXT: const tiles::Pack<float, 4> [[Q:q[0-9]+]] = *(const tiles::Pack<float, 4> *)(in_x + [[J]] * 32 + [[F]]);
// CHECK-NEXT: [[ACC]][0 * 4 + 0] = ([[ACC]][0 * 4 + 0] + [[Q]].v[0]);
// CHECK: *(tiles::Pack<float, 4> *)((out_y + i * 32) + {{f[0-9]+}}) =
// CHECK: GNNC_EXPORT(forward_0_segment)
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

// A row of one number is computed by a thread alone, which looks a member up, where there is a table
// of them. An empty maximum is 0.
// CHECK: void __launch_bounds__(256, 2) backward_0_segment(
// CHECK: const int team = threadIdx.x / 1, lane = threadIdx.x % 1;
// CHECK: float [[M:acc[0-9]+]] = (-INFINITY);
// CHECK: = (members_g_dst ? (int64_t)members_g_dst[
// CHECK: [[M]] = greaterf([[M]],
// CHECK: if ([[B:begin[0-9]+]] == [[E:end[0-9]+]]) {
// CHECK-NEXT: [[M]] = 0;
// CHECK: (out_y + i * 1)[0] = [[M]];
// CHECK: GNNC_EXPORT(backward_0_segment)

// The functions of phases launch the kernels, whose numbers count on from phase to phase.
// CHECK: GNNC_PHASE int gnnc_forward(
// CHECK: int64_t *cuts = (int64_t *)b[
// CHECK: status = launch(kernels[1], (unsigned)(chunks), 1, 1, 256, 1, 1, 0, stream, arguments, 0);
// CHECK: GNNC_PHASE int gnnc_backward(
// CHECK: status = launch(kernels[3], (unsigned)(chunks), 1, 1, 256, 1, 1, 0, stream, arguments, 0);
func.func @backward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["max"] {
      %j = intra.lookup %members[%p] : index
      %v = intra.load %x[%j] : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}
