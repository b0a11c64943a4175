// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// Behind the root of a sum over nothing the cotangent is infinite: no gradient of the weight may
// meet it with the sum of that node, which is 0.
// CHECK-LABEL: func.func @root
// CHECK-NEXT: inter.contract
// CHECK-NEXT: inter.at %g[src]
// CHECK-NEXT: inter.reduce sum
func.func @root(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf32>, %W : !inter.rows<unit, 2x8xf32> {inter.needs_grad}) -> !inter.rows<N, 8xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
  %hs = inter.at %g[src], %h : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %hs over %g along dst : !inter.rows<N, 8xf32>
  %q = inter.mul %a, %a : !inter.rows<N, 8xf32>
  %y = inter.sqrt %q : !inter.rows<N, 8xf32>
  func.return %y : !inter.rows<N, 8xf32>
}

// -----

// Every node has an edge.
// CHECK-LABEL: func.func @onto
// CHECK-NEXT: inter.at %g[src]
func.func @onto(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N onto>, %x : !inter.rows<N, 2xf32>, %W : !inter.rows<unit, 2x8xf32> {inter.needs_grad}) -> !inter.rows<N, 8xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
  %hs = inter.at %g[src], %h : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %hs over %g along dst : !inter.rows<N, 8xf32>
  %q = inter.mul %a, %a : !inter.rows<N, 8xf32>
  %y = inter.sqrt %q : !inter.rows<N, 8xf32>
  func.return %y : !inter.rows<N, 8xf32>
}

// -----

// Batch normalisation divides by how many nodes there are, of which there are some where a node
// has a cotangent, and by a root that is above 0.
// CHECK-LABEL: func.func @normalised
// CHECK-NEXT: inter.at %g[src]
func.func @normalised(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2xf32>, %W : !inter.rows<unit, 2x8xf32> {inter.needs_grad}) -> !inter.rows<N, 8xf32> {
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 8xf32>
  %hs = inter.at %g[src], %h : !inter.rows<g, 8xf32>
  %a = inter.reduce sum %hs over %g along dst : !inter.rows<N, 8xf32>
  %many = inter.size %N : !inter.rows<unit, i64>
  %n = inter.cast %many : !inter.rows<unit, f32>
  %t = inter.reduce sum %a over %N along () : !inter.rows<unit, 8xf32>
  %m = inter.div %t, %n : !inter.rows<unit, 8xf32>
  %c = inter.sub %a, %m : !inter.rows<N, 8xf32>
  %q = inter.mul %c, %c : !inter.rows<N, 8xf32>
  %s = inter.reduce sum %q over %N along () : !inter.rows<unit, 8xf32>
  %v = inter.div %s, %n : !inter.rows<unit, 8xf32>
  %eps = inter.const 1.0e-5 : !inter.rows<unit, f32>
  %ve = inter.add %v, %eps : !inter.rows<unit, 8xf32>
  %r = inter.rsqrt %ve : !inter.rows<unit, 8xf32>
  %y = inter.mul %c, %r : !inter.rows<N, 8xf32>
  func.return %y : !inter.rows<N, 8xf32>
}
