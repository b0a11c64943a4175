// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48 grain=8192 chunks=256 row-cost=4 prefetch=16},cut-stages" -t openmp | filecheck %s

// Layers that differ by a number, or by which dropout they draw, share a function that is given both.
// Numbers that hardly ever differ stay in the text.
// CHECK: static void forward_0_rows({{.*}}const float number0, const uint32_t number1)
// CHECK: SPLAT(f32x8, number0)
// CHECK: SPLAT(f32x8, 2.0f)
// CHECK: dropoutf({{.*}}, number1, i, 0.5);
// CHECK-NOT: static void forward_1_rows(
// CHECK: void gnnc_forward(
// CHECK: forward_0_rows(threads, n_N, in_x, in_key, out_y, 0.25f, 3);
// CHECK: forward_0_rows(threads, n_N, in_x, in_key, out_z, 0.75f, 4);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf32>
  %key = intra.input {buffer = "key"} : memref<?xi64>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %one = intra.first : index
    %k = intra.load %key[%one] : i64
    %v = intra.load %x[%i] : vector<8xf32>
    %c = intra.const {value = 0.25 : f32} : vector<8xf32>
    %two = intra.const {value = 2.0 : f32} : vector<8xf32>
    %s = intra.apply %v, %c {fn = "mul"} : vector<8xf32>
    %p = intra.apply %s, %two {fn = "pow"} : vector<8xf32>
    %d = intra.dropout %p, %k, %i {p = 0.5 : f64, site = 3 : i64} : vector<8xf32>
    intra.store %d, %y[%i]
  }
  intra.traverse %i in %n {
    %one = intra.first : index
    %k = intra.load %key[%one] : i64
    %v = intra.load %x[%i] : vector<8xf32>
    %c = intra.const {value = 0.75 : f32} : vector<8xf32>
    %two = intra.const {value = 2.0 : f32} : vector<8xf32>
    %s = intra.apply %v, %c {fn = "mul"} : vector<8xf32>
    %p = intra.apply %s, %two {fn = "pow"} : vector<8xf32>
    %d = intra.dropout %p, %k, %i {p = 0.5 : f64, site = 4 : i64} : vector<8xf32>
    intra.store %d, %z[%i]
  }
  func.return
}
