// RUN: gnn-opt %s -p verify-ranks --verify-diagnostics --split-input-file | filecheck %s

// CHECK: a row of g may lead to rows of two ranks, by src.rank and dst.rank: bring one to the other by inter.move, or declare that they are equal
func.func @edges(%K : !inter.set<K>, %N : !inter.set<N, rank: K>, %g : !inter.set<g, src: N, dst: N>) {
  func.return
}

// -----

// CHECK: a row of H may lead to rows of two ranks, by rank and owner.rank
func.func @ghosts_that_lead_to_their_owners(%K : !inter.set<K>, %N : !inter.set<N, rank: K>, %H : !inter.set<H, rank: K, owner: N>) {
  func.return
}

// -----

// CHECK: the result t is the inter.reduce of one rank: reduce it by inter.all_reduce
func.func @loss(%K : !inter.set<K>, %N : !inter.set<N, rank: K>, %x : !inter.rows<N, f32>) -> !inter.rows<unit, f32> {
  %s = inter.reduce sum %x over %N along () : !inter.rows<unit, f32>
  %two = inter.const 2.0 : !inter.rows<unit, f32>
  %t = inter.mul %s, %two : !inter.rows<unit, f32>
  func.return %t : !inter.rows<unit, f32>
}

// -----

// CHECK: inter.mul on rows of N reads the inter.size of one rank: reduce it by inter.all_reduce
func.func @rows(%K : !inter.set<K>, %N : !inter.set<N, rank: K>, %x : !inter.rows<N, i64>) -> !inter.rows<N, i64> {
  %n = inter.size %N : !inter.rows<unit, i64>
  %y = inter.mul %x, %n : !inter.rows<N, i64>
  func.return %y : !inter.rows<N, i64>
}
