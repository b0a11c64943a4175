// RUN: gnn-opt %s -p reorder-linear,hoist-invariants,verify-sets --split-input-file | filecheck %s

// Inputs that stay the same are aggregated once, so the product stands behind although rows get
// narrower.
// CHECK-LABEL: func.func @narrow
// CHECK-NEXT: %xs = inter.at %g[src], %x
// CHECK-NEXT: inter.reduce mean %xs over %g along dst {inter.prepare}
// CHECK-NEXT: inter.contract "k,fk->f"
func.func @narrow(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.constant}, %W : !inter.rows<unit, 2x8xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %a = inter.reduce mean %xs over %g along dst : !inter.rows<N, 8xf32>
  %h = inter.contract "k,fk->f" %a, %W : !inter.rows<N, 2xf32>
  func.return %h : !inter.rows<N, 2xf32>
}

// -----

// A product that is written inside moves behind too, past scalars that depend on the graph and on
// what a call gives after the sum.
// CHECK-LABEL: func.func @inside
// CHECK: inter.reduce sum %{{.*}} over %g along dst {inter.prepare} : !inter.rows<N, 8xf32>
// CHECK: inter.contract "k,kf->f" %{{.*}}, %W
func.func @inside(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.constant}, %e : !inter.rows<N, f32>, %W : !inter.rows<unit, 8x2xf32>) -> !inter.rows<N, 2xf32> {
  %n = inter.count over %g along dst : !inter.rows<N, f32>
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 2xf32>
  %s = inter.mul %n, %h : !inter.rows<N, 2xf32>
  %hs = inter.at %g[src], %s : !inter.rows<g, 2xf32>
  %a = inter.reduce sum %hs over %g along dst : !inter.rows<N, 2xf32>
  %o = inter.mul %e, %a : !inter.rows<N, 2xf32>
  func.return %o : !inter.rows<N, 2xf32>
}

// -----

// GIN: the sum is hoisted, the factor of the node itself is learnt.
// CHECK-LABEL: func.func @gin
// CHECK: %a = inter.reduce sum %xs over %g along dst {inter.prepare}
// CHECK: inter.contract "k,kf->f" %s, %W
func.func @gin(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.constant}, %e : !inter.rows<unit, f32>, %W : !inter.rows<unit, 8x2xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 8xf32>
  %ex = inter.mul %e, %x : !inter.rows<N, 8xf32>
  %s = inter.add %ex, %a : !inter.rows<N, 8xf32>
  %h = inter.contract "k,kf->f" %s, %W : !inter.rows<N, 2xf32>
  func.return %h : !inter.rows<N, 2xf32>
}

// -----

// Not where the weights of the sum are made by a call, under dropout, nor where the product is
// nearly all of the work.
// CHECK-LABEL: func.func @not
// CHECK-NOT: inter.prepare
// CHECK: func.return
func.func @not(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.constant}, %y : !inter.rows<N, 6000xf32> {inter.constant}, %w : !inter.rows<g, f32>, %key : !inter.rows<unit, i64>, %W : !inter.rows<unit, 8x2xf32>, %V : !inter.rows<unit, 6000x64xf32>) -> (!inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 64xf32>) {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %m = inter.mul %w, %xs : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 8xf32>
  %h = inter.contract "k,kf->f" %a, %W : !inter.rows<N, 2xf32>
  %d = inter.dropout %x, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 8xf32>
  %ds = inter.at %g[src], %d : !inter.rows<g, 8xf32>
  %da = inter.reduce sum %ds over %g along dst : !inter.rows<N, 8xf32>
  %i = inter.contract "k,kf->f" %da, %W : !inter.rows<N, 2xf32>
  %ys = inter.at %g[src], %y : !inter.rows<g, 6000xf32>
  %ya = inter.reduce sum %ys over %g along dst : !inter.rows<N, 6000xf32>
  %j = inter.contract "k,kf->f" %ya, %V : !inter.rows<N, 64xf32>
  func.return %h, %i, %j : !inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 64xf32>
}
