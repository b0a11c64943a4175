// RUN: gnn-opt %s -p "schedule-grid,cut-stages" -t cuda | filecheck %s

// A matrix and a sum for each relation: a tile is cut into runs of one relation. Sums begin as 0, for
// relations without rows; one whose rows lie in one block is written there, others go to two places a
// block, for the relation that the block before has too and for the one that the next has.
// CHECK: forward_0_matmul_outer_zero0(
// CHECK: e < n_R * 35; e += (int64_t)gridDim.x * 256) out_s[e] = 0;
// CHECK: void __launch_bounds__(256, 2) forward_0_matmul_outer(
// CHECK: int64_t [[SUM:sum[0-9]+]]_g = -1;
// CHECK: [2 * chunk + threadIdx.x] = -1;
// CHECK-NEXT: __syncthreads();
// CHECK: for (int r0 = 0, r1; r0 < rows; r0 = r1) {
// CHECK-NEXT: const int64_t group = map_g_rel__src__rel[i0 + r0];
// CHECK-NEXT: r1 = r0 + 1;
// CHECK-NEXT: while (r1 < rows && map_g_rel__src__rel[i0 + r1] == group) ++r1;
// CHECK-NEXT: matmul_tile<{{.*}}>(r1 - r0, (in_x + i0 * 7) + r0 * 7, in_W + group * 35, (out_y + i0 * 5) + r0 * 5, slab);
// CHECK: if (group != [[SUM]]_g) {
// CHECK: const bool before = lo > 0 && map_g_rel__src__rel[lo - 1] == [[SUM]]_g;
// CHECK-NEXT: const bool after = hi < n_g_rel__src && map_g_rel__src__rel[hi] == [[SUM]]_g;
// CHECK-NEXT: if (before || after) {
// CHECK-NEXT: const int64_t s = 2 * chunk + !before;
// CHECK: [[SUM]].template store<0, 5, 1>(((float *)(ws + 0)) + s * 35, (float *)nullptr);
// CHECK: [[SUM]].template store<0, 5, 1>(out_s + [[SUM]]_g * 35, (float *)nullptr);
// CHECK: [[SUM]].clear((float *)nullptr);
// CHECK-NEXT: [[SUM]]_g = group;
// CHECK: [[SUM]].add(r1 - r0, (in_x + i0 * 7) + r0 * 7, (in_d + i0 * 5) + r0 * 5, slab, (float *)nullptr);
// CHECK: forward_0_matmul_outer_combine(
// CHECK: add_shared<float>(((float *)(ws + 0)), ((int64_t *)(ws + [[KEYS:[0-9]+]])), chunks, 35, out_s);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<g[rel, src]>} : memref<?x5xf32>
  %s = intra.output {buffer = "s", domain = #intra.domain<R>} : memref<?x7x5xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g[rel, src]>} : memref<?x7xf32>
  %d = intra.input {buffer = "d", domain = #intra.domain<g[rel, src]>} : memref<?x5xf32>
  %W = intra.input {buffer = "W", domain = #intra.domain<R>} : memref<?x7x5xf32>
  %n = intra.size {domain = #intra.domain<g[rel, src]>} : index
  %m = intra.size {domain = #intra.domain<R>} : index
  %rel = intra.index_map {domain = #intra.domain<g[rel, src]>, path = "rel"} : memref<?xi32>
  intra.traverse %i in %n {
    %r = intra.lookup %rel[%i] : index
    %a = intra.load %x[%i] : vector<7xf32>
    %b = intra.matmul %a, %W[%r] {spec = "k,kf->f"} : vector<5xf32>
    %c = intra.load %d[%i] : vector<5xf32>
    intra.outer %a, %c, %s[%r of %m] {spec = "k,f->kf"}
    intra.store %b, %y[%i]
  }
  func.return
}
