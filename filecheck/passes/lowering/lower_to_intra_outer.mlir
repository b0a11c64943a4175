// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// The gradient of a weight is a sum of outer products over all rows: no product is stored.
// CHECK: func.func @forward()
// CHECK: %[[OUT:.*]] = intra.output {buffer = "dW"} : memref<?x5x3xf32>
// CHECK: intra.traverse
// CHECK-NEXT: %[[X:.*]] = intra.load {{.*}} : vector<5xf32>
// CHECK-NEXT: %[[D:.*]] = intra.load {{.*}} : vector<3xf32>
// CHECK-NEXT: intra.outer %[[X]], %[[D]], %[[OUT]] {spec = "k,f->kf"}
// CHECK-NOT: intra.store
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 5xf32>, %d : !inter.rows<N, 3xf32>) -> !inter.rows<unit, 5x3xf32> {
  %o = inter.contract "k,f->kf" %x, %d : !inter.rows<N, 5x3xf32>
  %dW = inter.reduce sum %o over %N along () : !inter.rows<unit, 5x3xf32>
  func.return %dW : !inter.rows<unit, 5x3xf32>
}

// -----

// Edges of one target have one product: it is summed once an edge, and not stored either.
// CHECK: func.func @forward()
// CHECK: intra.traverse
// CHECK: intra.outer %{{.*}}, %{{.*}}, %{{.*}} {spec = "k,f->kf"}
// CHECK-NOT: intra.total
func.func @forward(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 5xf32>, %d : !inter.rows<N, 3xf32>) -> !inter.rows<unit, 5x3xf32> {
  %a = inter.at %g[dst], %x : !inter.rows<g[dst], 5xf32>
  %b = inter.at %g[dst], %d : !inter.rows<g[dst], 3xf32>
  %o = inter.contract "k,f->kf" %a, %b : !inter.rows<g[dst], 5x3xf32>
  %dW = inter.reduce sum %o over %g along () : !inter.rows<unit, 5x3xf32>
  func.return %dW : !inter.rows<unit, 5x3xf32>
}

// -----

// Letters of one role that lie side by side are one letter of the product, seen through a view.
// CHECK: func.func @forward()
// CHECK: %[[W:.*]] = intra.input {buffer = "W"} : memref<?x2x3x7xf32>
// CHECK: %[[V:.*]] = intra.view %[[W]] : memref<?x6x7xf32>
// CHECK: %[[ROW:.*]] = intra.reshape {{.*}} : vector<6xf32>
// CHECK-NEXT: intra.matmul %[[ROW]], %[[V]] {spec = "k,kf->f"} : vector<7xf32>
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 2x3xf32>, %W : !inter.rows<unit, 2x3x7xf32>) -> !inter.rows<N, 7xf32> {
  %y = inter.contract "ab,abf->f" %x, %W : !inter.rows<N, 7xf32>
  func.return %y : !inter.rows<N, 7xf32>
}

// -----

// Where the matrix's letters are mixed, it is permuted once, in a nest of one row.
// CHECK: func.func @forward()
// CHECK: intra.traverse %{{.*}} in %{{.*}} {
// CHECK-NEXT: intra.first
// CHECK-NEXT: intra.load
// CHECK-NEXT: intra.transpose {{.*}} {perm = [2, 1, 0]} : vector<2x3x7xf32>
// CHECK-NEXT: intra.store
// CHECK: intra.matmul {{.*}} {spec = "k,kf->f"} : vector<7xf32>
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 2x3xf32>, %W : !inter.rows<unit, 7x3x2xf32>) -> !inter.rows<N, 7xf32> {
  %y = inter.contract "ab,fba->f" %x, %W : !inter.rows<N, 7xf32>
  func.return %y : !inter.rows<N, 7xf32>
}

// -----

// One matrix for each head, transposed, and rows that share it.
// CHECK: intra.matmul {{.*}} {spec = "lbk,bfk->lbf"} : vector<3x2x5xf32>
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 3x2x4xf32>, %W : !inter.rows<unit, 2x5x4xf32>) -> !inter.rows<N, 3x2x5xf32> {
  %y = inter.contract "lhk,hfk->lhf" %x, %W : !inter.rows<N, 3x2x5xf32>
  func.return %y : !inter.rows<N, 3x2x5xf32>
}

// -----

// What is no product of a row and a matrix is a dot of two rows.
// CHECK: intra.dot {{.*}} {spec = "hk,hk->h"} : vector<2xf32>
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 2x4xf32>, %a : !inter.rows<unit, 2x4xf32>) -> !inter.rows<N, 2xf32> {
  %y = inter.contract "hk,hk->h" %x, %a : !inter.rows<N, 2xf32>
  func.return %y : !inter.rows<N, 2xf32>
}
