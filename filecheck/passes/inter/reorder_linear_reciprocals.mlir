// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// The sum of a softmax leaves the sum over edges as a reciprocal, and what else is divided by it on
// edges is multiplied by that.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[R:.*]] = inter.div %{{.*}}, %s : !inter.rows<N, f32>
// CHECK: %[[AT:.*]] = inter.at %g[dst], %[[R]] : !inter.rows<g[dst], f32>
// CHECK: %{{.*}} = inter.mul %{{.*}}, %[[AT]] : !inter.rows<g, f32>
// CHECK-NOT: inter.div %e
// CHECK: func.return
func.func @softmax(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %e : !inter.rows<g, f32>, %z : !inter.rows<N, f32>, %t : !inter.rows<N, f32>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %s = inter.maximum %t, %one : !inter.rows<N, f32>
  %sd = inter.at %g[dst], %s : !inter.rows<g[dst], f32>
  %p = inter.div %e, %sd : !inter.rows<g, f32>
  %zs = inter.at %g[src], %z : !inter.rows<g[src], f32>
  %m = inter.mul %p, %zs : !inter.rows<g, f32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, f32>
  %q = inter.tanh %p : !inter.rows<g, f32>
  %r = inter.reduce sum %q over %g along src : !inter.rows<N, f32>
  func.return %o, %r : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// A number that may be less than 1 is divided by: its reciprocal may be infinite.
// CHECK-LABEL: func.func @small
// CHECK: inter.div %e, %{{.*}} : !inter.rows<g, f32>
// CHECK: func.return
func.func @small(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %e : !inter.rows<g, f32>, %s : !inter.rows<N, f32>) -> (!inter.rows<g, f32>, !inter.rows<N, f32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %r = inter.div %one, %s : !inter.rows<N, f32>
  %sd = inter.at %g[dst], %s : !inter.rows<g[dst], f32>
  %p = inter.div %e, %sd : !inter.rows<g, f32>
  func.return %p, %r : !inter.rows<g, f32>, !inter.rows<N, f32>
}
