// RUN: gnn-opt %s -p raise,verify-sets --split-input-file | filecheck %s

// GCN's normalisation as PyG and users write it, over a graph with loops added and no weights.
// CHECK-LABEL: func.func @normalisation
// CHECK: %[[D:.*]] = inter.count over %u along dst : !inter.rows<N, f32>
// CHECK-NEXT: %dis = inter.rsqrt %[[D]] {zero = 0.0} : !inter.rows<N, f32>
// CHECK-NEXT: func.return %dis
func.func @normalisation(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) -> !inter.rows<N, f32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %half = inter.const -0.5 : !inter.rows<unit, f32>
  %inf = inter.const inf : !inter.rows<unit, f32>
  %f = inter.filter %g {no_loops} : !inter.set<f, src: N, dst: N, parent: g mono>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %f, %l : !inter.set<u, src: N onto, dst: N onto, parts f l>
  %w = inter.stack %u, %one, %one : !inter.rows<u, f32>
  %deg = inter.reduce sum %w over %u along dst : !inter.rows<N, f32>
  %p = inter.pow %deg, %half : !inter.rows<N, f32>
  %a = inter.abs %p : !inter.rows<N, f32>
  %i = inter.eq %a, %inf : !inter.rows<N, i1>
  %dis = inter.where %i, %zero, %p : !inter.rows<N, f32>
  func.return %dis : !inter.rows<N, f32>
}

// -----

// A sum over a count is a mean; not where the count is another one, or is not kept above 0.
// CHECK-LABEL: func.func @means
// CHECK: %m = inter.reduce mean %xs over %g along dst : !inter.rows<N, 4xf32>
// CHECK: %a = inter.div %s, %outc
// CHECK: %b = inter.div %s, %inc
func.func @means(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %s = inter.reduce sum %xs over %g along dst : !inter.rows<N, 4xf32>
  %in = inter.reduce sum %one over %g along dst : !inter.rows<N, f32>
  %out = inter.reduce sum %one over %g along src : !inter.rows<N, f32>
  %in1 = inter.maximum %in, %one : !inter.rows<N, f32>
  %out1 = inter.maximum %out, %one : !inter.rows<N, f32>
  %in1c = inter.reshape %in1 : !inter.rows<N, 1xf32>
  %outc = inter.reshape %out1 : !inter.rows<N, 1xf32>
  %inc = inter.reshape %in : !inter.rows<N, 1xf32>
  %m = inter.div %s, %in1c : !inter.rows<N, 4xf32>
  %a = inter.div %s, %outc : !inter.rows<N, 4xf32>
  %b = inter.div %s, %inc : !inter.rows<N, 4xf32>
  func.return %m, %a, %b : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// GAT's scores; a sum over a dimension that one factor lacks, and a product used twice, stay.
// CHECK-LABEL: func.func @scores
// CHECK: %s = inter.contract "ab,ab->a" %z, %{{.*}} : !inter.rows<N, 2xf32>
// CHECK: inter.row_reduce sum %n [0, 1]
// CHECK: inter.row_reduce sum %q [1]
func.func @scores(%N : !inter.set<N>, %z : !inter.rows<N, 2x8xf32>, %a : !inter.rows<unit, 1x2x8xf32>, %c : !inter.rows<N, 2x1xf32>) -> (!inter.rows<N, 2xf32>, !inter.rows<N, f32>, !inter.rows<N, 2xf32>, !inter.rows<N, 2x8xf32>) {
  %ar = inter.reshape %a : !inter.rows<unit, 2x8xf32>
  %m = inter.mul %z, %ar : !inter.rows<N, 2x8xf32>
  %s = inter.row_reduce sum %m [1] : !inter.rows<N, 2xf32>
  %n = inter.mul %z, %c : !inter.rows<N, 2x8xf32>
  %t = inter.row_reduce sum %n [0, 1] : !inter.rows<N, f32>
  %q = inter.mul %z, %z : !inter.rows<N, 2x8xf32>
  %r = inter.row_reduce sum %q [1] : !inter.rows<N, 2xf32>
  func.return %s, %t, %r, %q : !inter.rows<N, 2xf32>, !inter.rows<N, f32>, !inter.rows<N, 2xf32>, !inter.rows<N, 2x8xf32>
}

// -----

// Neutral factors and terms; a result keeps its type.
// CHECK-LABEL: func.func @neutral
// CHECK-NEXT: %one = inter.const 1.0
// CHECK-NEXT: %w = inter.mul %u, %one : !inter.rows<N, f32>
// CHECK-NEXT: func.return %x, %w
func.func @neutral(%N : !inter.set<N>, %x : !inter.rows<N, f32>, %u : !inter.rows<unit, f32>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %a = inter.mul %one, %x : !inter.rows<N, f32>
  %b = inter.div %a, %one : !inter.rows<N, f32>
  %d = inter.sub %b, %zero : !inter.rows<N, f32>
  %w = inter.mul %u, %one : !inter.rows<N, f32>
  func.return %d, %w : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// Also over a count of integers, clamped as torch clamps them; not where it is clamped to another
// number, or compared with another one.
// CHECK-LABEL: func.func @integer_means
// CHECK: %m = inter.reduce mean %x over %g along dst : !inter.rows<N, 4xf32>
// CHECK: %a = inter.div %s, %twoc
// CHECK: %b = inter.div %s, %oddc
func.func @integer_means(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %one = inter.const 1 : !inter.rows<unit, i64>
  %two = inter.const 2 : !inter.rows<unit, i64>
  %n = inter.count over %g along dst : !inter.rows<N, i64>
  %none = inter.lt %n, %one : !inter.rows<N, i1>
  %few = inter.lt %n, %two : !inter.rows<N, i1>
  %clamped = inter.where %none, %one, %n : !inter.rows<N, i64>
  %twos = inter.where %few, %two, %n : !inter.rows<N, i64>
  %odd = inter.where %few, %one, %n : !inter.rows<N, i64>
  %c = inter.cast %clamped : !inter.rows<N, f32>
  %twoc = inter.cast %twos : !inter.rows<N, f32>
  %oddc = inter.cast %odd : !inter.rows<N, f32>
  %s = inter.reduce sum %x over %g along dst : !inter.rows<N, 4xf32>
  %m = inter.div %s, %c : !inter.rows<N, 4xf32>
  %a = inter.div %s, %twoc : !inter.rows<N, 4xf32>
  %b = inter.div %s, %oddc : !inter.rows<N, 4xf32>
  func.return %m, %a, %b : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}
