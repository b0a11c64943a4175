// RUN: gnn-opt %s -p "partition{chunks=2},verify-sets" | filecheck %s

// Rows cross in two messages, and the remote edges that read those of one are a set of their own.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %N_sent: !inter.set<N_sent, owner: N_own, rank: ranks, peer: peers, eq owner.rank = rank>
// CHECK-SAME: %N_ghost: !inter.set<N_ghost, rank: ranks, peer: peers>
// CHECK-SAME: %N_sent2: !inter.set<N_sent2, owner: N_own, rank: ranks, peer: peers, eq owner.rank = rank>
// CHECK-SAME: %N_ghost2: !inter.set<N_ghost2, rank: ranks, peer: peers>
// CHECK-SAME: %g_remote: !inter.set<g_remote, src: N_ghost, dst: N_own, eq src.rank = dst.rank>
// CHECK-SAME: %g_remote2: !inter.set<g_remote2, src: N_ghost2, dst: N_own, eq src.rank = dst.rank>
// CHECK: inter.move %{{.*}} from %N_sent to %N_ghost
// CHECK: inter.move %{{.*}} from %N_sent2 to %N_ghost2
// CHECK: inter.reduce sum %{{.*}} over %g_local along dst
// CHECK-NEXT: inter.reduce sum %{{.*}} over %g_remote along dst
// CHECK-NEXT: inter.reduce sum %{{.*}} over %g_remote2 along dst
// CHECK-NEXT: %[[NEAR:.*]] = inter.add
// CHECK-NEXT: inter.add %[[NEAR]]
func.func @sum(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %y : !inter.rows<N, 4xf32>
}
