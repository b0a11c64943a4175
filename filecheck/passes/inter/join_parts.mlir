// RUN: gnn-opt %s -p partition,join-parts,canonicalize,cse,dce-sets,verify-sets --split-input-file | filecheck %s

// A row has one loop over its edges, which read the rows at hand and those that have arrived.
// CHECK-LABEL: func.func @sum(
// CHECK: %N_all = inter.union %N_own, %N_ghost : !inter.set<N_all, rank: ranks, parts N_own N_ghost>
// CHECK-NEXT: %g_all = inter.union %g_local, %g_remote : !inter.set<g_all, src: N_all, dst: N_own, parts g_local g_remote>
// CHECK: %[[M:.*]] = inter.move %{{.*}} from %N_sent to %N_ghost
// CHECK-NEXT: %[[X:.*]] = inter.stack %N_all, %x, %[[M]]
// CHECK-NEXT: %[[E:.*]] = inter.at %g_all[src], %[[X]]
// CHECK-NEXT: inter.reduce sum %[[E]] over %g_all along dst
// CHECK-NOT: inter.reduce
func.func @sum(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32> {inter.needs_grad}) -> !inter.rows<N, 4xf32> {
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %y : !inter.rows<N, 4xf32>
}

// -----

// What takes little is computed on owned rows and ghosts together; a softmax has its union already.
// CHECK-LABEL: func.func @attention(
// CHECK: inter.move
// CHECK-NOT: inter.move
// CHECK: %[[X:.*]] = inter.stack %N_all, %x, %{{.*}}
// CHECK-NEXT: %[[S:.*]] = inter.contract "a,a->" %[[X]], %w : !inter.rows<N_all, f32>
// CHECK-NEXT: %[[T:.*]] = inter.at %g_all[src], %[[S]]
// CHECK-NEXT: inter.at %g_all[dst], %{{.*}}
// CHECK: inter.softmax %{{.*}} over %g_all along dst
// CHECK-NEXT: inter.at %g_all[src], %[[X]]
// CHECK: inter.reduce sum %{{.*}} over %g_all along dst
// CHECK-NOT: inter.reduce
func.func @attention(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %w : !inter.rows<unit, 4xf32>) -> !inter.rows<N, 4xf32> {
  %s = inter.contract "a,a->" %x, %w : !inter.rows<N, f32>
  %t = inter.at %g[src], %s : !inter.rows<g, f32>
  %u = inter.at %g[dst], %s : !inter.rows<g, f32>
  %e = inter.add %t, %u : !inter.rows<g, f32>
  %a = inter.softmax %e over %g along dst : !inter.rows<g, f32>
  %b = inter.broadcast %a : !inter.rows<g, 4xf32>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %p = inter.mul %m, %b : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %p over %g along dst : !inter.rows<N, 4xf32>
  func.return %y : !inter.rows<N, 4xf32>
}

// -----

// Sums over sets that no messages reach stay apart.
// CHECK-LABEL: func.func @two_relations(
// CHECK-NOT: inter.union
// CHECK: inter.reduce sum %{{.*}} over %g along out
// CHECK-NEXT: inter.reduce sum %{{.*}} over %h along out
func.func @two_relations(%R : !inter.set<R>, %g : !inter.set<g, in: R, out: R>, %h : !inter.set<h, in: R, out: R>, %x : !inter.rows<R, f32>, %N : !inter.set<N>, %k : !inter.set<k, src: N, dst: N>) -> !inter.rows<R, f32> {
  %a = inter.at %g[in], %x : !inter.rows<g, f32>
  %b = inter.at %h[in], %x : !inter.rows<h, f32>
  %s = inter.reduce sum %a over %g along out : !inter.rows<R, f32>
  %t = inter.reduce sum %b over %h along out : !inter.rows<R, f32>
  %y = inter.add %s, %t : !inter.rows<R, f32>
  func.return %y : !inter.rows<R, f32>
}
