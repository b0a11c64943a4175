// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

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

// -----

// Another shape of a row that sets are made from is handed on by @structure, and read from there.
// CHECK: func.func @structure
// CHECK: func.func @prepare() attributes {intra.phase}
// CHECK: %[[B:.*]] = intra.input {buffer = "structure_bound"} : memref<?xi64>
// CHECK: %[[L:.*]] = intra.load %[[B]]
// CHECK-NOT: intra.reshape
// CHECK: intra.store
func.func @prepare(%P : !inter.set<P> {inter.name = "P"}, %S : !inter.set<S> {inter.name = "S"}, %ptr : !inter.rows<P, i64> {inter.name = "ptr"}) -> (!inter.set<f, parent: S mono>, !inter.rows<unit, i64> {inter.name = "doubled"}) {
  %zero = inter.const 0 : !inter.rows<unit, i64>
  %one = inter.const 1 : !inter.rows<unit, i64>
  %p = inter.interval %P, %zero, %one : !inter.set<p, parent: P mono>
  %first = inter.at %p[parent], %ptr : !inter.rows<p, i64>
  %row = inter.as_unit %p, %first : !inter.rows<unit, 1xi64>
  %bound = inter.reshape %row : !inter.rows<unit, i64>
  %f = inter.interval %S, %zero, %bound : !inter.set<f, parent: S mono>
  %doubled = inter.add %bound, %bound : !inter.rows<unit, i64>
  func.return %f, %doubled : !inter.set<f, parent: S mono>, !inter.rows<unit, i64>
}
func.func @forward(%S : !inter.set<S> {inter.name = "S"}, %f : !inter.set<f, parent: S mono>, %x : !inter.rows<S, f32> {inter.name = "x"}) -> (!inter.rows<f, f32> {inter.name = "y"}) {
  %y = inter.at %f[parent], %x : !inter.rows<f, f32>
  %z = inter.neg %y : !inter.rows<f, f32>
  func.return %z : !inter.rows<f, f32>
}
