// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// No product is moved through a maximum.
// CHECK-LABEL: func.func @max
// CHECK-NEXT: %xs = inter.at %g[src], %x
// CHECK-NEXT: %a = inter.reduce max %xs over %g along dst : !inter.rows<N, 8xf32>
// CHECK-NEXT: %h = inter.contract "k,kf->f" %a, %W : !inter.rows<N, 2xf32>
func.func @max(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<unit, 8x2xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %a = inter.reduce max %xs over %g along dst : !inter.rows<N, 8xf32>
  %h = inter.contract "k,kf->f" %a, %W : !inter.rows<N, 2xf32>
  func.return %h : !inter.rows<N, 2xf32>
}

// -----

// Nor through a relu, on either side of the sum.
// CHECK-LABEL: func.func @after
// CHECK: %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 8xf32>
// CHECK-NEXT: %r = inter.relu %a : !inter.rows<N, 8xf32>
// CHECK-NEXT: %h = inter.contract "k,kf->f" %r, %W : !inter.rows<N, 2xf32>
func.func @after(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<unit, 8x2xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 8xf32>
  %r = inter.relu %a : !inter.rows<N, 8xf32>
  %h = inter.contract "k,kf->f" %r, %W : !inter.rows<N, 2xf32>
  func.return %h : !inter.rows<N, 2xf32>
}

// -----

// CHECK-LABEL: func.func @before
// CHECK: inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
// CHECK-NEXT: inter.relu %{{.*}} : !inter.rows<N, 8xf32>
// CHECK-NEXT: inter.at %g[src]
// CHECK-NEXT: inter.reduce sum %{{.*}} over %g along dst : !inter.rows<N, 8xf32>
func.func @before(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf32>, %W : !inter.rows<unit, 2x8xf32>) -> !inter.rows<N, 8xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
  %r = inter.relu %h : !inter.rows<N, 8xf32>
  %rs = inter.at %g[src], %r : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %rs over %g along dst : !inter.rows<N, 8xf32>
  func.return %a : !inter.rows<N, 8xf32>
}

// -----

// GATv2: the leaky relu between the two products keeps them apart.
// CHECK-LABEL: func.func @gatv2
// CHECK: %l = inter.leaky_relu %z
// CHECK-NEXT: %s = inter.contract "f,f->" %l, %a : !inter.rows<g, f32>
func.func @gatv2(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<unit, 8x4xf32>, %a : !inter.rows<unit, 4xf32>) -> !inter.rows<g, f32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 8xf32>
  %zs = inter.contract "k,kf->f" %xs, %W : !inter.rows<g, 4xf32>
  %zd = inter.contract "k,kf->f" %xd, %W : !inter.rows<g, 4xf32>
  %z = inter.add %zs, %zd : !inter.rows<g, 4xf32>
  %l = inter.leaky_relu %z {slope = 0.2} : !inter.rows<g, 4xf32>
  %s = inter.contract "f,f->" %l, %a : !inter.rows<g, f32>
  func.return %s : !inter.rows<g, f32>
}
