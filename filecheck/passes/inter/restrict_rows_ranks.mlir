// RUN: gnn-opt %s -p "partition,canonicalize,cse,dce-sets,restrict-rows{share=2.0},canonicalize,cse,dce-sets,insert-all-reduce,verify-ranks" | filecheck %s

// On ranks: the local and the remote edges into the rows of the mask are summed, and of the rows of
// others those cross that these edges read. Who sends is told which by a mask that is moved back.
// CHECK-LABEL: func.func @sum
// CHECK: %[[SUBSET:.*]] = inter.filter %N_own, %k
// CHECK: %[[REMOTE:.*]] = inter.filter %g_remote, %{{.*}} : !inter.set<[[REMOTE_SET:g_remote_needed[0-9_]*]],
// CHECK: %[[COUNT:.*]] = inter.count over %[[REMOTE]] along src : !inter.rows<N_ghost, i64>
// CHECK-NEXT: %[[READ:.*]] = inter.gt %[[COUNT]]
// CHECK: %[[ASKED:.*]] = inter.move %[[READ]] from %N_ghost to %N_sent : !inter.rows<N_sent, i1>
// CHECK: %[[SENT:.*]] = inter.filter %N_sent, %[[ASKED]]
// CHECK: %[[ROW:.*]] = inter.at %[[SENT]][owner], %x
// CHECK-NEXT: inter.move %[[ROW]] from %[[SENT]] to %{{N_ghost_needed.*}} : !inter.rows<N_ghost_needed, 4xf32>
// CHECK: inter.reduce sum %{{.*}} over %g_local_needed_rows along row : !inter.rows<f_local, 4xf32>
// CHECK: inter.all_reduce sum
func.func @sum(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, 4xf32> {
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %y = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %y : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}
