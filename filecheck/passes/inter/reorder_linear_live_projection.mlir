// RUN: gnn-opt %s -p reorder-linear,dce-sets,verify-sets --split-input-file | filecheck %s

// A projection that the messages need stays. The score is taken of it where it is the narrower row.
// CHECK-LABEL: func.func @narrowing
// CHECK: %z = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf32>
// CHECK-NEXT: %s = inter.contract "f,f->" %z, %k : !inter.rows<g, f32>
func.func @narrowing(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>, %x : !inter.rows<N, 16xf32>, %W : !inter.rows<R, 16x4xf32>, %k : !inter.rows<unit, 4xf32>) -> !inter.rows<N, 4xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 16xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 16x4xf32>
  %z = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf32>
  %s = inter.contract "f,f->" %z, %k : !inter.rows<g, f32>
  %p = inter.softmax %s over %g along dst : !inter.rows<g, f32>
  %pc = inter.reshape %p : !inter.rows<g, 1xf32>
  %m = inter.mul %pc, %z : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// Where features are narrower, the score is taken of them.
// CHECK-LABEL: func.func @widening
// CHECK: %z = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 16xf32>
// CHECK-NEXT: %[[V:.*]] = inter.contract "ab,b->a" %W, %k : !inter.rows<R, 2xf32>
// CHECK-NEXT: %[[VR:.*]] = inter.at %g[rel], %[[V]] : !inter.rows<g, 2xf32>
// CHECK-NEXT: %s = inter.contract "a,a->" %xs, %[[VR]] : !inter.rows<g, f32>
func.func @widening(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>, %x : !inter.rows<N, 2xf32>, %W : !inter.rows<R, 2x16xf32>, %k : !inter.rows<unit, 16xf32>) -> !inter.rows<N, 16xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 2xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 2x16xf32>
  %z = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 16xf32>
  %s = inter.contract "f,f->" %z, %k : !inter.rows<g, f32>
  %p = inter.softmax %s over %g along dst : !inter.rows<g, f32>
  %pc = inter.reshape %p : !inter.rows<g, 1xf32>
  %m = inter.mul %pc, %z : !inter.rows<g, 16xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 16xf32>
  func.return %o : !inter.rows<N, 16xf32>
}

// -----

// The destination's projection serves the score alone: it goes, and its width with it.
// CHECK-LABEL: func.func @dead
// CHECK-NOT: !inter.rows<g, 4xf32>
// CHECK: %[[V:.*]] = inter.contract "ab,b->a" %W, %q : !inter.rows<R, 16xf32>
// CHECK: %t = inter.contract "a,a->" %xd, %{{.*}} : !inter.rows<g, f32>
// CHECK-NEXT: func.return %t
func.func @dead(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>, %x : !inter.rows<N, 16xf32>, %W : !inter.rows<R, 16x4xf32>, %q : !inter.rows<unit, 4xf32>) -> !inter.rows<g, f32> {
  %xd = inter.at %g[dst], %x : !inter.rows<g, 16xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 16x4xf32>
  %y = inter.contract "k,kf->f" %xd, %Wr : !inter.rows<g, 4xf32>
  %t = inter.contract "f,f->" %y, %q : !inter.rows<g, f32>
  func.return %t : !inter.rows<g, f32>
}
