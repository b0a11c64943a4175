// RUN: gnn-opt %s -t reference | filecheck %s

// A nest without a schedule: every op computes its row before the next one does. What is summed over
// all rows begins before the loop.
// CHECK-LABEL: static void forward_0_segment_matmul_total(
// CHECK:      for (int f = 0; f < 3; ++f)
// CHECK-NEXT:     out_t[f] = 0.0f;
// CHECK-NEXT: for (int64_t i = 0; i < n_N; ++i) {
// CHECK-NEXT:     float v1[2];
// CHECK-NEXT:     for (int f = 0; f < 2; ++f)
// CHECK-NEXT:         v1[f] = (-INFINITY);
// CHECK-NEXT:     for (int64_t p2 = offsets_g_dst[i]; p2 < offsets_g_dst[i + 1]; ++p2) {
// CHECK-NEXT:         const int64_t s3 = src_of_g_by_dst[p2];
// CHECK-NEXT:         const float *v4 = in_x + s3 * 2;
// CHECK-NEXT:         for (int f = 0; f < 2; ++f)
// CHECK-NEXT:             v1[f] = greaterf(v1[f], v4[f]);
// CHECK-NEXT:     }
// CHECK-NEXT:     if (offsets_g_dst[i] == offsets_g_dst[i + 1]) {
// CHECK-NEXT:         for (int f = 0; f < 2; ++f)
// CHECK-NEXT:             v1[f] = 0.0f;
// CHECK-NEXT:     }
// CHECK-NEXT:     float v5[3];
// CHECK-NEXT:     for (int f = 0; f < 3; ++f)
// CHECK-NEXT:         v5[f] = 0.0f;
// CHECK-NEXT:     for (int i_f = 0; i_f < 3; ++i_f)
// CHECK-NEXT:         for (int i_k = 0; i_k < 2; ++i_k)
// CHECK-NEXT:             v5[i_f] += v1[i_k] * in_W[i_k * 3 + i_f];
// CHECK-NEXT:     float v6[3];
// CHECK-NEXT:     for (int f = 0; f < 3; ++f)
// CHECK-NEXT:         v6[f] = exp_f32(v5[f]);
// CHECK-NEXT:     for (int f = 0; f < 3; ++f)
// CHECK-NEXT:         out_t[f] = (out_t[f] + v6[f]);
// CHECK-NEXT: }
func.func @forward() attributes {intra.phase} {
  %t = intra.output {buffer = "t"} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x2xf32>
  %W = intra.input {buffer = "W"} : memref<?x2x3xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["max"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<2xf32>
      intra.yield %v
    } : vector<2xf32>
    %y = intra.matmul %s, %W {spec = "k,kf->f"} : vector<3xf32>
    %z = intra.apply %y {fn = "exp"} : vector<3xf32>
    intra.total %z, %t {kind = "sum"}
  }
  func.return
}

// One exported function, called as that of any target.
// CHECK: void gnnc_forward(int threads, const int64_t *n, void *const *b) {
// CHECK: const int64_t n_N = n[0];
// CHECK: forward_0_segment_matmul_total(n_N,

// A row of a buffer that the nest writes is a copy. A row of one number is a variable.
// CHECK-LABEL: static void backward_0_rows(
// CHECK:          double v1;
// CHECK-NEXT:     v1 = in_w[i];
// CHECK-NEXT:     double v2;
// CHECK-NEXT:     v2 = (v1 + v1);
// CHECK-NEXT:     in_w[i] = v2;
func.func @backward() attributes {intra.phase} {
  %w = intra.input {buffer = "w", domain = #intra.domain<N>, gives = "new_w"} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %v = intra.load %w[%i] : f64
    %y = intra.apply %v, %v {fn = "add"} : f64
    intra.store %y, %w[%i]
  }
  func.return
}
