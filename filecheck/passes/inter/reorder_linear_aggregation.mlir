// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// Rows get narrower: the product first, whatever is written.
// CHECK-LABEL: func.func @narrow
// CHECK-NEXT: %[[H:.*]] = inter.contract "k,fk->f" %x, %W : !inter.rows<N, 2xf32>
// CHECK-NEXT: inter.at %g[src], %[[H]]
// CHECK-NEXT: inter.reduce mean
func.func @narrow(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<unit, 2x8xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %a = inter.reduce mean %xs over %g along dst : !inter.rows<N, 8xf32>
  %h = inter.contract "k,fk->f" %a, %W : !inter.rows<N, 2xf32>
  func.return %h : !inter.rows<N, 2xf32>
}

// -----

// Rows get wider: the aggregation first; scalars per node and edge go along, the bias counts.
// CHECK-LABEL: func.func @wide
// CHECK: %[[S:.*]] = inter.reduce sum %{{.*}} over %g along dst : !inter.rows<N, 2xf32>
// CHECK: %[[H:.*]] = inter.contract "k,kf->f" %{{.*}}, %W : !inter.rows<N, 8xf32>
// CHECK: inter.reduce sum %w over %g along dst : !inter.rows<N, f32>
// CHECK: %[[B:.*]] = inter.mul %{{.*}}, %b : !inter.rows<N, 8xf32>
// CHECK: inter.add %[[H]], %[[B]] : !inter.rows<N, 8xf32>
func.func @wide(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf32>, %w : !inter.rows<g, f32>, %y : !inter.rows<N, f32>, %W : !inter.rows<unit, 2x8xf32>, %b : !inter.rows<unit, 8xf32>) -> !inter.rows<N, 8xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
  %hb = inter.add %h, %b : !inter.rows<N, 8xf32>
  %hs = inter.at %g[src], %hb : !inter.rows<g, 8xf32>
  %yd = inter.at %g[dst], %y : !inter.rows<g, f32>
  %n = inter.mul %w, %yd : !inter.rows<g, f32>
  %nc = inter.reshape %n : !inter.rows<g, 1xf32>
  %m = inter.mul %nc, %hs : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 8xf32>
  func.return %a : !inter.rows<N, 8xf32>
}

// -----

// Training: with an input that needs no gradient, aggregation first saves the transposed gather, so
// rows may be a little wider there; equal widths are left alone where it does need one.
// CHECK-LABEL: func.func @training
// CHECK-NEXT: inter.at %g[src], %x
// CHECK-NEXT: inter.reduce sum
// CHECK-NEXT: %h = inter.contract "k,kf->f" {{.*}} : !inter.rows<N, 5xf32>
// CHECK-NEXT: inter.relu
// CHECK-NEXT: %k = inter.contract
// CHECK-NEXT: inter.at
func.func @training(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 6xf32>, %W : !inter.rows<unit, 6x5xf32> {inter.needs_grad}, %V : !inter.rows<unit, 5x5xf32> {inter.needs_grad}) -> !inter.rows<N, 5xf32> {
  %h0 = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 5xf32>
  %hs = inter.at %g[src], %h0 : !inter.rows<g, 5xf32>
  %h = inter.reduce sum %hs over %g along dst : !inter.rows<N, 5xf32>
  %r = inter.relu %h : !inter.rows<N, 5xf32>
  %k = inter.contract "k,kf->f" %r, %V : !inter.rows<N, 5xf32>
  %ks = inter.at %g[src], %k : !inter.rows<g, 5xf32>
  %o = inter.reduce sum %ks over %g along dst : !inter.rows<N, 5xf32>
  func.return %o : !inter.rows<N, 5xf32>
}

// -----

// GIN: (1 + eps) x + sum x, one product for both terms.
// CHECK-LABEL: func.func @gin
// CHECK-NEXT: %[[H:.*]] = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 2xf32>
// CHECK-NEXT: inter.mul %e, %[[H]]
// CHECK-NEXT: inter.at %g[src], %[[H]]
// CHECK-NOT: inter.contract
// CHECK: func.return
func.func @gin(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %e : !inter.rows<unit, f32>, %W : !inter.rows<unit, 8x2xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 8xf32>
  %ex = inter.mul %e, %x : !inter.rows<N, 8xf32>
  %s = inter.add %ex, %a : !inter.rows<N, 8xf32>
  %h = inter.contract "k,kf->f" %s, %W : !inter.rows<N, 2xf32>
  func.return %h : !inter.rows<N, 2xf32>
}

// -----

// Kept: max, an aggregation or a product that others use too.
// CHECK-LABEL: func.func @kept
// CHECK: inter.reduce max %xs over %g along dst : !inter.rows<N, 8xf32>
// CHECK: inter.reduce sum %xs over %g along dst : !inter.rows<N, 8xf32>
// CHECK: inter.reduce sum %ks over %g along dst : !inter.rows<N, 16xf32>
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<unit, 8x2xf32>, %V : !inter.rows<unit, 2x16xf32>)
    -> (!inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 8xf32>, !inter.rows<N, 16xf32>, !inter.rows<N, 16xf32>) {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %t = inter.reduce max %xs over %g along dst : !inter.rows<N, 8xf32>
  %h = inter.contract "k,kf->f" %t, %W : !inter.rows<N, 2xf32>
  %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 8xf32>
  %i = inter.contract "k,kf->f" %a, %W : !inter.rows<N, 2xf32>
  %k = inter.contract "k,kf->f" %i, %V : !inter.rows<N, 16xf32>
  %ks = inter.at %g[src], %k : !inter.rows<g, 16xf32>
  %o = inter.reduce sum %ks over %g along dst : !inter.rows<N, 16xf32>
  func.return %h, %i, %a, %k, %o : !inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 8xf32>, !inter.rows<N, 16xf32>, !inter.rows<N, 16xf32>
}
