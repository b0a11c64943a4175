// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s

// The factor of an outer product goes to the side whose multiple is gathered, wherever in the
// function that multiple is computed.
// CHECK-LABEL: func.func @later
// CHECK: %[[S:.*]] = inter.mul %s, %d : !inter.rows<N, 4xf32>
// CHECK: %[[O:.*]] = inter.contract "y,z->zy" %x, %[[S]] : !inter.rows<N, 4x3xf32>
func.func @later(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %s : !inter.rows<N, f32>, %x : !inter.rows<N, 3xf32>, %d : !inter.rows<N, 4xf32> {inter.cotangent}) -> (!inter.rows<unit, 4x3xf32>, !inter.rows<N, 4xf32>) {
  %sx = inter.mul %s, %x : !inter.rows<N, 3xf32>
  %o = inter.contract "y,z->zy" %sx, %d : !inter.rows<N, 4x3xf32>
  %w = inter.reduce sum %o over %N along () : !inter.rows<unit, 4x3xf32>
  %sd = inter.mul %s, %d : !inter.rows<N, 4xf32>
  %e = inter.at %g[dst], %sd : !inter.rows<g[dst], 4xf32>
  %m = inter.reduce max %e over %g along src : !inter.rows<N, 4xf32>
  func.return %w, %m : !inter.rows<unit, 4x3xf32>, !inter.rows<N, 4xf32>
}

// -----

// Where both multiples are gathered it stays where it is.
// CHECK-LABEL: func.func @both
// CHECK: %[[S:.*]] = inter.mul %s, %x : !inter.rows<N, 3xf32>
// CHECK: inter.contract "y,z->zy" %[[S]], %d : !inter.rows<N, 4x3xf32>
func.func @both(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %s : !inter.rows<N, f32>, %x : !inter.rows<N, 3xf32>, %d : !inter.rows<N, 4xf32> {inter.cotangent}) -> (!inter.rows<unit, 4x3xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 3xf32>) {
  %sx = inter.mul %s, %x : !inter.rows<N, 3xf32>
  %sd = inter.mul %s, %d : !inter.rows<N, 4xf32>
  %o = inter.contract "y,z->zy" %sx, %d : !inter.rows<N, 4x3xf32>
  %w = inter.reduce sum %o over %N along () : !inter.rows<unit, 4x3xf32>
  %e = inter.at %g[dst], %sd : !inter.rows<g[dst], 4xf32>
  %m = inter.reduce max %e over %g along src : !inter.rows<N, 4xf32>
  %f = inter.at %g[dst], %sx : !inter.rows<g[dst], 3xf32>
  %n = inter.reduce max %f over %g along src : !inter.rows<N, 3xf32>
  func.return %w, %m, %n : !inter.rows<unit, 4x3xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 3xf32>
}
