// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// Products and pointwise ops on values read through one map are done before the read.
// CHECK-LABEL: func.func @sunk
// CHECK-NEXT: %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 2xf32>
// CHECK-NEXT: %b = inter.add %h, %c : !inter.rows<N, 2xf32>
// CHECK-NEXT: %r = inter.relu %b : !inter.rows<N, 2xf32>
// CHECK-NEXT: %[[R:.*]] = inter.at %g[src], %r : !inter.rows<g, 2xf32>
// CHECK-NEXT: inter.reduce max %[[R]] over %g along dst
func.func @sunk(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %W : !inter.rows<unit, 4x2xf32>, %c : !inter.rows<unit, 2xf32>) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.contract "k,kf->f" %xs, %W : !inter.rows<g, 2xf32>
  %b = inter.add %h, %c : !inter.rows<g, 2xf32>
  %r = inter.relu %b : !inter.rows<g, 2xf32>
  %o = inter.reduce max %r over %g along dst : !inter.rows<N, 2xf32>
  func.return %o : !inter.rows<N, 2xf32>
}

// -----

// Kept: reads through different maps; an op that is not Total on a map that is not onto; a weight
// per relation; an outer product; the few rows that an injective map selects.
// CHECK-LABEL: func.func @kept
// CHECK: %a = inter.add %xs, %xd : !inter.rows<g, 4xf32>
// CHECK: %e = inter.exp %xs : !inter.rows<g, 4xf32>
// CHECK: %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf32>
// CHECK: %p = inter.contract "k,f->kf" %xs, %xs : !inter.rows<g, 4x4xf32>
// CHECK: %t = inter.relu %xt : !inter.rows<T, 4xf32>
func.func @kept(%N : !inter.set<N>, %R : !inter.set<R>, %T : !inter.set<T, parent: N mono>, %g : !inter.set<g, src: N, dst: N, rel: R>, %x : !inter.rows<N, 4xf32>, %W : !inter.rows<R, 4x2xf32>)
    -> (!inter.rows<g, 4xf32>, !inter.rows<g, 4xf32>, !inter.rows<g, 2xf32>, !inter.rows<g, 4x4xf32>, !inter.rows<T, 4xf32>) {
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 4xf32>
  %a = inter.add %xs, %xd : !inter.rows<g, 4xf32>
  %e = inter.exp %xs : !inter.rows<g, 4xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 4x2xf32>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf32>
  %p = inter.contract "k,f->kf" %xs, %xs : !inter.rows<g, 4x4xf32>
  %xt = inter.at %T[parent], %x : !inter.rows<T, 4xf32>
  %t = inter.relu %xt : !inter.rows<T, 4xf32>
  func.return %a, %e, %h, %p, %t : !inter.rows<g, 4xf32>, !inter.rows<g, 4xf32>, !inter.rows<g, 2xf32>, !inter.rows<g, 4x4xf32>, !inter.rows<T, 4xf32>
}

// -----

// On a map that is onto every row is read, so exp moves too.
// CHECK-LABEL: func.func @onto
// CHECK-NEXT: inter.exp %x : !inter.rows<N, 4xf32>
func.func @onto(%N : !inter.set<N>, %g : !inter.set<g, src: N onto, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %e = inter.exp %xs : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %e over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// Fewer edges than nodes (a sampled block): the work stays on the edges.
// CHECK-LABEL: func.func @block
// CHECK: inter.relu %xs : !inter.rows<g, 4xf32>
func.func @block(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32>
    attributes {inter.stats = {N = 1000 : i64, g = 10 : i64}} {
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %e = inter.relu %xs : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %e over %g along dst : !inter.rows<N, 4xf32>
  func.return %o : !inter.rows<N, 4xf32>
}

// -----

// A power and a logarithm on a map that is not onto: where their operand is away from 0.
// CHECK-LABEL: func.func @away_from_zero
// CHECK: %p = inter.pow %clamped, %e : !inter.rows<N, 4xf32>
// CHECK-NEXT: inter.at %g[src], %p : !inter.rows<g, 4xf32>
// CHECK: %q = inter.log %xs : !inter.rows<g, 4xf32>
func.func @away_from_zero(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %e : !inter.rows<unit, f32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %least = inter.const 0.01 : !inter.rows<unit, f32>
  %below = inter.lt %x, %least : !inter.rows<N, 4xi1>
  %clamped = inter.where %below, %least, %x : !inter.rows<N, 4xf32>
  %cs = inter.at %g[src], %clamped : !inter.rows<g, 4xf32>
  %p = inter.pow %cs, %e : !inter.rows<g, 4xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %q = inter.log %xs : !inter.rows<g, 4xf32>
  %a = inter.reduce sum %p over %g along dst : !inter.rows<N, 4xf32>
  %b = inter.reduce sum %q over %g along dst : !inter.rows<N, 4xf32>
  func.return %a, %b : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}
