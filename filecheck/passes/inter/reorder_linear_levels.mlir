// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// A sum over relations of means over their edges: one sum over the edges, by the share of each.
// CHECK-LABEL: func.func @means
// CHECK: %[[COUNT:.*]] = inter.count over %g along (dst, rel) : !inter.rows<g[dst, rel], f32>
// CHECK: inter.div %{{.*}}, %{{.*}} : !inter.rows<g[dst, rel], f32>
// CHECK-NOT: inter.reduce mean
// CHECK: inter.reduce sum %{{.*}} over %g along dst : !inter.rows<N, 4xf32>
// CHECK-NOT: inter.reduce
// CHECK: func.return
func.func @means(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (dst, rel)>, %h : !inter.rows<g, 4xf32>) -> !inter.rows<N, 4xf32> {
  %m = inter.reduce mean %h over %g along (dst, rel) : !inter.rows<g[dst, rel], 4xf32>
  %o = inter.reduce sum %m over %g[dst, rel] along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// Kept where the level is no sum, or is read elsewhere too.
// CHECK-LABEL: func.func @kept
// CHECK: inter.reduce max %h over %g along (dst, rel)
// CHECK: inter.reduce sum %{{.*}} over %g[dst, rel] along dst
// CHECK: %m = inter.reduce mean %h over %g along (dst, rel)
// CHECK: inter.reduce sum %m over %g[dst, rel] along dst
func.func @kept(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (dst, rel)>, %h : !inter.rows<g, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<g[dst, rel], 4xf32>) {
  %t = inter.reduce max %h over %g along (dst, rel) : !inter.rows<g[dst, rel], 4xf32>
  %o = inter.reduce sum %t over %g[dst, rel] along dst : !inter.rows<N, 4xf32>
  %m = inter.reduce mean %h over %g along (dst, rel) : !inter.rows<g[dst, rel], 4xf32>
  %q = inter.reduce sum %m over %g[dst, rel] along dst : !inter.rows<N, 4xf32>
  func.return %o, %q, %m : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<g[dst, rel], 4xf32>
}
