// RUN: gnn-opt %s -p reorder-linear,canonicalize,cse,dce,dce-sets,verify-sets --split-input-file | filecheck %s

// The bias of a projection that goes leaves its own score, which no clean-up drops.
// CHECK-LABEL: func.func @score
// CHECK-NEXT: %[[V:.*]] = inter.contract "ab,b->a" %W, %a : !inter.rows<unit, 6xf32>
// CHECK-NEXT: %[[X:.*]] = inter.contract "a,a->" %x, %[[V]] : !inter.rows<N, f32>
// CHECK-NEXT: %[[B:.*]] = inter.contract "f,f->" %b, %a : !inter.rows<unit, f32>
// CHECK-NEXT: %s = inter.add %[[X]], %[[B]] : !inter.rows<N, f32>
// CHECK-NEXT: func.return %s
func.func @score(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %W : !inter.rows<unit, 6x4xf32>, %b : !inter.rows<unit, 4xf32>, %a : !inter.rows<unit, 4xf32>) -> !inter.rows<N, f32> {
  %z = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %zb = inter.add %z, %b : !inter.rows<N, 4xf32>
  %s = inter.contract "f,f->" %zb, %a : !inter.rows<N, f32>
  func.return %s : !inter.rows<N, f32>
}

// -----

// A mean of x W + b is (mean of x) W + b only where there is an edge: the bias counts once for each
// node that has one, an isolated node keeps 0.
// CHECK-LABEL: func.func @mean
// CHECK: %[[M:.*]] = inter.reduce mean %{{.*}} over %g along dst : !inter.rows<N, 2xf32>
// CHECK-NEXT: %[[H:.*]] = inter.contract "k,kf->f" %[[M]], %W : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[ONE:.*]] = inter.const 1.0
// CHECK-NEXT: %[[ANY:.*]] = inter.reduce mean %[[ONE]] over %g along dst : !inter.rows<N, f32>
// CHECK-NEXT: %[[B:.*]] = inter.mul %[[ANY]], %b : !inter.rows<N, 8xf32>
// CHECK-NEXT: %a = inter.add %[[H]], %[[B]] : !inter.rows<N, 8xf32>
func.func @mean(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf32>, %W : !inter.rows<unit, 2x8xf32>, %b : !inter.rows<unit, 8xf32>) -> !inter.rows<N, 8xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
  %hb = inter.add %h, %b : !inter.rows<N, 8xf32>
  %hs = inter.at %g[src], %hb : !inter.rows<g, 8xf32>
  %a = inter.reduce mean %hs over %g along dst : !inter.rows<N, 8xf32>
  func.return %a : !inter.rows<N, 8xf32>
}
