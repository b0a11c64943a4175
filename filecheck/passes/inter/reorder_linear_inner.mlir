// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// The gradient of an attention score: both sums lose the inner product per edge. What stands beside
// it is summed by itself, and at the destination needs no edges but those of the weights.
// CHECK-LABEL: func.func @score
// CHECK-NOT: inter.contract {{.*}} !inter.rows<g,
// CHECK: %dz = inter.reduce sum
// CHECK: %[[GW:.*]] = inter.reduce sum %{{.*}} over %g along src : !inter.rows<N, 2x8xf32>
// CHECK-NEXT: inter.contract "ab,ab->a" %[[GW]], %z : !inter.rows<N, 2xf32>
// CHECK: %[[ZW:.*]] = inter.reduce sum %{{.*}} over %g along dst : !inter.rows<N, 2x8xf32>
// CHECK-NEXT: inter.contract "ab,ab->a" %[[ZW]], %G : !inter.rows<N, 2xf32>
// CHECK-NEXT: %[[W:.*]] = inter.reduce sum %p over %g along dst : !inter.rows<N, 2xf32>
// CHECK-NEXT: inter.mul %D, %[[W]] : !inter.rows<N, 2xf32>
func.func @score(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %p : !inter.rows<g, 2xf32>, %z : !inter.rows<N, 2x8xf32> {inter.needs_grad}, %D : !inter.rows<N, 2xf32>, %G : !inter.rows<N, 2x8xf32> {inter.cotangent})
    -> (!inter.rows<N, 2x8xf32>, !inter.rows<N, 2x8xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>) {
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 2x8xf32>
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 2x8xf32>
  %pw = inter.reshape %p : !inter.rows<g, 2x1xf32>
  %pz = inter.mul %pw, %zs : !inter.rows<g, 2x8xf32>
  %o = inter.reduce sum %pz over %g along dst : !inter.rows<N, 2x8xf32>
  %pG = inter.mul %pw, %Gd : !inter.rows<g, 2x8xf32>
  %dz = inter.reduce sum %pG over %g along src : !inter.rows<N, 2x8xf32>
  %e = inter.contract "hf,hf->h" %Gd, %zs : !inter.rows<g, 2xf32>
  %Dd = inter.at %g[dst], %D : !inter.rows<g[dst], 2xf32>
  %c = inter.sub %e, %Dd : !inter.rows<g, 2xf32>
  %dl = inter.mul %p, %c : !inter.rows<g, 2xf32>
  %a = inter.reduce sum %dl over %g along src : !inter.rows<N, 2xf32>
  %b = inter.reduce sum %dl over %g along dst : !inter.rows<N, 2xf32>
  func.return %o, %dz, %a, %b : !inter.rows<N, 2x8xf32>, !inter.rows<N, 2x8xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>
}

// -----

// Somebody else needs it per edge (the gradient of edge features): it stays, in all sums.
// CHECK-LABEL: func.func @per_edge
// CHECK: %e = inter.contract "f,f->" %Gd, %zs : !inter.rows<g, f32>
// CHECK: inter.reduce sum %{{.*}} over %g along src : !inter.rows<N, f32>
func.func @per_edge(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %p : !inter.rows<g, f32>, %q : !inter.rows<g, f32>, %z : !inter.rows<N, 8xf32>, %G : !inter.rows<N, 8xf32> {inter.cotangent})
    -> (!inter.rows<N, 8xf32>, !inter.rows<N, f32>, !inter.rows<g, f32>) {
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 8xf32>
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 8xf32>
  %pG = inter.mul %p, %Gd : !inter.rows<g, 8xf32>
  %dz = inter.reduce sum %pG over %g along src : !inter.rows<N, 8xf32>
  %e = inter.contract "f,f->" %Gd, %zs : !inter.rows<g, f32>
  %dl = inter.mul %q, %e : !inter.rows<g, f32>
  %a = inter.reduce sum %dl over %g along src : !inter.rows<N, f32>
  func.return %dz, %a, %dl : !inter.rows<N, 8xf32>, !inter.rows<N, f32>, !inter.rows<g, f32>
}

// -----

// No other sum reads the rows: two sums of 8 numbers would cost more than one product per edge.
// CHECK-LABEL: func.func @alone
// CHECK: inter.contract "f,f->" %Gd, %zs : !inter.rows<g, f32>
func.func @alone(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %p : !inter.rows<g, f32>, %z : !inter.rows<N, 8xf32>, %G : !inter.rows<N, 8xf32> {inter.cotangent})
    -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 8xf32>
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 8xf32>
  %e = inter.contract "f,f->" %Gd, %zs : !inter.rows<g, f32>
  %dl = inter.mul %p, %e : !inter.rows<g, f32>
  %a = inter.reduce sum %dl over %g along src : !inter.rows<N, f32>
  %b = inter.reduce sum %dl over %g along dst : !inter.rows<N, f32>
  func.return %a, %b : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// Through a nonlinearity nothing leaves a sum.
// CHECK-LABEL: func.func @nonlinear
// CHECK: inter.contract "f,f->" %Gd, %zs : !inter.rows<g, f32>
func.func @nonlinear(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %z : !inter.rows<N, 8xf32>, %G : !inter.rows<N, 8xf32> {inter.cotangent})
    -> (!inter.rows<N, 8xf32>, !inter.rows<N, f32>) {
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 8xf32>
  %zs = inter.at %g[src], %z : !inter.rows<g[src], 8xf32>
  %dz = inter.reduce sum %Gd over %g along src : !inter.rows<N, 8xf32>
  %e = inter.contract "f,f->" %Gd, %zs : !inter.rows<g, f32>
  %s = inter.sigmoid %e : !inter.rows<g, f32>
  %a = inter.reduce sum %s over %g along src : !inter.rows<N, f32>
  func.return %dz, %a : !inter.rows<N, 8xf32>, !inter.rows<N, f32>
}

// -----

// What stands beside the product has features too (the keys of dot-product attention): the new sum
// would hold all products of two features, so the inner product stays per edge.
// CHECK-LABEL: func.func @dot_product_attention
// CHECK: inter.contract "hf,hf->h" %Gd, %vs : !inter.rows<g, 2xf32>
// CHECK-NOT: 2x8x8
func.func @dot_product_attention(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %p : !inter.rows<g, 2xf32>, %v : !inter.rows<N, 2x8xf32>, %k : !inter.rows<N, 2x8xf32>, %G : !inter.rows<N, 2x8xf32> {inter.cotangent})
    -> (!inter.rows<N, 2x8xf32>, !inter.rows<N, 2x8xf32>) {
  %Gd = inter.at %g[dst], %G : !inter.rows<g[dst], 2x8xf32>
  %vs = inter.at %g[src], %v : !inter.rows<g[src], 2x8xf32>
  %ks = inter.at %g[src], %k : !inter.rows<g[src], 2x8xf32>
  %pw = inter.reshape %p : !inter.rows<g, 2x1xf32>
  %pv = inter.mul %pw, %vs : !inter.rows<g, 2x8xf32>
  %o = inter.reduce sum %pv over %g along dst : !inter.rows<N, 2x8xf32>
  %e = inter.contract "hf,hf->h" %Gd, %vs : !inter.rows<g, 2xf32>
  %pe = inter.mul %p, %e : !inter.rows<g, 2xf32>
  %pc = inter.reshape %pe : !inter.rows<g, 2x1xf32>
  %m = inter.mul %pc, %ks : !inter.rows<g, 2x8xf32>
  %dq = inter.reduce sum %m over %g along dst : !inter.rows<N, 2x8xf32>
  func.return %o, %dq : !inter.rows<N, 2x8xf32>, !inter.rows<N, 2x8xf32>
}
