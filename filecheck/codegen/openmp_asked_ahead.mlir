// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48},cut-stages" -t openmp | filecheck %s
// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48 prefetch=0},cut-stages" -t openmp | filecheck %s --check-prefix=ALONE

// What the next block of rows gathers, tiles of the products of this block ask for: the rows of 64
// numbers a cache line at a time, and behind each the row of 4. Members are those of the next
// block's groups, and no more than what a part of the second-level cache holds.
// CHECK: static void forward_0_segment_matmul(
// CHECK: const int rows = (int)min64(48, hi - i0);
// CHECK-NEXT: asked coming = {0, 0, 0};
// CHECK-NEXT: coming.member = offsets_g_dst[i0 + rows];
// CHECK-NEXT: coming.end = min64(offsets_g_dst[min64(i0 + rows + 48, hi)], coming.member + 481);
// CHECK: MATMUL_TILE(
// CHECK-SAME: ASK_FOR_LINE(coming, in_x + (int64_t)src_of_g_by_dst[coming.member] * 64, 256,
// CHECK-SAME: PREFETCH_ROW(in_a + (int64_t)src_of_g_by_dst[coming.member] * 4, 16, 2);)
// ALONE-NOT: ASK_FOR_LINE(coming
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x64xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<N>} : memref<?x4xf32>
  %W = intra.input {buffer = "W"} : memref<?x64x8xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s, %t = intra.segment %p in %offsets[%i] ["sum", "sum"] {
      %j = intra.lookup %src[%p] : index
      %u = intra.load %a[%j] : vector<4xf32>
      %v = intra.load %x[%j] : vector<64xf32>
      intra.yield %v, %u
    } : vector<64xf32>, vector<4xf32>
    %z = intra.matmul %s, %W {spec = "k,kf->f"} : vector<8xf32>
    intra.store %z, %y[%i]
  }
  func.return
}

// Rows that the nest's own rows look up: those of the next block.
// CHECK: static void backward_0_matmul(
// CHECK: coming.member = i0 + rows;
// CHECK-NEXT: coming.end = min64(min64(i0 + rows + 48, hi), coming.member + 512);
// CHECK: MATMUL_TILE({{.*}}ASK_FOR_LINE(coming, in_x + (int64_t)map_g_src[coming.member] * 64, 256, (void)0));
func.func @backward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<g>} : memref<?x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x64xf32>
  %W = intra.input {buffer = "W"} : memref<?x64x8xf32>
  %n = intra.size {domain = #intra.domain<g>} : index
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %j = intra.lookup %src[%i] : index
    %v = intra.load %x[%j] : vector<64xf32>
    %z = intra.matmul %v, %W {spec = "k,kf->f"} : vector<8xf32>
    intra.store %z, %y[%i]
  }
  func.return
}
