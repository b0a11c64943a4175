// RUN: gnn-opt %s -p partition,autodiff,cse,verify-sets | filecheck %s

// The gradients of ghosts are summed where they were read, moved back and added for each row.
// CHECK-LABEL: func.func @sum(
// CHECK: inter.reduce sum %{{.*}} over %g_remote{{.*}} along src : !inter.rows<N_ghost, 4xf32>
// CHECK: inter.move %{{.*}} from %N_ghost to %N_sent : !inter.rows<N_sent, 4xf32>
// CHECK: inter.reduce sum %{{.*}} over %N_sent along owner : !inter.rows<N_own, 4xf32>
func.func @sum(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32> {inter.needs_grad}) -> !inter.rows<N, 4xf32> {
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %y : !inter.rows<N, 4xf32>
}
