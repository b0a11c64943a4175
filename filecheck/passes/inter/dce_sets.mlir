// RUN: gnn-opt %s -p dce-sets,verify-sets | filecheck %s

// No value uses %B, but the map `batch` goes there; %l and what is computed from it go.
// CHECK-LABEL: func.func @named_in_types
func.func @named_in_types(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %batch : !inter.rows<N, i64>, %n : !inter.rows<unit, i64>,
    %x : !inter.rows<N, f32>) -> !inter.rows<B, f32> {
  // CHECK-NEXT: %B = inter.sized %n : !inter.set<B>
  // CHECK-NEXT: %A = inter.attach
  // CHECK-NEXT: %a = inter.at
  // CHECK-NEXT: %o = inter.reduce
  // CHECK-NEXT: func.return
  %B = inter.sized %n : !inter.set<B>
  %C = inter.sized %n : !inter.set<C>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %y = inter.at %l[src], %x : !inter.rows<l, f32>
  %z = inter.neg %y : !inter.rows<l, f32>
  %A = inter.attach %N (batch = %batch) : !inter.set<A, batch: B, parent: N mono onto>
  %a = inter.at %A[parent], %x : !inter.rows<A, f32>
  %o = inter.reduce sum %a over %A along batch : !inter.rows<B, f32>
  func.return %o : !inter.rows<B, f32>
}
