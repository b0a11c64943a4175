// RUN: gnn-opt %s -p "schedule{vector-bytes=16 prefetch=0},cut-stages" -t openmp | filecheck %s

// 33 doubles are more than the registers hold: tiles of 16 in a loop, and the rest behind it.
// CHECK: static void forward_0_segment(
// CHECK: for (int f = 0; f < 32; f += 16) {
// CHECK: f64x2 {{.*}} = (f64x2){0};
// CHECK: STORE(f64x2, (out_y + i * 33) + f, {{.*}});
// CHECK: STORE(f64x2, (out_y + i * 33) + f + 14, {{.*}});
// CHECK: double [[REST:.*]] = 0.0;
// CHECK: ((out_y + i * 33) + 32)[0] = [[REST]];
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x33xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?x33xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %v = intra.load %x[%j] : vector<33xf64>
      intra.yield %v
    } : vector<33xf64>
    intra.store %s, %y[%i]
  }
  func.return
}

// An empty maximum is 0.
// CHECK: static void backward_0_segment(
// CHECK: const int hub =
// CHECK-NEXT: float [[M:s[0-9]+]] = (-INFINITY);
// CHECK: [[M]] = greaterf([[M]],
// CHECK: if (offsets_g_dst[i] == offsets_g_dst[i + 1]) {
// CHECK-NEXT: [[M]] = 0;
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
