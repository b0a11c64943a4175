// RUN: gnn-opt %s -p "schedule-grid,cut-stages" -t cuda | filecheck %s

// Rows of edges are short where lanes are many: each of the 8 lanes takes other edges, and their sums
// are combined in a tree. From then on all lanes have the sum; for the maximum each takes its number
// of it.
// CHECK: void __launch_bounds__(256, 2) forward_0_segment(
// CHECK: float [[A:acc[0-9]+]] = 0.0f, [[B:acc[0-9]+]] = 0.0f;
// CHECK: for (int64_t [[P:p[0-9]+]] = {{begin[0-9]+}} + lane; [[P]] < {{end[0-9]+}}; [[P]] += 8) {
// CHECK: const tiles::Pack<float, 2> [[Q:q[0-9]+]] = *(const tiles::Pack<float, 2> *)(in_e +
// CHECK-NEXT: [[A]] = ([[A]] + [[Q]].v[0]);
// CHECK-NEXT: [[B]] = ([[B]] + [[Q]].v[1]);
// CHECK: for (int d = 4; d; d /= 2) {
// CHECK-NEXT: const float other = __shfl_xor_sync(mask, [[A]], d, 32);
// CHECK-NEXT: [[A]] = ([[A]] + other);
// CHECK: float [[M:s[0-9]+]] = (-INFINITY);
// CHECK: {{f[0-9]+}} == 0 ? [[A]] : [[B]];
// CHECK: __shfl_xor_sync(mask, [[M]], d, 32);
// CHECK: GNNC_EXPORT(forward_0_segment)
// CHECK: launch({{.*}}, 1, 1, 256, 1, 1, 0, stream, arguments, 0);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x32xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32xf32>
  %e = intra.input {buffer = "e", domain = #intra.domain<g>} : memref<?x2xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %v = intra.load %e[%j] : vector<2xf32>
      intra.yield %v
    } : vector<2xf32>
    %t = intra.fold %s {kind = "max", dims = [0]} : f32
    %a = intra.load %x[%i] : vector<32xf32>
    %b = intra.apply %a, %t {fn = "mul"} : vector<32xf32>
    intra.store %b, %y[%i]
  }
  func.return
}
