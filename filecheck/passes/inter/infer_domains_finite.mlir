// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// What may be infinite where there are no edges is not multiplied on nodes without any: the 0 that
// their gradient sums up would be no number.

// CHECK-LABEL: @inverted
// CHECK: inter.mul {{.*}} : !inter.rows<g, 4xf32>
func.func @inverted(%N: !inter.set<N>, %g: !inter.set<g, src: N>, %x: !inter.rows<N, 4xf32>,
    %w: !inter.rows<unit, f32>) -> !inter.rows<unit, 4xf32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %i = inter.div %one, %w : !inter.rows<unit, f32>
  %e = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %m = inter.mul %e, %i : !inter.rows<g, 4xf32>
  %s = inter.reduce sum %m over %g along () : !inter.rows<unit, 4xf32>
  func.return %s : !inter.rows<unit, 4xf32>
}

// CHECK-LABEL: @weighted
// CHECK: inter.mul {{.*}} : !inter.rows<g[src], 4xf32>
func.func @weighted(%N: !inter.set<N>, %g: !inter.set<g, src: N>, %x: !inter.rows<N, 4xf32>,
    %w: !inter.rows<unit, f32>) -> !inter.rows<unit, 4xf32> {
  %e = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %m = inter.mul %e, %w : !inter.rows<g, 4xf32>
  %s = inter.reduce sum %m over %g along () : !inter.rows<unit, 4xf32>
  func.return %s : !inter.rows<unit, 4xf32>
}
