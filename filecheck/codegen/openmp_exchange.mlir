// RUN: gnn-opt %s -p "schedule{vector-bytes=32},cut-stages" -t openmp | filecheck %s

// Steps that exchange rows are calls through the last of the phase's buffers, unless one has failed
// before. The nest between start and wait polls after each block of rows, the one behind does not.
// CHECK: struct gnnc_comm {
// CHECK: static void forward_0_rows(int threads, const int64_t [[N:n_R]], const double *restrict [[X:in_x]], double *restrict [[Y:out_y]], gnnc_comm *comm)
// CHECK: for (int64_t i0 = lo; i0 < hi; i0 += 48) {
// CHECK: for (int r = 0; r < rows; ++r) {
// CHECK: }
// CHECK-NEXT: poll_comm(comm);
// CHECK-NEXT: }
// CHECK: static void forward_1_rows(int threads, const int64_t n_H
// CHECK-NOT: poll_comm
// CHECK: void gnnc_forward(int threads, const int64_t *n, void *const *b) {
// CHECK: gnnc_comm *comm = b[6];
// CHECK-NEXT: if (!comm->failed) comm->start(comm, 0, [[X]], [[TO:t_?[0-9]*]]);
// CHECK-NEXT: SKIP_LAP;
// CHECK-NEXT: forward_0_rows(threads, [[N]], [[X]], [[Y]], comm);
// CHECK-NEXT: LAP(forward, 0);
// CHECK-NEXT: if (!comm->failed) comm->wait(comm, 0);
// CHECK-NEXT: SKIP_LAP;
// CHECK-NEXT: forward_1_rows(threads, n_H, [[TO]], out_z);
// CHECK-NEXT: LAP(forward, 1);
// CHECK-NEXT: if (!comm->failed) comm->all_reduce(comm, 0, (void *const[]){out_a, out_c});
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<R>} : memref<?xf64>
  %z = intra.output {buffer = "z", domain = #intra.domain<H>} : memref<?xf64>
  %a = intra.output {buffer = "a"} : memref<?x3xf32>
  %c = intra.output {buffer = "c"} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf64>
  %r = intra.size {domain = #intra.domain<R>} : index
  %h = intra.size {domain = #intra.domain<H>} : index
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf64>
  intra.move_start %x, %to {plan = "halo"}
  intra.traverse %i in %r {
    %v = intra.load %x[%i] : f64
    intra.store %v, %y[%i]
  }
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %h {
    %v = intra.load %to[%i] : f64
    intra.store %v, %z[%i]
  }
  intra.all_reduce %a, %c {kind = "sum"}
  func.return
}
