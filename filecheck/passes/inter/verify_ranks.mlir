// RUN: gnn-opt %s -p verify-ranks --split-input-file | filecheck %s

// Edges lie with their destination, messages with both ends; a number of all ranks may go anywhere.
// CHECK-LABEL: func.func @fine(
func.func @fine(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %S : !inter.set<S, owner: N, rank: K, peer: P, eq owner.rank = rank>, %H : !inter.set<H, rank: K, peer: P>, %g : !inter.set<g, src: N, dst: N, eq src.rank = dst.rank>, %h : !inter.set<h, src: H, dst: N, eq src.rank = dst.rank>, %x : !inter.rows<N, f32>) -> (!inter.rows<N, f32>, !inter.rows<unit, f32>) {
  %p = inter.at %S[owner], %x : !inter.rows<S, f32>
  %m = inter.move %p from %S to %H : !inter.rows<H, f32>
  %a = inter.at %h[src], %m : !inter.rows<h[src], f32>
  %s = inter.reduce sum %a over %h along dst : !inter.rows<N, f32>
  %l = inter.reduce sum %s over %N along () : !inter.rows<unit, f32>
  %t = inter.all_reduce sum %l : !inter.rows<unit, f32>
  %y = inter.mul %s, %t : !inter.rows<N, f32>
  func.return %y, %t : !inter.rows<N, f32>, !inter.rows<unit, f32>
}
