// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// The scores of edge features: (e W) a is e (W a), no projection per edge; heads are split off the
// weight.
// CHECK-LABEL: func.func @edge_scores
// CHECK-NEXT: %[[W:.*]] = inter.reshape %W : !inter.rows<unit, 2x8x5xf32>
// CHECK-NEXT: %[[V:.*]] = inter.contract "bca,bc->ba" %[[W]], %a : !inter.rows<unit, 2x5xf32>
// CHECK-NEXT: %s = inter.contract "a,ba->b" %e, %[[V]] : !inter.rows<g, 2xf32>
// CHECK-NEXT: func.return %s
func.func @edge_scores(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %e : !inter.rows<g, 5xf32>, %W : !inter.rows<unit, 16x5xf32>, %a : !inter.rows<unit, 2x8xf32>) -> !inter.rows<g, 2xf32> {
  %z = inter.contract "k,fk->f" %e, %W : !inter.rows<g, 16xf32>
  %h = inter.reshape %z : !inter.rows<g, 2x8xf32>
  %s = inter.contract "hf,hf->h" %h, %a : !inter.rows<g, 2xf32>
  func.return %s : !inter.rows<g, 2xf32>
}

// -----

// RGAT: the destination's projection goes, the source's is needed for the messages and stays.
// CHECK-LABEL: func.func @rgat
// CHECK: %z = inter.contract "k,kf->f" %xs, %Wr
// CHECK: %[[V:.*]] = inter.contract "ab,b->a" %W, %q : !inter.rows<R, 8xf32>
// CHECK-NEXT: %[[VR:.*]] = inter.at %g[rel], %[[V]]
// CHECK-NEXT: %t = inter.contract "a,a->" %xd, %[[VR]]
// CHECK-NEXT: %s = inter.contract "f,f->" %z, %k
func.func @rgat(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>, %x : !inter.rows<N, 8xf32>, %W : !inter.rows<R, 8x4xf32>, %q : !inter.rows<unit, 4xf32>, %k : !inter.rows<unit, 4xf32>) -> !inter.rows<N, 4xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 8xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 8xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 8x4xf32>
  %z = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf32>
  %y = inter.contract "k,kf->f" %xd, %Wr : !inter.rows<g, 4xf32>
  %t = inter.contract "f,f->" %y, %q : !inter.rows<g, f32>
  %s = inter.contract "f,f->" %z, %k : !inter.rows<g, f32>
  %l = inter.add %t, %s : !inter.rows<g, f32>
  %p = inter.softmax %l over %g along dst : !inter.rows<g, f32>
  %pc = inter.reshape %p : !inter.rows<g, 1xf32>
  %m = inter.mul %pc, %z : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// The bias form: (x W + b) a is x (W a) + b a.
// CHECK-LABEL: func.func @bias
// CHECK-NEXT: %[[V:.*]] = inter.contract "ab,b->a" %W, %a : !inter.rows<unit, 6xf32>
// CHECK-NEXT: %[[X:.*]] = inter.contract "a,a->" %x, %[[V]] : !inter.rows<N, f32>
// CHECK-NEXT: %[[B:.*]] = inter.contract "f,f->" %b, %a : !inter.rows<unit, f32>
// CHECK-NEXT: %s = inter.add %[[X]], %[[B]] : !inter.rows<N, f32>
func.func @bias(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %W : !inter.rows<unit, 6x4xf32>, %b : !inter.rows<unit, 4xf32>, %a : !inter.rows<unit, 4xf32>) -> !inter.rows<N, f32> {
  %z = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %zb = inter.add %z, %b : !inter.rows<N, 4xf32>
  %s = inter.contract "f,f->" %zb, %a : !inter.rows<N, f32>
  func.return %s : !inter.rows<N, f32>
}

// -----

// Kept: a nonlinearity in between (GATv2); a product through a narrow middle.
// CHECK-LABEL: func.func @kept
// CHECK: %z = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
// CHECK: inter.contract "f,f->" %l, %a
// CHECK: %n = inter.contract "k,kf->f" %x, %D : !inter.rows<N, 2xf32>
// CHECK: inter.contract "f,fo->o" %n, %U : !inter.rows<N, 64xf32>
func.func @kept(%N : !inter.set<N>, %x : !inter.rows<N, 64xf32>, %W : !inter.rows<unit, 64x4xf32>, %a : !inter.rows<unit, 4xf32>, %D : !inter.rows<unit, 64x2xf32>, %U : !inter.rows<unit, 2x64xf32>) -> (!inter.rows<N, f32>, !inter.rows<N, 64xf32>) {
  %z = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %l = inter.leaky_relu %z {slope = 0.2} : !inter.rows<N, 4xf32>
  %s = inter.contract "f,f->" %l, %a : !inter.rows<N, f32>
  %n = inter.contract "k,kf->f" %x, %D : !inter.rows<N, 2xf32>
  %o = inter.contract "f,fo->o" %n, %U : !inter.rows<N, 64xf32>
  func.return %s, %o : !inter.rows<N, f32>, !inter.rows<N, 64xf32>
}

// -----

// A network that makes a matrix for each edge (NNConv): the matrix of its weight meets the source's
// features first, once a node, and so does its bias, which stands in front of the reshape.
// CHECK-LABEL: func.func @edge_network
// CHECK: %[[W:.*]] = inter.reshape %W : !inter.rows<unit, 6x4x2xf32>
// CHECK-NEXT: %[[P:.*]] = inter.contract "{{.*}}" %[[W]], %x : !inter.rows<N, 4x2xf32>
// CHECK-NEXT: %[[PS:.*]] = inter.at %g[src], %[[P]]
// CHECK-NEXT: %[[M:.*]] = inter.contract "{{.*}}" %e, %[[PS]] : !inter.rows<g, 4xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %b : !inter.rows<unit, 6x4xf32>
// CHECK-NEXT: %[[PB:.*]] = inter.contract "k,ko->o" %x, %[[B]] : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[BS:.*]] = inter.at %g[src], %[[PB]]
// CHECK-NEXT: %[[Y:.*]] = inter.add %[[M]], %[[BS]] : !inter.rows<g, 4xf32>
// CHECK-NEXT: func.return %[[Y]]
func.func @edge_network(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 6xf32>, %e : !inter.rows<g, 2xf32>, %W : !inter.rows<unit, 24x2xf32>, %b : !inter.rows<unit, 24xf32>) -> !inter.rows<g, 4xf32> {
  %p = inter.contract "y,zy->z" %e, %W : !inter.rows<g, 24xf32>
  %q = inter.add %p, %b : !inter.rows<g, 24xf32>
  %m = inter.reshape %q : !inter.rows<g, 6x4xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 6xf32>
  %y = inter.contract "k,ko->o" %xs, %m : !inter.rows<g, 4xf32>
  func.return %y : !inter.rows<g, 4xf32>
}
