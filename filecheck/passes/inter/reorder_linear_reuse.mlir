// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// The backward of softmax: sum of p * (G . z) per destination is G . (sum of p * z), the output.
// CHECK-LABEL: func.func @softmax
// CHECK: %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 2x3xf32>
// CHECK: %s = inter.contract "hf,hf->h" %G, %o : !inter.rows<N, 2xf32>
// CHECK-NEXT: func.return %o, %s
func.func @softmax(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %p : !inter.rows<g, 2xf32>, %z : !inter.rows<N, 2x3xf32>, %G : !inter.rows<N, 2x3xf32>) -> (!inter.rows<N, 2x3xf32>, !inter.rows<N, 2xf32>) {
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 2x3xf32>
  %pc = inter.reshape %p : !inter.rows<g, 2x1xf32>
  %m = inter.mul %pc, %zs : !inter.rows<g, 2x3xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 2x3xf32>
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 2x3xf32>
  %dp = inter.contract "hf,hf->h" %zs, %Gd : !inter.rows<g, 2xf32>
  %pd = inter.mul %dp, %p : !inter.rows<g, 2xf32>
  %s = inter.reduce sum %pd over %g along dst : !inter.rows<N, 2xf32>
  func.return %o, %s : !inter.rows<N, 2x3xf32>, !inter.rows<N, 2xf32>
}

// -----

// One head, dropout on the attention.
// CHECK-LABEL: func.func @dropped
// CHECK: %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 1x3xf32>
// CHECK-NOT: inter.reduce
// CHECK: inter.contract "{{.*}}" %{{.*}}, %{{.*}} : !inter.rows<N, f32>
// CHECK-NOT: inter.reduce
// CHECK: func.return
func.func @dropped(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %key : !inter.rows<unit, i64>, %p : !inter.rows<g, 1xf32>, %z : !inter.rows<N, 1x3xf32>, %G : !inter.rows<N, 1x3xf32>) -> (!inter.rows<N, 1x3xf32>, !inter.rows<N, 1xf32>) {
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 1x3xf32>
  %q = inter.dropout %p, %key over %g {p = 0.5, site = 3} : !inter.rows<g, 1xf32>
  %qc = inter.reshape %q : !inter.rows<g, 1x1xf32>
  %m = inter.mul %qc, %zs : !inter.rows<g, 1x3xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 1x3xf32>
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 1x3xf32>
  %c = inter.mul %zs, %Gd : !inter.rows<g, 1x3xf32>
  %dq = inter.row_reduce sum %c [1] : !inter.rows<g, 1xf32>
  %dp = inter.dropout %dq, %key over %g {p = 0.5, site = 3} : !inter.rows<g, 1xf32>
  %pd = inter.mul %p, %dp : !inter.rows<g, 1xf32>
  %s = inter.reduce sum %pd over %g along dst : !inter.rows<N, 1xf32>
  func.return %o, %s : !inter.rows<N, 1x3xf32>, !inter.rows<N, 1xf32>
}

// -----

// The same with more heads than a mask apart from its product has (linear/masks.py).
// CHECK-LABEL: func.func @many_heads
// CHECK: %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 32x3xf32>
// CHECK-NOT: inter.reduce
// CHECK: inter.contract "{{.*}}" %{{.*}}, %{{.*}} : !inter.rows<N, 32xf32>
// CHECK-NOT: inter.reduce
// CHECK: func.return
func.func @many_heads(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %key : !inter.rows<unit, i64>, %p : !inter.rows<g, 32xf32>, %z : !inter.rows<N, 32x3xf32>, %G : !inter.rows<N, 32x3xf32>) -> (!inter.rows<N, 32x3xf32>, !inter.rows<N, 32xf32>) {
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 32x3xf32>
  %q = inter.dropout %p, %key over %g {p = 0.5, site = 3} : !inter.rows<g, 32xf32>
  %qc = inter.reshape %q : !inter.rows<g, 32x1xf32>
  %m = inter.mul %qc, %zs : !inter.rows<g, 32x3xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 32x3xf32>
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 32x3xf32>
  %c = inter.mul %zs, %Gd : !inter.rows<g, 32x3xf32>
  %dq = inter.row_reduce sum %c [1] : !inter.rows<g, 32xf32>
  %dp = inter.dropout %dq, %key over %g {p = 0.5, site = 3} : !inter.rows<g, 32xf32>
  %pd = inter.mul %p, %dp : !inter.rows<g, 32xf32>
  %s = inter.reduce sum %pd over %g along dst : !inter.rows<N, 32xf32>
  func.return %o, %s : !inter.rows<N, 32x3xf32>, !inter.rows<N, 32xf32>
}

// -----

// Kept: no such sum before; a sum along another map; another dropout; other numbers of its rows.
// CHECK-LABEL: func.func @kept
// CHECK: inter.reduce sum %pd over %g along dst : !inter.rows<N, f32>
// CHECK: inter.reduce sum %qd over %g along dst : !inter.rows<N, f32>
// CHECK: inter.reduce sum %qi over %g along dst : !inter.rows<N, f32>
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %i : !inter.rows<g, i64>, %key : !inter.rows<unit, i64>, %p : !inter.rows<g, f32>, %z : !inter.rows<N, 3xf32>, %G : !inter.rows<N, 3xf32>) -> (!inter.rows<N, 3xf32>, !inter.rows<N, 3xf32>, !inter.rows<N, f32>, !inter.rows<N, f32>, !inter.rows<N, f32>) {
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 3xf32>
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 3xf32>
  %pc = inter.reshape %p : !inter.rows<g, 1xf32>
  %m = inter.mul %pc, %zs : !inter.rows<g, 3xf32>
  %o = inter.reduce sum %m over %g along src : !inter.rows<N, 3xf32>
  %q = inter.dropout %p, %key over %g {p = 0.5, site = 0} : !inter.rows<g, f32>
  %qc = inter.reshape %q : !inter.rows<g, 1xf32>
  %n = inter.mul %qc, %zs : !inter.rows<g, 3xf32>
  %t = inter.reduce sum %n over %g along dst : !inter.rows<N, 3xf32>
  %c = inter.contract "f,f->" %zs, %Gd : !inter.rows<g, f32>
  %pd = inter.mul %c, %p : !inter.rows<g, f32>
  %s = inter.reduce sum %pd over %g along dst : !inter.rows<N, f32>
  %dc = inter.dropout %c, %key over %g {p = 0.5, site = 1} : !inter.rows<g, f32>
  %qd = inter.mul %dc, %p : !inter.rows<g, f32>
  %u = inter.reduce sum %qd over %g along dst : !inter.rows<N, f32>
  %di = inter.dropout %c, %key over %g as %i {p = 0.5, site = 0} : !inter.rows<g, f32>
  %qi = inter.mul %di, %p : !inter.rows<g, f32>
  %v = inter.reduce sum %qi over %g along dst : !inter.rows<N, f32>
  func.return %o, %t, %s, %u, %v : !inter.rows<N, 3xf32>, !inter.rows<N, 3xf32>, !inter.rows<N, f32>, !inter.rows<N, f32>, !inter.rows<N, f32>
}
