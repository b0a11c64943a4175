// RUN: gnn-opt %s -p partition,verify-sets --split-input-file | filecheck %s

// What remote edges read is packed and moved; sums of both parts are added.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %peers: !inter.set<peers>, %ranks: !inter.set<ranks, peer: peers mono>
// CHECK-SAME: %N_own: !inter.set<N_own, rank: ranks>
// CHECK-SAME: %N_sent: !inter.set<N_sent, owner: N_own, rank: ranks, peer: peers, eq owner.rank = rank>
// CHECK-SAME: %N_ghost: !inter.set<N_ghost, rank: ranks, peer: peers>
// CHECK-SAME: %g_local: !inter.set<g_local, src: N_own, dst: N_own, eq src.rank = dst.rank>
// CHECK-SAME: %g_remote: !inter.set<g_remote, src: N_ghost, dst: N_own, eq src.rank = dst.rank>
// CHECK-SAME: %x: !inter.rows<N_own, 4xf32> {inter.needs_grad}
// CHECK-SAME: %N_own_rows: !inter.rows<N_own, i64> {inter.global_rows}
// CHECK-NEXT: %{{.*}} = inter.at %g_local[src], %x
// CHECK-NEXT: %[[P:.*]] = inter.at %N_sent[owner], %x
// CHECK-NEXT: %[[M:.*]] = inter.move %[[P]] from %N_sent to %N_ghost : !inter.rows<N_ghost, 4xf32>
// CHECK-NEXT: %[[R:.*]] = inter.at %g_remote[src], %[[M]]
// CHECK: inter.reduce sum %{{.*}} over %g_local along dst : !inter.rows<N_own, 4xf32>
// CHECK-NEXT: inter.reduce sum %[[R]] over %g_remote along dst : !inter.rows<N_own, 4xf32>
// CHECK-NEXT: inter.add
func.func @sum(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32> {inter.needs_grad}) -> !inter.rows<N, 4xf32> {
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %y : !inter.rows<N, 4xf32>
}

// -----

// A maximum is taken over all edges of a row at once.
// CHECK-LABEL: func.func @max(
// CHECK: %g_all = inter.union %g_local, %g_remote : !inter.set<g_all, dst: N_own, parts g_local g_remote>
// CHECK-NEXT: %[[E:.*]] = inter.stack %g_all, %e_local, %e_remote : !inter.rows<g_all, f32>
// CHECK-NEXT: inter.reduce max %[[E]] over %g_all along dst : !inter.rows<N_own, f32>
func.func @max(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %e : !inter.rows<g, f32>) -> !inter.rows<N, f32> {
  %y = inter.reduce max %e over %g along dst : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}

// -----

// A loop is local: remote edges have none to leave out, and none is made for ghosts.
// CHECK-LABEL: func.func @loops(
// CHECK: %f_local = inter.filter %g_local {no_loops}
// CHECK-NEXT: %[[ALL:.*]] = inter.const true
// CHECK-NEXT: %f_remote = inter.filter %g_remote, %[[ALL]]
// CHECK-NEXT: %l_local = inter.loops %g_local
// CHECK-NEXT: %u_local = inter.union %f_local, %l_local
// CHECK-NEXT: %u_remote = inter.union %f_remote
func.func @loops(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) -> !inter.rows<N, f32> {
  %f = inter.filter %g {no_loops} : !inter.set<f, src: N, dst: N, parent: g mono>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %f, %l : !inter.set<u, src: N onto, dst: N onto, parts f l>
  %d = inter.count over %u along dst : !inter.rows<N, f32>
  func.return %d : !inter.rows<N, f32>
}

// -----

// A map to where rows lie in a union of nodes leads to where owned rows lie in theirs.
// CHECK-LABEL: func.func @joined(
// CHECK: %u_local = inter.union %N_own, %M_own : !inter.set<u_local, rank: ranks, parts N_own M_own>
// CHECK: %[[I:.*]] = inter.iota %u_local
// CHECK-NEXT: %[[P:.*]] = inter.part 1 of %u_local, %[[I]] : !inter.rows<M_own, i64>
// CHECK-NEXT: %[[A:.*]] = inter.at %g_local[dst], %[[P]] : !inter.rows<g_local, i64>
// CHECK-NEXT: inter.attach %g_local (at = %[[A]])
// CHECK: inter.attach %g_remote (at = %{{.*}})
func.func @joined(%N : !inter.set<N>, %M : !inter.set<M>, %g : !inter.set<g, src: N, dst: M>, %e : !inter.rows<g, f32>) -> !inter.rows<M, f32> {
  %u = inter.union %N, %M : !inter.set<u, parts N M>
  %d = inter.index %g[dst] : !inter.rows<g, i64>
  %n = inter.size %N : !inter.rows<unit, i64>
  %i = inter.add %d, %n : !inter.rows<g, i64>
  %h = inter.attach %g (at = %i) : !inter.set<h, src: N, dst: M, at: u, parent: g mono onto>
  %x = inter.at %h[parent], %e : !inter.rows<h, f32>
  %s = inter.reduce sum %x over %h along at : !inter.rows<u, f32>
  %y = inter.part 1 of %u, %s : !inter.rows<M, f32>
  func.return %y : !inter.rows<M, f32>
}

// -----

// What takes an operation a number of the rows that cross anyway is computed for ghosts again.
// CHECK-LABEL: func.func @score(
// CHECK: %[[X:.*]] = inter.move %{{.*}} from %N_sent to %N_ghost : !inter.rows<N_ghost, 4xf32>
// CHECK-NOT: inter.move
// CHECK: %[[S:.*]] = inter.contract "a,a->" %[[X]], %w : !inter.rows<N_ghost, f32>
// CHECK: inter.at %g_remote[src], %[[S]]
func.func @score(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %w : !inter.rows<unit, 4xf32>) -> !inter.rows<N, 4xf32> {
  %s = inter.contract "a,a->" %x, %w : !inter.rows<N, f32>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %t = inter.at %g[src], %s : !inter.rows<g, f32>
  %p = inter.mul %m, %t : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %p over %g along dst : !inter.rows<N, 4xf32>
  func.return %y : !inter.rows<N, 4xf32>
}

// -----

// What is computed of rows that edges read is computed on the edges of each part, as these read them.
// CHECK-LABEL: func.func @read_and_computed
// CHECK: %hs = inter.at %g_local[src], %x : !inter.rows<g_local, 4xf32>
// CHECK: inter.relu %hs : !inter.rows<g_local, 4xf32>
// CHECK: inter.relu %{{.*}} : !inter.rows<g_remote, 4xf32>
func.func @read_and_computed(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  %hs = inter.at %g[src], %x : !inter.rows<g[src], 4xf32>
  %r = inter.relu %hs : !inter.rows<g[src], 4xf32>
  %o = inter.reduce sum %r over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// The loops of a graph lie with their nodes, in their order: the last one of a node is that of its
// rank, and remote edges have none.
// CHECK-LABEL: func.func @last_loop(
// CHECK: inter.filter %g_local, %{{.*}} : !inter.set<old_local,
// CHECK-NOT: inter.filter %g_remote
// CHECK: inter.reduce last %{{.*}} over %old_local along src else %{{.*}} : !inter.rows<N_own, f32>
func.func @last_loop(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %w : !inter.rows<g, f32>, %fill : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %i = inter.index %g[src] : !inter.rows<g, i64>
  %j = inter.index %g[dst] : !inter.rows<g, i64>
  %m = inter.eq %i, %j : !inter.rows<g, i1>
  %old = inter.filter %g, %m : !inter.set<old, src: N, dst: N, parent: g mono>
  %k = inter.at %old[parent], %w : !inter.rows<old, f32>
  %y = inter.reduce last %k over %old along src else %fill : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}
