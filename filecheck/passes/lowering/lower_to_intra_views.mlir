// RUN: gnn-opt %s -p lower-to-intra | filecheck %s

// A single row in another shape is the same memory, and no nest: %a is read as %w lies, %c is
// summed where %d lies. A result that is made row by row is made in its shape.
// CHECK-LABEL: func.func @forward
// CHECK-DAG: %[[TOTAL:.*]] = intra.output {buffer = "total"} : memref<?x1x4xf32>
// CHECK-DAG: %[[FLAT:.*]] = intra.view %[[TOTAL]] : memref<?x4xf32>
// CHECK-DAG: %[[W:.*]] = intra.input {buffer = "w"} : memref<?x1x4xf32>
// CHECK: intra.traverse
// CHECK: %[[ROW:.*]] = intra.load %[[W]][%{{.*}}] : vector<1x4xf32>
// CHECK-NEXT: intra.reshape %[[ROW]] : vector<4xf32>
// CHECK: intra.traverse
// CHECK: intra.total %{{.*}}, %[[FLAT]] {kind = "sum"}
// CHECK: intra.traverse
// CHECK: %[[T:.*]] = intra.apply
// CHECK-NEXT: intra.store %[[T]]
// CHECK: intra.traverse
// CHECK: %[[S:.*]] = intra.reshape %{{.*}} : vector<4x1xf32>
// CHECK-NEXT: intra.store %[[S]], %{{.*}}
// CHECK-NOT: intra.traverse
func.func @prepare() {
  func.return
}
func.func @forward(%N : !inter.set<N> {inter.name = "N"}, %x : !inter.rows<N, 4xf32> {inter.name = "x"}, %w : !inter.rows<unit, 1x4xf32> {inter.name = "w"}) -> (!inter.rows<N, 4xf32> {inter.name = "y"}, !inter.rows<unit, 1x4xf32> {inter.name = "total"}, !inter.rows<unit, 4x1xf32> {inter.name = "twice"}) {
  %a = inter.reshape %w : !inter.rows<unit, 4xf32>
  %b = inter.mul %x, %a : !inter.rows<N, 4xf32>
  %c = inter.reduce sum %b over %N along () : !inter.rows<unit, 4xf32>
  %d = inter.reshape %c : !inter.rows<unit, 1x4xf32>
  %e = inter.add %c, %c : !inter.rows<unit, 4xf32>
  %f = inter.reshape %e : !inter.rows<unit, 4x1xf32>
  func.return %b, %d, %f : !inter.rows<N, 4xf32>, !inter.rows<unit, 1x4xf32>, !inter.rows<unit, 4x1xf32>
}
