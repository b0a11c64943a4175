// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// Matrices of relations that are returned as one parameter's gradient are summed in the output's
// memory: no copy.
// CHECK: func.func @forward()
// CHECK: %[[OUT:.*]] = intra.output {buffer = "dW"} : memref<?x2x20x30xf32>
// CHECK-NEXT: %[[V:.*]] = intra.view %[[OUT]] {domain = #intra.domain<R>} : memref<?x20x30xf32>
// CHECK: intra.outer %{{.*}}, %{{.*}}, %[[V]][%{{.*}} of %{{.*}}]
// CHECK-NOT: intra.store
func.func @forward(%R : !inter.set<R>, %N : !inter.set<N, rel: R>, %x : !inter.rows<N, 20xf32>, %d : !inter.rows<N, 30xf32>) -> (!inter.rows<unit, 2x20x30xf32> {inter.name = "dW"}) {
  %o = inter.contract "k,f->kf" %x, %d : !inter.rows<N, 20x30xf32>
  %s = inter.reduce sum %o over %N along rel : !inter.rows<R, 20x30xf32>
  %w = inter.as_unit %R, %s : !inter.rows<unit, 2x20x30xf32>
  func.return %w : !inter.rows<unit, 2x20x30xf32>
}

// -----

// A value that is returned twice is copied once.
// CHECK: %[[A:.*]] = intra.output {buffer = "a", domain = #intra.domain<N>}
// CHECK: %[[B:.*]] = intra.output {buffer = "b", domain = #intra.domain<N>}
// CHECK: intra.store %{{.*}}, %[[A]]
// CHECK: %[[Y:.*]] = intra.load %[[A]]
// CHECK: intra.store %[[Y]], %[[B]]
// CHECK-NOT: intra.store
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 2xf32>) -> (!inter.rows<N, 2xf32> {inter.name = "a"}, !inter.rows<N, 2xf32> {inter.name = "b"}) {
  %y = inter.exp %x : !inter.rows<N, 2xf32>
  func.return %y, %y : !inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>
}

// -----

// Which input is a cotangent of which result, and which output a gradient of which argument, is data
// that names cannot break.
// CHECK: func.func @forward()
// CHECK-NOT: intra.cotangents
// CHECK: func.func @backward() attributes
// CHECK-DAG: intra.cotangents = {d = "d_y"}
// CHECK-DAG: intra.gradients = {dx = "x"}
// CHECK-DAG: intra.read_for = {dx = ["x"]}
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 2xf32>) -> (!inter.rows<N, 2xf32> {inter.name = "d_y"}) {
  %y = inter.sin %x : !inter.rows<N, 2xf32>
  func.return %y : !inter.rows<N, 2xf32>
}
func.func @backward(%N : !inter.set<N>, %x : !inter.rows<N, 2xf32>, %d : !inter.rows<N, 2xf32> {inter.cotangent = "d_y"}) -> (!inter.rows<N, 2xf32> {inter.name = "dx", inter.grad = "x"}) {
  %c = inter.cos %x : !inter.rows<N, 2xf32>
  %g = inter.mul %c, %d : !inter.rows<N, 2xf32>
  func.return %g : !inter.rows<N, 2xf32>
}
