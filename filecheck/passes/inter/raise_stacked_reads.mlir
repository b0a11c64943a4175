// RUN: gnn-opt %s -p raise,dce-sets,verify-sets | filecheck %s

// Two relations read the rows of their types, and are summed together into the nodes of both types:
// the sum's map reads them all, of a union of the types. Of a type that nobody reads there are zeros.
// CHECK-LABEL: func.func @read_at_once
// CHECK: [[none:%.*]] = inter.const 0.0 : !inter.rows<unit, 4xf32>
// CHECK: [[all:%.*]] = inter.stack %N, %a, %b, [[none]] : !inter.rows<N, 4xf32>
// CHECK: %s = inter.at %u[dst], [[all]] : !inter.rows<u, 4xf32>
// CHECK-NOT: inter.stack %u
func.func @read_at_once(%A : !inter.set<A>, %B : !inter.set<B>, %C : !inter.set<C>, %g : !inter.set<g, src: A>, %h : !inter.set<h, src: B>, %a : !inter.rows<A, 4xf32>, %b : !inter.rows<B, 4xf32>) -> !inter.rows<N, 4xf32> attributes {inter.stats = {N = 10 : i64, u = 1000 : i64}} {
  %N = inter.union %A, %B, %C : !inter.set<N, parts A B C>
  %0 = inter.index %g[src] : !inter.rows<g, i64>
  %g_1 = inter.attach %g (dst = %0) : !inter.set<g_1, src: A, dst: N, parent: g mono onto>
  %1 = inter.index %h[src] : !inter.rows<h, i64>
  %2 = inter.size %A : !inter.rows<unit, i64>
  %3 = inter.add %1, %2 : !inter.rows<h, i64>
  %h_1 = inter.attach %h (dst = %3) : !inter.set<h_1, src: B, dst: N, parent: h mono onto>
  %u = inter.union %g_1, %h_1 : !inter.set<u, dst: N, parts g_1 h_1>
  %4 = inter.at %g[src], %a : !inter.rows<g, 4xf32>
  %5 = inter.at %g_1[parent], %4 : !inter.rows<g_1, 4xf32>
  %6 = inter.at %h_1[src], %b : !inter.rows<h_1, 4xf32>
  %s = inter.stack %u, %5, %6 : !inter.rows<u, 4xf32>
  %e = inter.exp %s : !inter.rows<u, 4xf32>
  %o = inter.reduce sum %e over %u along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// One type gives other rows to each relation, or what is stacked is made of what was read.
// CHECK-LABEL: func.func @read_in_parts
// CHECK: %s = inter.stack %u
// CHECK: %t = inter.stack %u
func.func @read_in_parts(%A : !inter.set<A>, %g : !inter.set<g, src: A>, %h : !inter.set<h, src: A>, %a : !inter.rows<A, 4xf32>, %b : !inter.rows<A, 4xf32>) -> !inter.rows<N, 4xf32> attributes {inter.stats = {N = 10 : i64, u = 1000 : i64}} {
  %N = inter.union %A, %A : !inter.set<N, parts A A>
  %0 = inter.index %g[src] : !inter.rows<g, i64>
  %g_1 = inter.attach %g (dst = %0) : !inter.set<g_1, src: A, dst: N, parent: g mono onto>
  %1 = inter.index %h[src] : !inter.rows<h, i64>
  %h_1 = inter.attach %h (dst = %1) : !inter.set<h_1, src: A, dst: N, parent: h mono onto>
  %u = inter.union %g_1, %h_1 : !inter.set<u, src: A, dst: N, parts g_1 h_1>
  %2 = inter.at %g_1[src], %a : !inter.rows<g_1, 4xf32>
  %3 = inter.at %h_1[src], %b : !inter.rows<h_1, 4xf32>
  %s = inter.stack %u, %2, %3 : !inter.rows<u, 4xf32>
  %o = inter.reduce sum %s over %u along dst : !inter.rows<N, 4xf32>
  %4 = inter.exp %2 : !inter.rows<g_1, 4xf32>
  %t = inter.stack %u, %4, %3 : !inter.rows<u, 4xf32>
  %p = inter.reduce sum %t over %u along dst : !inter.rows<N, 4xf32>
  %q = inter.add %o, %p : !inter.rows<N, 4xf32>
  func.return %q : !inter.rows<N, 4xf32>
}
