// RUN: gnn-opt %s -p "schedule-grid,cut-stages" -t cuda | filecheck %s

// A tile of 64 rows: what the product reads and makes lies in shared memory, and behind it the slab,
// parts of both that products want at hand. Barriers stand between stages, and before a tile is written
// again.
// CHECK: void __launch_bounds__(256, 2) forward_0_matmul(
// CHECK: float *const slab = ((float *)(shared_memory + 3072));
// CHECK: float *const [[X:tile[0-9]+]] = ((float *)(shared_memory + 0));
// CHECK: float *const [[Y:tile[0-9]+]] = ((float *)(shared_memory + 1792));
// CHECK: for (int64_t i0 = lo; i0 < hi; i0 += 64) {
// CHECK: *(([[X]] + r * 7) + {{f[0-9]+}}) =
// CHECK: __syncthreads();
// CHECK-NEXT: /* intra: intra.matmul : vector<5xf32> */
// CHECK-NEXT: matmul_tile<float, 256, 64, 1, 1, 7, 5, 0, 1, 7, 7, 5>(rows, [[X]], in_W, [[Y]], slab);
// CHECK-NEXT: __syncthreads();
// CHECK: = *([[Y]] + r * 5 + {{f[0-9]+}});
// CHECK: *((out_y + i * 5) + {{f[0-9]+}}) =
// CHECK: __syncthreads();
// CHECK-NEXT: }
// CHECK: GNNC_EXPORT(forward_0_matmul)
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x5xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x7xf32>
  %W = intra.input {buffer = "W"} : memref<?x5x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<7xf32>
    %r = intra.apply %a {fn = "relu"} : vector<7xf32>
    %b = intra.matmul %r, %W {spec = "k,fk->f"} : vector<5xf32>
    %c = intra.apply %b {fn = "tanh"} : vector<5xf32>
    intra.store %c, %y[%i]
  }
  func.return
}

// A sum of outer products reads rows where they lie and stays in registers of the block; a kernel
// behind adds the sums of the blocks in order.
// CHECK: void __launch_bounds__(256, 2) backward_0_outer(
// CHECK: OuterTile<float, 256, 64, 1, 1, 7, 5, 7, 5> [[SUM:sum[0-9]+]];
// CHECK: [[SUM]].add(rows, (in_x + i0 * 7), (in_d + i0 * 5), slab, (float *)nullptr);
// CHECK: [[SUM]].template store<0, 5, 1>(((float *)(ws + 0)) + chunk * 35, (float *)nullptr);
// CHECK: void __launch_bounds__(256, 1) backward_0_outer_combine(
// CHECK: add_chunks<float>(((float *)(ws + 0)), chunks, 35, out_s, shared_memory);

// CHECK: status = launch(kernels[0], (unsigned)(chunks), 1, 1, 256, 1, 1, 19456, stream, arguments, 0);
// CHECK: status = launch(kernels[1], (unsigned)(chunks), 1, 1, 256, 1, 1, 16384, stream, arguments, 0);
// CHECK: status = launch(kernels[2], (unsigned)(2), 1, 1, 256, 1, 1, 2048, stream, arguments, 0);
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
