// RUN: gnn-opt %s -p unify-sets,verify-sets | filecheck %s

// A signature may name a set that is born in the body: its types follow.
// CHECK: func.func @signature(%N: !inter.set<N>, %g: !inter.set<g, src: N, dst: N>, %y: !inter.rows<a, f32>, %h: !inter.set<h, to: a>) -> !inter.rows<a, f32>
func.func @signature(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %y : !inter.rows<b, f32>, %h : !inter.set<h, to: b>) -> !inter.rows<b, f32> {
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, parent: g mono>
  %b = inter.filter %g {no_loops} : !inter.set<b, src: N, dst: N, parent: g mono>
  func.return %y : !inter.rows<b, f32>
}
