// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48 chunks=256},cut-stages" -t openmp | filecheck %s

// The matrix is packed once a call into panels of whole vectors, whatever the order of its letters.
// CHECK: static void forward_0_matmul({{.*}}, float *[[PACKED:packed[0-9]+]])
// CHECK: for (int k = 0; k < 7; ++k) {
// CHECK: [[PACKED]]{{.*}} < 5 ? in_W[{{.*}} + k * 1 + {{.*}} * 7] : 0;
// A block of rows passes through tiles; the product writes the output itself, cut to its 5 columns.
// CHECK: for (int64_t i0 = lo; i0 < hi; i0 += 48) {
// CHECK: in_x + i0 * 7
// CHECK: out_y + i0 * 5
// CHECK: MATMUL_TILE(f32x8, 8, 8, 1, 7, A, 7, W, C, 5, 5, f == 0, 0, (void)0);
// Rows that are left pass through shorter tiles, the last one alone.
// CHECK: for (; r + 2 <= m; r += 2) {
// CHECK: MATMUL_TILE(f32x8, 8, 2, 1, 7, A, 7, W, C, 5, 5, 0, 0, (void)0);
// CHECK: for (; r + 1 <= m; r += 1) {
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x5xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x7xf32>
  %W = intra.input {buffer = "W"} : memref<?x5x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<7xf32>
    %b = intra.matmul %a, %W {spec = "k,fk->f"} : vector<5xf32>
    intra.store %b, %y[%i]
  }
  func.return
}

// A sum of outer products keeps a partial sum a chunk; they are added in the order of the chunks.
// CHECK: static void backward_0_outer({{.*}}, float *[[PARTIAL:partial[0-9]+]], const int64_t reserved)
// CHECK: memset([[PARTIAL]]_c, 0,
// CHECK: OUTER_TILE(f32x8, 8,
// CHECK: #pragma omp for schedule(static)
// CHECK: for (int64_t c = 0; c < chunks; ++c) sum += LOAD(f32x8, [[PARTIAL]] +
// CHECK: out_s[{{.*}}] = sum[j];
func.func @backward() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x7x5xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x7xf32>
  %d = intra.input {buffer = "d", domain = #intra.domain<N>} : memref<?x5xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<7xf32>
    %b = intra.load %d[%i] : vector<5xf32>
    intra.outer %a, %b, %s {spec = "k,f->kf"}
  }
  func.return
}

// A large sum is kept once where there is no memory for those of chunks: after each round of blocks
// threads share its columns.
// All panels of columns use a slab of a long row while it is near, and the slab that follows is fetched.
// CHECK: static void predict_0_outer({{.*}}, float *restrict out_s, float *partial1, const int64_t reserved, const int64_t kept)
// CHECK: if (kept == 0) {
// CHECK: memset(partial1_c, 0,
// CHECK: else {
// CHECK: for (int64_t lo = 0; lo == 0 || lo < size; lo += 576) {
// CHECK: #pragma omp for schedule(dynamic, 1)
// CHECK-NEXT: for (int64_t i0 = lo; i0 < hi; i0 += 96) {
// CHECK: #pragma omp for schedule(dynamic, 1) collapse(2) nowait
// CHECK-NEXT: for (int b = 0; b < 1; ++b) {
// CHECK-NEXT: for (int p = 0; p < 576; p += 192) {
// CHECK: for (int s = p + 0; s < p + 192; s += 32) {
// CHECK-NEXT: const int64_t next = s + 32 < p + 192 ? 32 : (int64_t)rows * 1 * 745 - (s - p);
// CHECK-NEXT: for (int f = 0; f < 24; f += 24) {
// CHECK-NEXT: for (int k = s + 0; k < s + 32; k += 4) {
// CHECK: OUTER_TILE(f32x8, 8, 4, 3, {{.*}}, f == 0 && (k - s) % 16 == 0, next, (void)0);
// CHECK: for (int f = 24; f < 40; f += 16) {
// CHECK: OUTER_TILE(f32x8, 8, 4, 2,
// CHECK: *into = (lo > 0 ? *into : 0) + near[k * 40 + f];
// CHECK: for (int p = 576; p < 745; p += 169) {
// CHECK: for (int s = p + 160; s < p + 169; s += 9) {
func.func @predict() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x745x40xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x745xf32>
  %d = intra.input {buffer = "d", domain = #intra.domain<N>} : memref<?x40xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<745xf32>
    %b = intra.load %d[%i] : vector<40xf32>
    intra.outer %a, %b, %s {spec = "k,f->kf"}
  }
  func.return
}
