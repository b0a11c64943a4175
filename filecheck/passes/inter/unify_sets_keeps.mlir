// RUN: gnn-opt %s -p unify-sets,verify-sets | filecheck %s

// Sets that only look alike stay apart: made from other sets, with other options, in another order.
// CHECK-LABEL: func.func @different
func.func @different(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %h : !inter.set<h, src: N, dst: N>) {
  // CHECK-NEXT: %a = inter.filter %g
  // CHECK-NEXT: %b = inter.filter %h
  // CHECK-NEXT: %c = inter.filter %a
  // CHECK-NEXT: %l = inter.loops %g
  // CHECK-NEXT: %m = inter.loops %g {remaining}
  // CHECK-NEXT: %u = inter.union %g, %l
  // CHECK-NEXT: %v = inter.union %l, %g
  // CHECK-NEXT: func.return
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, parent: g mono>
  %b = inter.filter %h {no_loops} : !inter.set<b, src: N, dst: N, parent: h mono>
  %c = inter.filter %a {no_loops} : !inter.set<c, src: N, dst: N, parent: a mono>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %m = inter.loops %g {remaining} : !inter.set<m, src: N mono onto, dst: N mono onto, old: g partial>
  %u = inter.union %g, %l : !inter.set<u, src: N onto, dst: N onto, parts g l>
  %v = inter.union %l, %g : !inter.set<v, src: N onto, dst: N onto, parts l g>
  func.return
}
