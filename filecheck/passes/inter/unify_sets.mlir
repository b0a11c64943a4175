// RUN: gnn-opt %s -p unify-sets,verify-sets | filecheck %s

// Two layers that each build the graph with its loops share one.
// CHECK-LABEL: func.func @two_layers
func.func @two_layers(%N : !inter.set<N>, %g0 : !inter.set<g0, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  // CHECK-NEXT: %a1 = inter.filter %g0 {no_loops}
  // CHECK-NEXT: %al = inter.loops %g0 {remaining}
  // CHECK-NEXT: %a = inter.union %a1, %al : !inter.set<a, src: N onto, dst: N onto, parts a1 al>
  // CHECK-NEXT: %s = inter.at %a[src], %x : !inter.rows<a[src], 4xf32>
  // CHECK-NEXT: %o = inter.reduce mean %s over %a along dst
  // CHECK-NEXT: %t = inter.at %a[src], %o : !inter.rows<a[src], 4xf32>
  // CHECK-NEXT: %q = inter.reduce mean %t over %a along dst
  // CHECK-NEXT: func.return %q
  %a1 = inter.filter %g0 {no_loops} : !inter.set<a1, src: N, dst: N, parent: g0 mono>
  %al = inter.loops %g0 {remaining} : !inter.set<al, src: N mono onto, dst: N mono onto, old: g0 partial>
  %a = inter.union %a1, %al : !inter.set<a, src: N onto, dst: N onto, parts a1 al>
  %s = inter.at %a[src], %x : !inter.rows<a[src], 4xf32>
  %o = inter.reduce mean %s over %a along dst : !inter.rows<N, 4xf32>
  %b1 = inter.filter %g0 {no_loops} : !inter.set<b1, src: N, dst: N, parent: g0 mono>
  %bl = inter.loops %g0 {remaining} : !inter.set<bl, src: N mono onto, dst: N mono onto, old: g0 partial>
  %b = inter.union %b1, %bl : !inter.set<b, src: N onto, dst: N onto, parts b1 bl>
  %t = inter.at %b[src], %o : !inter.rows<b[src], 4xf32>
  %q = inter.reduce mean %t over %b along dst : !inter.rows<N, 4xf32>
  func.return %q : !inter.rows<N, 4xf32>
}
