// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// A matrix of one column is no matrix: a dot product fills whole vectors, a tile would be padded.
// CHECK: func.func @forward()
// CHECK-NOT: intra.matmul
// CHECK: intra.dot %{{.*}}, %{{.*}} {spec = "k,k->"} : f32
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 1x5xf32>) -> !inter.rows<N, 1xf32> {
  %y = inter.contract "y,zy->z" %x, %W : !inter.rows<N, 1xf32>
  func.return %y : !inter.rows<N, 1xf32>
}

// -----

// A matrix of one row is multiplied by a number.
// CHECK: func.func @forward()
// CHECK-NOT: intra.matmul
// CHECK: intra.apply %{{.*}}, %{{.*}} {fn = "mul"} : vector<5xf32>
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 1xf32>, %W : !inter.rows<unit, 1x5xf32>) -> !inter.rows<N, 5xf32> {
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 5xf32>
  func.return %y : !inter.rows<N, 5xf32>
}

// -----

// The gradient of such a matrix is a sum of rows.
// CHECK: func.func @forward()
// CHECK-NOT: intra.outer
// CHECK: intra.total %{{.*}}, %{{.*}} {kind = "sum"}
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 5xf32>, %d : !inter.rows<N, 1xf32>) -> !inter.rows<unit, 5x1xf32> {
  %o = inter.contract "k,f->kf" %x, %d : !inter.rows<N, 5x1xf32>
  %dW = inter.reduce sum %o over %N along () : !inter.rows<unit, 5x1xf32>
  func.return %dW : !inter.rows<unit, 5x1xf32>
}

// -----

// Two columns are a matrix.
// CHECK: func.func @forward()
// CHECK: intra.matmul
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 2x5xf32>) -> !inter.rows<N, 2xf32> {
  %y = inter.contract "y,zy->z" %x, %W : !inter.rows<N, 2xf32>
  func.return %y : !inter.rows<N, 2xf32>
}
