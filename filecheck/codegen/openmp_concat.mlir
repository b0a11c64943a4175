// RUN: gnn-opt %s -p "schedule{vector-bytes=64},cut-stages" -t openmp | filecheck %s

// Rows side by side: what is behind the dimension is copied at once, without a loop a dimension.
// CHECK: static void forward_0_rows(
// CHECK: for (int i0 = 0; i0 < 2; ++i0) {
// CHECK-NEXT: memcpy([[OUT:a[0-9]+]] + i0 * 20 + 0, [[A:q[0-9]+]] + i0 * 12, sizeof(float) * 12);
// CHECK: for (int i0 = 0; i0 < 2; ++i0) {
// CHECK-NEXT: memcpy([[OUT]] + i0 * 20 + 12, [[B:q[0-9]+]] + i0 * 8, sizeof(float) * 8);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x2x5x4xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<N>} : memref<?x2x3x4xf32>
  %b = intra.input {buffer = "b", domain = #intra.domain<N>} : memref<?x2x2x4xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %v = intra.load %a[%i] : vector<2x3x4xf32>
    %w = intra.load %b[%i] : vector<2x2x4xf32>
    %c = intra.concat %v, %w {dim = 1} : vector<2x5x4xf32>
    intra.store %c, %y[%i]
  }
  func.return
}
