// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48 grain=8192 chunks=256 row-cost=4 prefetch=16},cut-stages" -t openmp | filecheck %s

// Nests that do the same on other buffers share a function, also those of another phase.
// CHECK: static void prepare_0_segment(
// CHECK-NOT: static void prepare_1_segment(
// CHECK: void gnnc_prepare(
// CHECK: prepare_0_segment(threads, n_N, offsets_g_dst, src_of_g_by_dst, in_x, out_y,
// CHECK-NEXT: LAP(prepare, 0);
// CHECK-NEXT: prepare_0_segment(threads, n_M, offsets_h_dst, src_of_h_by_dst, in_z, out_w,
// CHECK-NEXT: LAP(prepare, 1);
func.func @prepare() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %w = intra.output {buffer = "w", domain = #intra.domain<M>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<M>} : memref<?x4xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %m = intra.size {domain = #intra.domain<M>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %others = intra.offsets {domain = #intra.domain<h>, along = ["dst"]} : memref<?xi64>
  %from = intra.member_map {domain = #intra.domain<h>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %s, %y[%i]
  }
  intra.traverse %i in %m {
    %s = intra.segment %p in %others[%i] ["sum"] {
      %j = intra.lookup %from[%p] : index
      %v = intra.load %z[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %s, %w[%i]
  }
  func.return
}

// A maximum in place of the sum is another function; so are wider rows.
// CHECK-NOT: static void forward_0_
// CHECK: static void forward_1_segment(
// CHECK: static void forward_2_segment(
// CHECK: void gnnc_forward(
// CHECK: prepare_0_segment(threads, n_N
// CHECK: forward_1_segment(threads, n_N
// CHECK: forward_2_segment(threads, n_N
func.func @forward() attributes {intra.phase} {
  %a = intra.output {buffer = "a", domain = #intra.domain<N>} : memref<?x4xf32>
  %b = intra.output {buffer = "b", domain = #intra.domain<N>} : memref<?x4xf32>
  %c = intra.output {buffer = "c", domain = #intra.domain<N>} : memref<?x5xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?x5xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %s, %a[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["max"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %s, %b[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %z[%j] : vector<5xf32>
      intra.yield %v
    } : vector<5xf32>
    intra.store %s, %c[%i]
  }
  func.return
}
