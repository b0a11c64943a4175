// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// EdgeConv's first product, [x_i, x_j - x_i] W: two products on the nodes.
// CHECK-LABEL: func.func @edge_conv
// CHECK: %[[W1:.*]] = inter.slice %W {dim = 1, lo = 0, hi = 8}
// CHECK: %[[W2:.*]] = inter.slice %W {dim = 1, lo = 8, hi = 16}
// CHECK: %[[D:.*]] = inter.sub %[[W1]], %[[W2]] : !inter.rows<unit, 8x8xf32>
// CHECK: %[[XI:.*]] = inter.contract "k,fk->f" %x, %[[D]] : !inter.rows<N, 8xf32>
// CHECK: inter.at %g[dst], %[[XI]]
// CHECK: inter.contract "k,fk->f" %x, %{{.*}} : !inter.rows<N, 8xf32>
// CHECK: inter.at %g[src]
// CHECK: inter.relu %{{.*}} : !inter.rows<g, 8xf32>
func.func @edge_conv(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<unit, 8x16xf32>) -> !inter.rows<N, 8xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 8xf32>
  %d = inter.sub %xs, %xd : !inter.rows<g, 8xf32>
  %c = inter.concat %xd, %d {dim = 0} : !inter.rows<g, 16xf32>
  %h = inter.contract "k,fk->f" %c, %W : !inter.rows<g, 8xf32>
  %r = inter.relu %h : !inter.rows<g, 8xf32>
  %o = inter.reduce max %r over %g along dst : !inter.rows<N, 8xf32>
  func.return %o : !inter.rows<N, 8xf32>
}

// -----

// Edge features keep their own, shorter product per edge.
// CHECK-LABEL: func.func @features
// CHECK: inter.contract "k,kf->f" %x, %{{.*}} : !inter.rows<N, 4xf32>
// CHECK: inter.contract "k,kf->f" %x, %{{.*}} : !inter.rows<N, 4xf32>
// CHECK: inter.contract "k,kf->f" %e, %{{.*}} : !inter.rows<g, 4xf32>
func.func @features(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %e : !inter.rows<g, 2xf32>, %W : !inter.rows<unit, 18x4xf32>) -> !inter.rows<g, 4xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 8xf32>
  %c = inter.concat %xd, %xs, %e {dim = 0} : !inter.rows<g, 18xf32>
  %h = inter.contract "k,kf->f" %c, %W : !inter.rows<g, 4xf32>
  func.return %h : !inter.rows<g, 4xf32>
}

// -----

// Kept: all parts on the edges; parts on the nodes of a product on the nodes; a result so wide that
// gathering it costs more than the product.
// CHECK-LABEL: func.func @kept
// CHECK: %h = inter.contract "k,kf->f" %c, %W : !inter.rows<g, 4xf32>
// CHECK: %n = inter.contract "k,kf->f" %d, %W : !inter.rows<N, 4xf32>
// CHECK: %o = inter.contract "k,kf->f" %p, %V : !inter.rows<g, 512xf32>
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf32>, %y : !inter.rows<N, 2xf32>, %e : !inter.rows<g, 2xf32>, %f : !inter.rows<g, 2xf32>, %W : !inter.rows<unit, 4x4xf32>, %V : !inter.rows<unit, 4x512xf32>) -> (!inter.rows<g, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<g, 512xf32>) {
  %c = inter.concat %e, %f {dim = 0} : !inter.rows<g, 4xf32>
  %h = inter.contract "k,kf->f" %c, %W : !inter.rows<g, 4xf32>
  %d = inter.concat %x, %y {dim = 0} : !inter.rows<N, 4xf32>
  %n = inter.contract "k,kf->f" %d, %W : !inter.rows<N, 4xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 2xf32>
  %yd = inter.at %g[dst], %y : !inter.rows<g, 2xf32>
  %p = inter.concat %xs, %yd {dim = 0} : !inter.rows<g, 4xf32>
  %o = inter.contract "k,kf->f" %p, %V : !inter.rows<g, 512xf32>
  func.return %h, %n, %o : !inter.rows<g, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<g, 512xf32>
}
