// RUN: gnn-opt %s -p "schedule{vector-bytes=64},cut-stages" -t openmp | filecheck %s
// RUN: gnn-opt %s -p "schedule{vector-bytes=16},cut-stages" -t openmp | filecheck %s --check-prefix=WHOLE

// Rows of 7: lanes behind the end count for nothing in a maximum, and a chunk's sum of all rows has
// a cache line of its own, of which a whole vector is read and written.
// CHECK: static void forward_0_total(
// CHECK: float *[[TOTAL:partial[0-9]+]]_c = [[TOTAL]] + c * 16;
// CHECK: f32x8 [[E:v[0-9]+]] = exp_f32x8(LOAD_SOME(f32x8, 7, [[X:q[0-9]+]]));
// CHECK: f32x8 [[M:v[0-9]+]] = SELECT(f32x8, m32x8, FIRST(m32x8, 8, 7), [[E]], SPLAT(f32x8, (-INFINITY)));
// CHECK-NEXT: fold_max_f32x8([[M]])
// CHECK: STORE(f32x8, [[TOTAL]]_c, (LOAD(f32x8, [[TOTAL]]_c) + [[E]]));
// Vectors that are read as a whole only: none but falling powers of two.
// WHOLE: static void forward_0_total(
// WHOLE: f32x4 {{v[0-9]+}} = exp_f32x4(LOAD(f32x4, [[X:q[0-9]+]]));
// WHOLE-NEXT: f32x2 {{v[0-9]+}} = exp_f32x2(LOAD(f32x2, [[X]] + 4));
// WHOLE-NEXT: float {{v[0-9]+}} = exp_f32(([[X]] + 6)[0]);
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %t = intra.output {buffer = "t"} : memref<?x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : vector<7xf32>
    %e = intra.apply %v {fn = "exp"} : vector<7xf32>
    %m = intra.fold %e {kind = "max", dims = [0]} : f32
    intra.store %m, %y[%i]
    intra.total %e, %t {kind = "sum"}
  }
  func.return
}
