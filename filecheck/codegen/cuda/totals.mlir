// RUN: gnn-opt %s -p "schedule-grid,cut-stages" -t cuda | filecheck %s

// Threads keep their part of a total in registers, a block combines them, and a kernel behind adds up
// what the blocks have, in order: its threads share the blocks, 32 numbers a block side by side. Of no
// rows an extreme is 0.
// CHECK: void __launch_bounds__(256, 2) forward_0_total(
// CHECK: double [[M:total[0-9]+]] = (-INFINITY);
// CHECK: double [[S:total[0-9]+]][3];
// CHECK: [[M]] = greater([[M]],
// CHECK: [[S]][{{k[0-9]+}} * 1 + 0] = ([[S]][{{k[0-9]+}} * 1 + 0] +
// CHECK: (((double *)(ws + 0)) + chunk * 1)[k] =
// CHECK: (((double *)(ws + [[PLACE:[0-9]+]])) + chunk * 3)[k] =
// CHECK: void __launch_bounds__(256, 1) forward_0_total_combine(
// CHECK: double s = (-INFINITY);
// CHECK: s = greater(s, ((double *)(ws + 0))[c * 1 + e]);
// CHECK: room[threadIdx.x] = s;
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: if (part == 0 && e < 1) {
// CHECK-NEXT: for (int q = 1; q < 8; ++q) s = greater(s, room[q * 32 + threadIdx.x]);
// CHECK-NEXT: out_u[e] = n_N ? s : 0;
// CHECK-NEXT: }
// CHECK-NEXT: __syncthreads();
// CHECK: s = (s + ((double *)(ws + [[PLACE]]))[c * 3 + e]);
// CHECK: out_t[e] = s;
// CHECK: status = launch(kernels[1], (unsigned)(1), 1, 1, 256, 1, 1, 2048, stream, arguments, 0);
func.func @forward() attributes {intra.phase} {
  %t = intra.output {buffer = "t"} : memref<?x3xf64>
  %u = intra.output {buffer = "u"} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3xf64>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<3xf64>
    %b = intra.load %z[%i] : f64
    intra.total %a, %t {kind = "sum"}
    intra.total %b, %u {kind = "max"}
  }
  func.return
}
