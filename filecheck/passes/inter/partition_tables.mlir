// RUN: gnn-opt %s -p 'partition{sets="N","T"},verify-sets' --split-input-file | filecheck %s

// A map of nodes into nodes becomes edges from the rows that are read; edges read rows of nodes.
// CHECK-LABEL: func.func @table(
// CHECK-SAME: %N_own: !inter.set<N_own, rank: ranks>
// CHECK-SAME: %N_word_local: !inter.set<N_word_local, src: T_own, dst: N_own mono, eq src.rank = dst.rank>
// CHECK-SAME: %N_word_remote: !inter.set<N_word_remote, src: T_ghost, dst: N_own mono, eq src.rank = dst.rank>
// CHECK-SAME: %t: !inter.rows<T_own, 4xf32> {inter.needs_grad}
// CHECK-NEXT: %[[A:.*]] = inter.at %N_word_local[src], %t : !inter.rows<N_word_local, 4xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reduce sum %[[A]] over %N_word_local along dst : !inter.rows<N_own, 4xf32>
// CHECK-NEXT: %[[P:.*]] = inter.at %T_sent[owner], %t
// CHECK-NEXT: %[[M:.*]] = inter.move %[[P]] from %T_sent to %T_ghost : !inter.rows<T_ghost, 4xf32>
// CHECK-NEXT: %[[C:.*]] = inter.at %N_word_remote[src], %[[M]]
// CHECK-NEXT: %[[D:.*]] = inter.reduce sum %[[C]] over %N_word_remote along dst : !inter.rows<N_own, 4xf32>
// CHECK-NEXT: %[[X:.*]] = inter.add %[[B]], %[[D]]
// CHECK-NEXT: inter.at %g_local[src], %[[X]]
func.func @table(%T : !inter.set<T>, %N : !inter.set<N, word: T>, %g : !inter.set<g, src: N, dst: N>, %t : !inter.rows<T, 4xf32> {inter.needs_grad}) -> !inter.rows<g, 4xf32> {
  %x = inter.at %g[src.word], %t : !inter.rows<g, 4xf32>
  func.return %x : !inter.rows<g, 4xf32>
}

// -----

// Numbers of rows that are read are read in the same way.
// CHECK-LABEL: func.func @numbers(
// CHECK: %[[A:.*]] = inter.index %N_word_local[src] : !inter.rows<N_word_local, i64>
// CHECK-NEXT: inter.reduce sum %[[A]] over %N_word_local along dst : !inter.rows<N_own, i64>
// CHECK-NEXT: %[[B:.*]] = inter.index %N_word_remote[src] : !inter.rows<N_word_remote, i64>
// CHECK-NEXT: inter.reduce sum %[[B]] over %N_word_remote along dst : !inter.rows<N_own, i64>
func.func @numbers(%T : !inter.set<T>, %N : !inter.set<N, word: T>) -> !inter.rows<N, i64> {
  %i = inter.index %N[word] : !inter.rows<N, i64>
  func.return %i : !inter.rows<N, i64>
}
