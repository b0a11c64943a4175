// RUN: gnn-opt %s -p canonicalize,cse,verify-sets --check-passes --split-input-file | filecheck %s

// Scores of heads as 2x1 or as 2 are one program: the ones go, but where rows of 4 are repeated.
// CHECK-LABEL: func.func @attention
// CHECK-NEXT: %[[A:.*]] = inter.at %g[src], %s : !inter.rows<g, 2xf32>
// CHECK-NEXT: %[[B:.*]] = inter.leaky_relu %[[A]] {slope = 0.2} : !inter.rows<g, 2xf32>
// CHECK-NEXT: %[[C:.*]] = inter.softmax %[[B]] over %g along dst : !inter.rows<g, 2xf32>
// CHECK-NEXT: %[[D:.*]] = inter.dropout %[[C]], %key over %g {p = 0.5, site = 0} : !inter.rows<g, 2xf32>
// CHECK-NEXT: %[[E:.*]] = inter.reshape %[[D]] : !inter.rows<g, 2x1xf32>
// CHECK-NEXT: %[[F:.*]] = inter.mul %[[E]], %x : !inter.rows<g, 2x4xf32>
// CHECK-NEXT: %[[G:.*]] = inter.reduce sum %[[F]] over %g along dst : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: func.return %[[G]]
func.func @attention(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %s : !inter.rows<N, 2xf32>, %x : !inter.rows<g, 2x4xf32>, %key : !inter.rows<unit, i64>) -> !inter.rows<N, 2x4xf32> {
  %a = inter.reshape %s : !inter.rows<N, 2x1xf32>
  %b = inter.at %g[src], %a : !inter.rows<g, 2x1xf32>
  %c = inter.leaky_relu %b {slope = 0.2} : !inter.rows<g, 2x1xf32>
  %d = inter.softmax %c over %g along dst : !inter.rows<g, 2x1xf32>
  %e = inter.dropout %d, %key over %g {p = 0.5, site = 0} : !inter.rows<g, 2x1xf32>
  %f = inter.mul %x, %e : !inter.rows<g, 2x4xf32>
  %h = inter.reduce sum %f over %g along dst : !inter.rows<N, 2x4xf32>
  func.return %h : !inter.rows<N, 2x4xf32>
}

// -----

// Arguments and results keep their shapes: one reshape in front, one behind.
// CHECK-LABEL: func.func @ends
// CHECK-NEXT: %[[X:.*]] = inter.reshape %x : !inter.rows<g, 4xf32>
// CHECK-NEXT: %[[A:.*]] = inter.cast %[[X]] : !inter.rows<g, 4xf64>
// CHECK-NEXT: %[[B:.*]] = inter.stop %[[A]] : !inter.rows<g, 4xf64>
// CHECK-NEXT: %[[C:.*]] = inter.reduce max %[[B]] over %g along dst : !inter.rows<N, 4xf64>
// CHECK-NEXT: %[[D:.*]] = inter.reshape %y : !inter.rows<N, 4xf64>
// CHECK-NEXT: %[[E:.*]] = inter.reduce last %[[B]] over %g along dst else %[[D]] : !inter.rows<N, 4xf64>
// CHECK-NEXT: %[[F:.*]] = inter.add %[[C]], %[[E]] : !inter.rows<N, 4xf64>
// CHECK-NEXT: %[[G:.*]] = inter.reshape %[[F]] : !inter.rows<N, 1x4x1xf64>
// CHECK-NEXT: func.return %[[G]]
func.func @ends(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 1x4x1xf32>, %y : !inter.rows<N, 1x4x1xf64>) -> !inter.rows<N, 1x4x1xf64> {
  %a = inter.cast %x : !inter.rows<g, 1x4x1xf64>
  %b = inter.stop %a : !inter.rows<g, 1x4x1xf64>
  %c = inter.reduce max %b over %g along dst : !inter.rows<N, 1x4x1xf64>
  %d = inter.reduce last %b over %g along dst else %y : !inter.rows<N, 1x4x1xf64>
  %e = inter.add %c, %d : !inter.rows<N, 1x4x1xf64>
  func.return %e : !inter.rows<N, 1x4x1xf64>
}

// -----

// Ones in front of an operand say nothing; ones within it say along what it is repeated.
// CHECK-LABEL: func.func @aligned
// CHECK-NEXT: %[[B:.*]] = inter.reshape %b : !inter.rows<unit, 4xf32>
// CHECK-NEXT: %[[A:.*]] = inter.add %[[B]], %x : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %c = inter.mul %w, %[[A]] : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: func.return %c
func.func @aligned(%N : !inter.set<N>, %x : !inter.rows<N, 2x4xf32>, %b : !inter.rows<unit, 1x4xf32>, %w : !inter.rows<N, 2x1xf32>) -> !inter.rows<N, 2x4xf32> {
  %a = inter.add %x, %b : !inter.rows<N, 2x4xf32>
  %c = inter.mul %w, %a : !inter.rows<N, 2x4xf32>
  func.return %c : !inter.rows<N, 2x4xf32>
}

// -----

// What a function repeats by itself is not repeated before; what repeats along ones is a reshape.
// CHECK-LABEL: func.func @repeated
// CHECK-NEXT: %[[A:.*]] = inter.mul %w, %x : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %v : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[C:.*]] = inter.broadcast %[[B]] : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %[[D:.*]] = inter.reshape %[[C]] : !inter.rows<N, 2x1x4xf32>
// CHECK-NEXT: %[[E:.*]] = inter.reshape %v : !inter.rows<N, 1x1x4xf32>
// CHECK-NEXT: func.return %[[A]], %[[D]], %[[E]]
func.func @repeated(%N : !inter.set<N>, %x : !inter.rows<N, 2x4xf32>, %w : !inter.rows<N, 2x1xf32>, %v : !inter.rows<N, 1x4xf32>) -> (!inter.rows<N, 2x4xf32>, !inter.rows<N, 2x1x4xf32>, !inter.rows<N, 1x1x4xf32>) {
  %a = inter.broadcast %w : !inter.rows<N, 2x4xf32>
  %b = inter.mul %x, %a : !inter.rows<N, 2x4xf32>
  %c = inter.broadcast %v : !inter.rows<N, 2x1x4xf32>
  %d = inter.broadcast %v : !inter.rows<N, 1x1x4xf32>
  func.return %b, %c, %d : !inter.rows<N, 2x4xf32>, !inter.rows<N, 2x1x4xf32>, !inter.rows<N, 1x1x4xf32>
}

// -----

// Letters of size 1 go; a sum over ones only is a reshape, an extreme is not (its gradient at NaN).
// CHECK-LABEL: func.func @sums
// CHECK-NEXT: %[[X:.*]] = inter.reshape %x : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[W:.*]] = inter.reshape %w : !inter.rows<unit, 4xf32>
// CHECK-NEXT: %[[A:.*]] = inter.contract "k,k->" %[[X]], %[[W]] : !inter.rows<N, f32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %[[A]] : !inter.rows<N, 1x1xf32>
// CHECK-NEXT: %[[C:.*]] = inter.row_reduce sum %[[X]] [0] : !inter.rows<N, f32>
// CHECK-NEXT: %[[D:.*]] = inter.reshape %[[C]] : !inter.rows<N, 1xf32>
// CHECK-NEXT: %[[E:.*]] = inter.row_reduce max %x [0] : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[F:.*]] = inter.row_reduce max %[[X]] [0] : !inter.rows<N, f32>
// CHECK-NEXT: %[[G:.*]] = inter.reshape %[[F]] : !inter.rows<N, 1xf32>
// CHECK-NEXT: func.return %[[B]], %[[D]], %[[E]], %[[G]]
func.func @sums(%N : !inter.set<N>, %x : !inter.rows<N, 1x4xf32>, %w : !inter.rows<unit, 4x1xf32>) -> (!inter.rows<N, 1x1xf32>, !inter.rows<N, 1xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 1xf32>) {
  %a = inter.contract "hk,kf->hf" %x, %w : !inter.rows<N, 1x1xf32>
  %b = inter.row_reduce sum %x [1] : !inter.rows<N, 1xf32>
  %c = inter.row_reduce max %x [0] : !inter.rows<N, 4xf32>
  %d = inter.row_reduce max %x [1] : !inter.rows<N, 1xf32>
  func.return %a, %b, %c, %d : !inter.rows<N, 1x1xf32>, !inter.rows<N, 1xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 1xf32>
}

// -----

// The dimension that a slice or a concatenation is along stays, the others go; so does a transpose
// that only moves ones.
// CHECK-LABEL: func.func @views
// CHECK-NEXT: %[[X:.*]] = inter.reshape %x : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[A:.*]] = inter.slice %[[X]] {dim = 0, lo = 1, hi = 2} : !inter.rows<N, 1xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %[[A]] : !inter.rows<N, 1x1xf32>
// CHECK-NEXT: %[[C:.*]] = inter.concat %x, %x {dim = 0} : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %[[D:.*]] = inter.concat %[[X]], %[[X]] {dim = 0} : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[E:.*]] = inter.reshape %[[D]] : !inter.rows<N, 1x8xf32>
// CHECK-NEXT: %[[F:.*]] = inter.reshape %x : !inter.rows<N, 4x1xf32>
// CHECK-NEXT: func.return %[[B]], %[[C]], %[[E]], %[[F]]
func.func @views(%N : !inter.set<N>, %x : !inter.rows<N, 1x4xf32>) -> (!inter.rows<N, 1x1xf32>, !inter.rows<N, 2x4xf32>, !inter.rows<N, 1x8xf32>, !inter.rows<N, 4x1xf32>) {
  %a = inter.slice %x {dim = 1, lo = 1, hi = 2} : !inter.rows<N, 1x1xf32>
  %b = inter.concat %x, %x {dim = 0} : !inter.rows<N, 2x4xf32>
  %c = inter.concat %x, %x {dim = 1} : !inter.rows<N, 1x8xf32>
  %d = inter.transpose %x [1, 0] : !inter.rows<N, 4x1xf32>
  func.return %a, %b, %c, %d : !inter.rows<N, 1x1xf32>, !inter.rows<N, 2x4xf32>, !inter.rows<N, 1x8xf32>, !inter.rows<N, 4x1xf32>
}

// -----

// Of three dimensions those that are not 1 change places; parts of a union have none.
// CHECK-LABEL: func.func @more
// CHECK-NEXT: %[[X:.*]] = inter.reshape %x : !inter.rows<N, 2x4xf32>
// CHECK-NEXT: %[[A:.*]] = inter.transpose %[[X]] [1, 0] : !inter.rows<N, 4x2xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %[[A]] : !inter.rows<N, 4x1x2xf32>
// CHECK: %[[W:.*]] = inter.reshape %w : !inter.rows<g, 3xf32>
// CHECK: %[[S:.*]] = inter.stack %u, %[[W]], %{{.*}} : !inter.rows<u, 3xf32>
func.func @more(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 2x1x4xf32>, %w : !inter.rows<g, 1x3xf32>, %z : !inter.rows<unit, 1x3xf32>) -> (!inter.rows<N, 4x1x2xf32>, !inter.rows<N, 1x3xf32>) {
  %a = inter.transpose %x [2, 1, 0] : !inter.rows<N, 4x1x2xf32>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %g, %l : !inter.set<u, src: N onto, dst: N onto, parts g l>
  %b = inter.stack %u, %w, %z : !inter.rows<u, 1x3xf32>
  %c = inter.reduce sum %b over %u along dst : !inter.rows<N, 1x3xf32>
  func.return %a, %c : !inter.rows<N, 4x1x2xf32>, !inter.rows<N, 1x3xf32>
}

// -----

// A row that becomes the rows of a set is reshaped there, where it is no copy.
// CHECK-LABEL: func.func @table
// CHECK: %[[A:.*]] = inter.as_rows %R, %z : !inter.rows<R, 2xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %[[A]] : !inter.rows<R, 2x1xf32>
// CHECK-NEXT: func.return %[[B]]
func.func @table(%z : !inter.rows<unit, 3x2xf32>) -> !inter.rows<R, 2x1xf32> {
  %R = inter.range 3 : !inter.set<R>
  %a = inter.reshape %z : !inter.rows<unit, 3x2x1xf32>
  %b = inter.as_rows %R, %a : !inter.rows<R, 2x1xf32>
  func.return %b : !inter.rows<R, 2x1xf32>
}
