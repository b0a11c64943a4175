// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48 grain=8192 chunks=256 row-cost=4 prefetch=16},cut-stages" -t openmp | filecheck %s

// One static function a nest, with the buffers and sizes that it uses, and one for the phase.
// CHECK: #define VECTOR_BYTES 32
// CHECK: static void forward_0_segment(int threads, const int64_t [[N:n_N]], const int64_t *restrict [[OFFSETS:offsets_g_dst]], const int32_t *restrict [[SRC:src_of_g_by_dst]], const float *restrict [[X:in_x]], float *restrict [[Y:out_y]], float *[[PIECES:hub_rows[0-9]+]], const int64_t reserved)
// Chunks are a function of the sizes, so partial sums do not depend on the number of threads.
// CHECK: const int64_t chunks = min64(chunk_count([[OFFSETS]], size, 4, 8192, 256), reserved);
// CHECK: #pragma omp parallel num_threads(threads) if (chunks > 1 && threads > 1)
// CHECK: #pragma omp for schedule(dynamic, 1)
// CHECK: for (int64_t c = 0; c < chunks; ++c) {
// CHECK-NEXT: const int64_t lo = cut([[OFFSETS]], size, 4, c, chunks);
// CHECK-NEXT: const int64_t hi = cut([[OFFSETS]], size, 4, c + 1, chunks);
// CHECK: for (int64_t i0 = lo; i0 < hi; i0 += 48) {
// CHECK-NEXT: const int rows = (int)min64(48, hi - i0);
// 11 numbers in a vector of 8 and the first three lanes of one of 4: no access leaves the row.
// CHECK: f32x8 [[A:v[0-9]+]] = (f32x8){0};
// CHECK-NEXT: f32x4 [[B:v[0-9]+]] = (f32x4){0};
// CHECK: for (int64_t [[P:p[0-9]+]] = [[OFFSETS]][i]; [[P]] < [[OFFSETS]][i + 1]; ++[[P]]) {
// CHECK: __builtin_prefetch([[X]]
// CHECK: const int64_t [[J:s[0-9]+]] = [[SRC]][[[P]]];
// CHECK-NEXT: const float *[[ROW:q[0-9]+]] = ([[X]] + [[J]] * 11);
// CHECK-NEXT: [[A]] = ([[A]] + LOAD(f32x8, [[ROW]]));
// CHECK-NEXT: [[B]] = ([[B]] + LOAD_SOME(f32x4, 3, [[ROW]] + 8));
// CHECK: STORE(f32x8, ([[Y]] + i * 11){{.*}}, [[A]]);
// CHECK-NEXT: STORE_SOME(f32x4, 3, ([[Y]] + i * 11) + 8, [[B]]);
// CHECK: void gnnc_forward(int threads, const int64_t *n, void *const *b) {
// What pieces of long rows are reduced to is a temporary: the caller knows of how many chunks.
// CHECK: forward_0_segment(threads, n_N, offsets_g_dst, src_of_g_by_dst, in_x, out_y, b[5], n[1]);
// CHECK-NEXT: LAP(forward, 0);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x11xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x11xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<11xf32>
      intra.yield %v
    } : vector<11xf32>
    intra.store %s, %y[%i]
  }
  func.return
}
