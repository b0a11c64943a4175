// RUN: gnn-opt %s -p unify-sets,verify-sets | filecheck %s

// Equal masks make equal sets, and a mask that reads rows of one of those is equal then, too.
// CHECK-LABEL: func.func @masks
func.func @masks(%N : !inter.set<N>, %w : !inter.rows<N, f32>) -> !inter.rows<unit, f32> {
  // CHECK-NEXT: %c = inter.const 0.0
  // CHECK-NEXT: %m = inter.gt %w, %c
  // CHECK-NEXT: %a = inter.filter %N, %m : !inter.set<a, parent: N mono>
  // CHECK-NEXT: %wa = inter.at %a[parent], %w
  // CHECK-NEXT: %ma = inter.gt %wa, %c
  // CHECK-NEXT: %aa = inter.filter %a, %ma : !inter.set<aa, parent: a mono>
  // CHECK-NEXT: %one = inter.const 1.0
  // CHECK-NEXT: %s = inter.reduce sum %one over %aa along ()
  // CHECK-NEXT: %o = inter.add %s, %s
  // CHECK-NEXT: func.return %o
  %c = inter.const 0.0 : !inter.rows<unit, f32>
  %m = inter.gt %w, %c : !inter.rows<N, i1>
  %n = inter.gt %w, %c : !inter.rows<N, i1>
  %a = inter.filter %N, %m : !inter.set<a, parent: N mono>
  %b = inter.filter %N, %n : !inter.set<b, parent: N mono>
  %wa = inter.at %a[parent], %w : !inter.rows<a, f32>
  %wb = inter.at %b[parent], %w : !inter.rows<b, f32>
  %ma = inter.gt %wa, %c : !inter.rows<a, i1>
  %mb = inter.gt %wb, %c : !inter.rows<b, i1>
  %aa = inter.filter %a, %ma : !inter.set<aa, parent: a mono>
  %bb = inter.filter %b, %mb : !inter.set<bb, parent: b mono>
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %s = inter.reduce sum %one over %aa along () : !inter.rows<unit, f32>
  %t = inter.reduce sum %one over %bb along () : !inter.rows<unit, f32>
  %o = inter.add %s, %t : !inter.rows<unit, f32>
  func.return %o : !inter.rows<unit, f32>
}
