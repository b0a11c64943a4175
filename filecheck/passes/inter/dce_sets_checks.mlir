// RUN: gnn-opt %s -p canonicalize,cse,unify-sets,dce-sets | filecheck %s
// RUN: gnn-opt %s -p split-phases,lower-to-intra | filecheck %s --check-prefix=PLAN

// A checked attach stays for its check though nobody needs its set; two equal ones are one. It is
// made with the other sets, once a graph.
// CHECK-LABEL: func.func @f
// CHECK: inter.attach %N (y = %y) {checked} : !inter.set<a, y: K, parent: N mono onto>
// CHECK-NOT: inter.attach
// PLAN: func.func @structure
// PLAN: inter.attach %N (y = %y) {checked}
// PLAN: func.func @forward
// PLAN-NOT: inter.attach
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f32>, %y : !inter.rows<N, i64>) -> !inter.rows<N, f32> {
  %K = inter.range 3 : !inter.set<K>
  %a = inter.attach %N (y = %y) {checked} : !inter.set<a, y: K, parent: N mono onto>
  %b = inter.attach %N (y = %y) {checked} : !inter.set<b, y: K, parent: N mono onto>
  %c = inter.attach %N (z = %y) : !inter.set<c, z: K, parent: N mono onto>
  %o = inter.neg %x : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}
